#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/fft.h"

instantiate_kernel("fft_1024_float2_float2", fft, 1024, float2, float2)
instantiate_kernel("fft_256_float_float2", fft, 256, float, float2)
instantiate_kernel("fft_256_float2_float", fft, 256, float2, float)
instantiate_kernel("rader_fft_256_float2_float2", rader_fft, 256, float2, float2)
instantiate_kernel("bluestein_fft_512_float2_float2", bluestein_fft, 512, float2, float2)
instantiate_kernel("four_step_fft_1024_0", four_step_fft, 1024, float2, float2, 0)
instantiate_kernel("four_step_fft_1024_1", four_step_fft, 1024, float2, float2, 1)
