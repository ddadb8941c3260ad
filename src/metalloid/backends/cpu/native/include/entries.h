// How the CPU's engines call a kernel. Part of the precompiled standard library.
#pragma once

#include "entry.h"
#include "rows.h"
