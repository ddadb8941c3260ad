#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sort.h"

#define instantiate_block_sort(name, type, threads)                                               \
  instantiate_kernel("block_sort_" #name "_" #threads, block_sort, type, type, false, threads, 8) \
  instantiate_kernel("block_sort_arg_" #name "_" #threads, block_sort,                            \
                     type, uint, true, threads, 8)                                                \
  instantiate_kernel("block_sort_nc_" #name "_" #threads, block_sort_nc,                          \
                     type, type, false, threads, 8)                                               \
  instantiate_kernel("block_sort_nc_arg_" #name "_" #threads, block_sort_nc,                      \
                     type, uint, true, threads, 8)

#define instantiate_multi_block_sort(name, type, threads)                                 \
  instantiate_kernel("mb_block_sort_" #name, mb_block_sort, type, uint, true, threads, 8) \
  instantiate_kernel("mb_block_partition_" #name, mb_block_partition,                     \
                     type, uint, true, threads, 8)                                        \
  instantiate_kernel("mb_block_merge_" #name, mb_block_merge, type, uint, true, threads, 8)

instantiate_block_sort(float, float, 32)
instantiate_block_sort(float, float, 256)
instantiate_block_sort(bfloat, bfloat16_t, 128)
instantiate_block_sort(int, int, 128)
instantiate_multi_block_sort(float, float, 128)
instantiate_multi_block_sort(int64, int64_t, 128)
