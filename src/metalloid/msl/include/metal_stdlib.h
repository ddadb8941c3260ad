// The Metal standard library: one header per chapter of the MSL specification. Compiled once per
// target and math mode, as a precompiled header.
//
// `metal::` is what users see; `metalloid::` holds how it is done.
#pragma once

#include "metal_types.h"
#include "metal_type_traits.h"
#include "metal_limits.h"
#include "metal_vector.h"
#include "metal_packed.h"
#include "metal_convert.h"
#include "metal_relational.h"
#include "metal_integer.h"
#include "metal_math.h"
#include "metal_common.h"
#include "metal_geometric.h"
#include "metal_matrix.h"
#include "metal_pack.h"
#include "metal_array.h"
#include "metal_utility.h"
#include "metal_logging.h"
#include "metal_compute.h"
#include "metal_atomic.h"
#include "metal_indirect_arguments.h"
#include "metal_texture.h"
#include "metal_depth.h"
#include "metal_simdgroup.h"
#include "metal_simdgroup_matrix.h"
#include "metal_tensor_blocks.h"
#include "metal_simd_types.h"
#include "metal_internals.h"
