"""MLX's own tests of ``metal_kernel`` and the examples of its documentation, with NumPy's answers."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl


def ulps(actual, expected):
    """Largest distance in units in the last place of `expected`, rounded to float32."""
    expected = np.asarray(expected, np.float32)
    return np.max(
        np.abs(actual.astype(np.float64) - expected) / np.spacing(np.abs(expected)), initial=0
    )


# -- python/tests/test_fast.py


def test_custom_kernel_basic(rng):
    a = rng.standard_normal((2, 2)).astype(np.float32)
    kernel = mtl.metal_kernel(
        name="basic",
        input_names=["a"],
        output_names=["out1"],
        source="""
            uint elem = thread_position_in_grid.x;
            out1[elem] = a[elem];
        """,
    )
    (out,) = kernel(
        inputs=[a], grid=(4, 1, 1), threadgroup=(2, 1, 1), output_shapes=[(2, 2)],
        output_dtypes=[np.float32],
    )  # fmt: skip
    np.testing.assert_array_equal(out, a)


def test_custom_kernel_args():
    a = np.zeros((3, 6), np.float32)
    a.flat[1] = -0.321877509
    c = np.array([[0.2138671875, -0.01507568359375], [0.54296875, -0.9296875]], ml_dtypes.bfloat16)
    kernel = mtl.metal_kernel(
        name="arg_test",
        input_names=["a", "b", "c", "d"],
        output_names=["out1", "out2"],
        source="""
            uint elem = thread_position_in_grid.x;
            T tmp = a[0];
            if (e) {
                if (elem < 4) {
                    out1[elem] = a[1] + b[2] + static_cast<float>(c[3]) + d + f;
                }
            } else {
                out1[elem] = tmp;
            }
            out2[elem] = a[1] + b[2] + c[1] - d;
        """,
    )
    out1, out2 = kernel(
        inputs=[a, np.array([3, 4, 5], np.int32), c, 7.3],
        template=[("e", True), ("f", 3), ("T", np.float16)],
        grid=(6, 1, 1), threadgroup=(2, 1, 1), output_shapes=[(2, 2), (3, 2)],
        output_dtypes=[np.float32, np.int32],
    )  # fmt: skip
    expected = a.flat[1] + np.float32(5) + np.float32(c[1, 1]) + np.float32(7.3) + np.float32(3)
    assert abs(expected - 14.0484) < 1e-4
    assert out1.tolist() == [[expected] * 2] * 2
    assert out2.tolist() == [[-2] * 2] * 3


@pytest.mark.parametrize("contiguous", [True, False])
def test_custom_kernel_strides(contiguous, rng):
    a = np.tile(rng.standard_normal((3, 6)).astype(np.float32)[::2], (4, 1)).T[1:]
    by_index = "uint loc = elem_to_loc(elem, inp_shape, inp_strides, inp_ndim);"
    kernel = mtl.metal_kernel(
        name="myexp_strided",
        input_names=["inp"],
        output_names=["out"],
        source=f"""
            uint elem = thread_position_in_grid.x;
            {"uint loc = elem;" if contiguous else by_index}
            T tmp = inp[loc];
            out[elem] = metal::precise::exp(tmp) * threads_per_simdgroup;
        """,
        ensure_row_contiguous=contiguous,
    )
    (out,) = kernel(
        inputs=[a], template=[("T", np.float32)], grid=(a.size, 1, 1), threadgroup=(256, 1, 1),
        output_shapes=[a.shape], output_dtypes=[a.dtype],
    )  # fmt: skip
    assert ulps(out, np.exp(a.astype(np.float64)) * 32) <= 2


def test_custom_kernel_helper(rng):
    a = rng.standard_normal((2, 2)).astype(np.float32)
    kernel = mtl.metal_kernel(
        name="helper",
        input_names=["a"],
        output_names=["out1"],
        header="""
        template <typename T>
        T do_exp(T x) {
            return metal::precise::exp(x);
        }
        """,
        source="""
            uint elem = thread_position_in_grid.x;
            out1[elem] = do_exp(a[elem]);
        """,
    )
    (out,) = kernel(
        inputs=[a], grid=(4, 1, 1), threadgroup=(2, 1, 1), output_shapes=[(2, 2)],
        output_dtypes=[np.float32],
    )  # fmt: skip
    assert ulps(out, np.exp(a.astype(np.float64))) <= 2


def test_custom_kernel_attributes():
    kernel = mtl.metal_kernel(
        name="attributes",
        input_names=["a"],
        output_names=["out"],
        source="out[0] = threads_per_threadgroup.x;",
    )
    (out,) = kernel(
        inputs=[np.ones((1, 1), np.float32)], grid=(2, 1, 1), threadgroup=(2, 1, 1),
        output_shapes=[(1, 1)], output_dtypes=[np.uint32],
    )  # fmt: skip
    assert out == 2


def test_custom_kernel_caching():
    """Also upstream's "same name, different source": what runs is what was written."""

    def call(a, scale):
        kernel = mtl.metal_kernel(
            name="my_kernel",
            input_names=["a"],
            output_names=["out1"],
            source=f"out1[thread_position_in_grid.x] = a[thread_position_in_grid.x] + {scale};",
        )
        return kernel(inputs=[a], grid=(4, 1, 1), threadgroup=(2, 1, 1), output_shapes=[a.shape],
                      output_dtypes=[np.float32])[0]  # fmt: skip

    a = np.arange(4, dtype=np.float32)
    results = [call(a, scale) for scale in (1, 10, 1)]
    assert [r.tolist() for r in results] == [[1, 2, 3, 4], [10, 11, 12, 13], [1, 2, 3, 4]]


def test_custom_kernel_mixed_dtypes():
    kernel = mtl.metal_kernel(
        name="mixed",
        input_names=["x"],
        output_names=["out"],
        source="out[thread_position_in_grid.x] = x[thread_position_in_grid.x] * T(2);",
    )
    for _ in range(2):
        for dtype in (np.float16, np.float32):
            x = np.arange(20).astype(dtype)
            (out,) = kernel(inputs=[x], template=[("T", dtype)], grid=(20, 1, 1),
                            threadgroup=(32, 1, 1), output_shapes=[(20,)], output_dtypes=[dtype])  # fmt: skip
            assert out.tolist() == (2 * x).tolist()


# -- docs/src/dev/custom_metal_kernels.rst


@pytest.mark.parametrize("strided", [False, True])
def test_exp_elementwise(strided, rng):
    source = """
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
    """
    strided_source = """
        uint elem = thread_position_in_grid.x;
        // Utils from `mlx/backend/metal/kernels/utils.h` are automatically included
        uint loc = elem_to_loc(elem, inp_shape, inp_strides, inp_ndim);
        T tmp = inp[loc];
        // Output arrays are always row contiguous
        out[elem] = metal::exp(tmp);
    """
    kernel = mtl.metal_kernel(
        name="myexp",
        input_names=["inp"],
        output_names=["out"],
        source=strided_source if strided else source,
        ensure_row_contiguous=not strided,
    )
    a = rng.standard_normal((4, 16)).astype(np.float16)
    for view in (a, a[::2], a.T, a[::-1, ::3]):
        (out,) = kernel(
            inputs=[view], template=[("T", np.float32)], grid=(view.size, 1, 1),
            threadgroup=(256, 1, 1), output_shapes=[view.shape], output_dtypes=[view.dtype],
        )  # fmt: skip
        # Half an ulp of half for the rounding, and another where float32 was off at a tie.
        expected = np.exp(view.astype(np.float64))
        assert (np.abs(out - expected) <= 0.51 * np.spacing(expected.astype(np.float16))).all()


def corners(grid, height, width):
    """Indices and weights of the four pixels around each point, as the kernels below have them."""
    x = ((grid[..., 0] + 1) * width - 1) / 2
    y = ((grid[..., 1] + 1) * height - 1) / 2
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    for column, row in ((0, 0), (1, 0), (0, 1), (1, 1)):
        ix, iy = left + column, top + row
        dx, dy = (1 - abs(x - ix)), (1 - abs(y - iy))
        inside = (ix >= 0) & (ix < width) & (iy >= 0) & (iy < height)
        yield (
            ix.clip(0, width - 1),
            iy.clip(0, height - 1),
            dx,
            dy,
            inside,
            2 * column - 1,
            2 * row - 1,
        )


def grid_sample_oracle(x, grid):
    """Bilinear samples of images ``x[n, h, w, c]`` at points ``grid[n, h, w, 2]`` in [-1, 1]."""
    n = np.arange(len(x))[:, None, None]
    return sum(
        (inside * dx * dy)[..., None] * x[n, iy, ix]
        for ix, iy, dx, dy, inside, _, _ in corners(grid, *x.shape[1:3])
    )


def grid_sample_vjp_oracle(x, grid, cotangent):
    """Gradients of the samples' inner product with `cotangent`."""
    height, width = x.shape[1:3]
    n = np.arange(len(x))[:, None, None]
    x_grad, grid_grad = np.zeros_like(x), np.zeros_like(grid)
    for ix, iy, dx, dy, inside, x_sign, y_sign in corners(grid, height, width):
        np.add.at(x_grad, (n, iy, ix), (inside * dx * dy)[..., None] * cotangent)
        weight = inside * (x[n, iy, ix] * cotangent).sum(axis=-1)
        grid_grad[..., 0] += x_sign * dy * weight * width / 2
        grid_grad[..., 1] += y_sign * dx * weight * height / 2
    return x_grad, grid_grad


# The sample at position (n, h, w) and its four neighbours; shared by both kernels.
POSITION = """
    const int height = x_shape[1], width = x_shape[2], channels = x_shape[3];
    const int samples = grid_shape[1] * grid_shape[2];
    const T x_at = ((grid[2 * sample] + 1) * width - 1) / 2;
    const T y_at = ((grid[2 * sample + 1] + 1) * height - 1) / 2;
    const int left = floor(x_at), top = floor(y_at);
    const int image = sample / samples * height * width * channels;
"""

GRID_SAMPLE = f"""
    const uint elem = thread_position_in_grid.x;
    const int channel = elem % x_shape[3];
    const int sample = elem / x_shape[3];
    {POSITION}
    T sum = 0;
    for (int corner = 0; corner < 4; ++corner) {{
        const int column = left + (corner & 1), row = top + (corner >> 1);
        if (column < 0 || column >= width || row < 0 || row >= height) continue;
        const T weight = (1 - metal::abs(x_at - column)) * (1 - metal::abs(y_at - row));
        sum += weight * x[image + (row * width + column) * channels + channel];
    }}
    out[elem] = sum;
"""

# The threads of a simdgroup belong to one sample: the channels are rounded up to its width.
GRID_SAMPLE_VJP = f"""
    const uint elem = thread_position_in_grid.x;
    const int padded = ceildiv(x_shape[3], threads_per_simdgroup) * threads_per_simdgroup;
    const int channel = elem % padded;
    const int sample = elem / padded;
    {POSITION}
    const bool is_there = channel < channels;
    const T cot = is_there ? cotangent[sample * channels + channel] : T(0);
    T x_slope = 0, y_slope = 0;
    for (int corner = 0; corner < 4; ++corner) {{
        const int column = left + (corner & 1), row = top + (corner >> 1);
        if (!is_there || column < 0 || column >= width || row < 0 || row >= height) continue;
        const T dx = 1 - metal::abs(x_at - column), dy = 1 - metal::abs(y_at - row);
        const int offset = image + (row * width + column) * channels + channel;
        atomic_fetch_add_explicit(&x_grad[offset], dx * dy * cot, memory_order_relaxed);
        x_slope += (corner & 1 ? dy : -dy) * x[offset] * cot;
        y_slope += (corner >> 1 ? dx : -dx) * x[offset] * cot;
    }}
    x_slope = simd_sum(x_slope);
    y_slope = simd_sum(y_slope);
    if (thread_index_in_simdgroup == 0) {{
        atomic_fetch_add_explicit(&grid_grad[2 * sample], x_slope * width / 2, memory_order_relaxed);
        atomic_fetch_add_explicit(&grid_grad[2 * sample + 1], y_slope * height / 2,
                                  memory_order_relaxed);
    }}
"""


@pytest.fixture(params=[3, 32, 40])
def images_and_grid(request, rng):
    x = rng.standard_normal((2, 7, 5, request.param)).astype(np.float32)
    grid = rng.uniform(-1.2, 1.2, (2, 4, 6, 2)).astype(np.float32)
    return x, grid


def test_grid_sample(images_and_grid):
    x, grid = images_and_grid
    kernel = mtl.metal_kernel("grid_sample", ["x", "grid"], ["out"], GRID_SAMPLE)
    shape = (*grid.shape[:3], x.shape[-1])
    (out,) = kernel(
        inputs=[x, grid], template=[("T", x.dtype)], grid=(np.prod(shape), 1, 1),
        threadgroup=(256, 1, 1), output_shapes=[shape], output_dtypes=[x.dtype],
    )  # fmt: skip
    expected = grid_sample_oracle(x.astype(np.float64), grid.astype(np.float64))
    # Coordinates up to 7 lose 3 bits of their fraction; the samples are of order 1.
    assert np.abs(out - expected).max() <= 64 * np.finfo(np.float32).eps


def test_grid_sample_vjp(images_and_grid, rng):
    x, grid = images_and_grid
    shape = (*grid.shape[:3], x.shape[-1])
    cotangent = rng.standard_normal(shape).astype(np.float32)
    kernel = mtl.metal_kernel(
        "grid_sample_vjp", ["x", "grid", "cotangent"], ["x_grad", "grid_grad"], GRID_SAMPLE_VJP,
        atomic_outputs=True,
    )  # fmt: skip
    threads = int(np.prod(grid.shape[:3])) * -(-x.shape[-1] // 32) * 32
    x_grad, grid_grad = kernel(
        inputs=[x, grid, cotangent], template=[("T", x.dtype)], grid=(threads, 1, 1),
        threadgroup=(256, 1, 1), output_shapes=[x.shape, grid.shape],
        output_dtypes=[x.dtype, x.dtype], init_value=0,
    )  # fmt: skip
    expected = grid_sample_vjp_oracle(*(a.astype(np.float64) for a in (x, grid, cotangent)))
    eps = np.finfo(np.float32).eps
    assert np.abs(x_grad - expected[0]).max() <= 64 * eps * np.abs(expected[0]).max()
    assert np.abs(grid_grad - expected[1]).max() <= 64 * eps * np.abs(expected[1]).max()
