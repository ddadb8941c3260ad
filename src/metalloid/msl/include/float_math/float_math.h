// The float functions of MSL's <metal_math> in the namespaces metalloid::precise and
// metalloid::fast, as self-contained branch-free code (see core.h for the rules).
//
// `precise` keeps to the accuracy table of the MSL specification over all floats, subnormals and
// special values included; `fast` to its fast-math table. tests/msl/test_math_accuracy.py holds
// both to it. They survive fast-math flags in the including translation unit, except that
// -ffinite-math-only lets the compiler assume no NaN or infinity ever reaches or leaves a function;
// combine it with -fhonor-nans -fhonor-infinities where special values matter.
#pragma once

#include "exponential.h"
#include "hyperbolic.h"
#include "inverse_trigonometric.h"
#include "logarithm.h"
#include "manipulation.h"
#include "power.h"
#include "rounding.h"
#include "trigonometric.h"
