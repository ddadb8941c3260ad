// The parts of steel that move tiles: explicit instantiations, as no kernel without matrix
// arithmetic uses them.
#include <metal_stdlib>

#include "mlx/backend/metal/kernels/steel/defines.h"
#include "mlx/backend/metal/kernels/steel/utils.h"
#include "mlx/backend/metal/kernels/steel/utils/integral_constant.h"
#include "mlx/backend/metal/kernels/steel/gemm/loader.h"
#include "mlx/backend/metal/kernels/steel/gemm/params.h"
#include "mlx/backend/metal/kernels/steel/gemm/transforms.h"
#include "mlx/backend/metal/kernels/steel/conv/params.h"
#include "mlx/backend/metal/kernels/steel/conv/loader.h"
#include "mlx/backend/metal/kernels/steel/conv/loaders/loader_general.h"

namespace mlx {
namespace steel {
template struct BlockLoader<float, 32, 16, 20, 1, 128>;
template struct BlockLoader<half, 16, 64, 72, 0, 64, 8>;
template struct TransformAxpby<half, float>;
template struct Conv2DInputBlockLoaderLargeFilter<half, 32, 32, 16, 128, 4>;
template struct Conv2DInputBlockLoaderSmallFilter<float, 32, 32, 16, 128, 4>;
template struct Conv2DWeightBlockLoader<half, 32, 32, 16, 128, 8>;
template struct Conv3DInputBlockLoaderSmallFilter<float, 32, 32, 16, 128, 4>;
template struct Conv3DWeightBlockLoader<float, 32, 32, 16, 128, 4>;
template struct Conv2DInputBlockLoaderSmallChannels<float, 32, 32, 16, 128, 3, 4>;
template struct Conv2DWeightBlockLoaderSmallChannels<float, 32, 32, 16, 128, 3, 4>;
template struct Conv2DInputBlockLoaderGeneral<half, 32, 32, 16, 128, 8>;
template struct Conv2DWeightBlockLoaderGeneral<half, 32, 32, 16, 128, 8>;
} // namespace steel
} // namespace mlx

// One kernel that loads a tile through threadgroup memory.
kernel void copy_tile(
    device const float* tile,
    device float* out,
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup float shared[32 * 20];
  mlx::steel::BlockLoader<float, 32, 16, 20, 1, 128> loader(tile, 16, shared, group, lane);
  loader.load_unsafe();
  threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  for (uint i = thread_index; i < 32 * 16; i += 128) {
    out[i] = shared[i / 16 * 20 + i % 16];
  }
}
