// The float functions of MSL's <metal_math> in the namespaces metalloid::precise and
// metalloid::fast, as self-contained branch-free code (see core.h for the rules).
//
// `precise` keeps to the accuracy table of the MSL specification over all floats, subnormals and
// special values included; `fast` to its fast-math table. tests/msl/test_math_accuracy.py holds
// both to it. The errors in the comments were measured over all 2^32 floats (functions of two
// arguments: 3e7 random and hard pairs) against double precision, `fast` ones in their domain.
// `precise` results are the same bits on x86-64 and on NVIDIA GPUs.
//
// Fast-math flags in the including translation unit change nothing, with one exception: -ffast-math
// lets the compiler assume that no NaN or infinity ever reaches or leaves any function. Combine it
// with -fhonor-nans -fhonor-infinities where special values matter.
#pragma once

#include "exponential.h"
#include "hyperbolic.h"
#include "inverse_trigonometric.h"
#include "logarithm.h"
#include "manipulation.h"
#include "power.h"
#include "rounding.h"
#include "trigonometric.h"
