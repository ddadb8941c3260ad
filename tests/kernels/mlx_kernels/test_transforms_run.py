"""MLX's Fourier and Hadamard transforms, and its convolutions by tiles."""

import numpy as np
import pytest
import scipy.linalg
from mlx_headers import driver, kernel
from mlx_tree import conv_tiled, fft
from mlx_tree.agreement import FLOAT, HALF
from mlx_tree.convolution import Convolution
from mlx_tree.fft import Numbers
from mlx_tree.gemm import Tiling


@pytest.mark.parametrize(
    "size", [60, *(pytest.param(n, marks=pytest.mark.slow) for n in (64, 1001, 1024))]
)
def test_fft(size, rng):
    complex_numbers = Numbers("float2", "float2")
    fft.check_stockham(driver("fft"), "fft_1024_float2_float2", complex_numbers, size, rng)


@pytest.mark.parametrize(("source", "result"), [("float", "float2"), ("float2", "float")])
@pytest.mark.sample(1)
def test_fft_of_real_numbers(source, result, rng):
    """Two real sequences at a time, packed into one complex one; an odd number of them."""
    name = f"fft_256_{source}_{result}"
    fft.check_stockham(driver("fft"), name, Numbers(source, result), 64, rng)


@pytest.mark.slow
def test_fft_of_other_sizes(rng):
    library, numbers = driver("fft"), Numbers("float2", "float2")
    fft.check_stockham(library, "rader_fft_256_float2_float2", numbers, 34, rng, prime=17)
    fft.check_bluestein(library, "bluestein_fft_512_float2_float2", numbers, 167, rng)
    for step in (0, 1):
        name = f"four_step_fft_1024_{step}"
        fft.check_four_step(library, name, numbers, 1024, step, real=False, rng=rng)


@pytest.mark.parametrize(
    ("name", "dtype", "size", "radix"), [("float_64", FLOAT, 64, 16), ("half_1024", HALF, 1024, 16)]
)
@pytest.mark.sample(1)
def test_hadamard(name, dtype, size, radix, rng):
    x = rng.integers(-1, 2, (3, size)).astype(dtype)
    out = np.empty_like(x)
    group = size // radix
    run = kernel("hadamard", f"hadamard_n_{name}")
    run(x, out, 0.5, threads=(group, 3, 1), group_size=(group, 1, 1))
    # Sums of small integers are exact.
    np.testing.assert_array_equal(out, 0.5 * (x @ scipy.linalg.hadamard(size)))


def test_hadamard_of_odd_factor(rng):
    power, odd, per_thread = 32, 12, 2
    x = rng.integers(-9, 10, (2, odd, power)).astype(np.float32)
    out = np.empty_like(x)
    run = kernel("hadamard", "hadamard_m_float")
    run(x, out, 1.0, threads=(2 * power // per_thread, 1, 1))
    # Twice the transform of order 12 is 12 times the identity up to transposition: its rows are
    # orthogonal, which this checks by the norm, and each is made of signs.
    np.testing.assert_array_equal((out**2).sum(axis=1), odd * (x**2).sum(axis=1))
    unit = np.zeros((2, odd, power), np.float32)
    unit[0, :, :odd] = np.eye(odd)
    run(unit, out, 1.0, threads=(2 * power // per_thread, 1, 1))
    np.testing.assert_array_equal(np.abs(out[0, :, :odd]), np.ones((odd, odd)))


@pytest.mark.parametrize(
    "dtype", [FLOAT, pytest.param(HALF, marks=pytest.mark.slow)], ids=["float", "half"]
)
def test_convolution_by_tiles(dtype, rng):
    name = {FLOAT: "float", HALF: "half"}[dtype]
    tiling, work = Tiling(64, 32, 16, 2, 2), Convolution.of(2, 6, 48, (7, 6), (3, 2), groups=2)
    run = kernel("steel_conv", f"implicit_gemm_conv_2d_small_{name}")
    conv_tiled.check_tiled(run, dtype, tiling, work, rng)
    tiling = Tiling(32, 32, 16, 2, 2)
    work = Convolution.of(1, 16, 48, (4, 4, 3), (3, 2, 2), stride=2, flip=True)
    run = kernel("steel_conv", f"implicit_gemm_conv_3d_{name}")
    conv_tiled.check_tiled(run, dtype, tiling, work, rng)
    work = Convolution.of(1, 19, 37, (4, 5), (3, 3), stride=2, pad=2, spread=3, flip=True)
    name = f"implicit_gemm_conv_2d_general_{name}"
    conv_tiled.check_general(driver("steel_conv"), name, dtype, tiling, work, rng)
