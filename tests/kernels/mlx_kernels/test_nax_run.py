"""MLX's kernels for the matrix units of newer GPUs (NAX), which use matmul2d of Metal 4."""

import pytest
from mlx_headers import driver
from mlx_tree import attention, gemm, quantized
from mlx_tree.agreement import BFLOAT, FLOAT, HALF
from mlx_tree.gemm import Tiling
from mlx_tree.quantized import Entry

#: tests/msl/test_tensors.py has the same operations in small.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "dtype", "tiling"),
    [
        ("gemm_nt_float", FLOAT, Tiling(64, 64, 64, 2, 2, transpose_b=True)),
        ("gemm_tn_half", HALF, Tiling(64, 64, 64, 2, 2, transpose_a=True)),
    ],
)
@pytest.mark.parametrize("unaligned", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.sample(1)
def test_product(name, dtype, tiling, unaligned, rng):
    source = "axpby" if unaligned else "none"
    gemm.check_fused(
        driver("nax_gemm"), name, dtype, tiling, rng, unaligned=unaligned, source=source
    )


@pytest.mark.slow
def test_quantized_product(rng):
    flags = {"alN": "true", "batch": "0", "bm": "32", "bn": "64", "wm": "2", "wn": "2"}
    entry = Entry("affine", "qmm_t", BFLOAT, 64, 4, flags, nax=True)
    quantized.check_entry(driver("nax_quantized"), "affine_qmm_t_nax_bfloat", entry, rng)


@pytest.mark.parametrize("unaligned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_attention(unaligned, rng):
    if unaligned:
        work = attention.scene(
            rng, HALF, heads=2, queries=69, keys=67, size=64, mask=bool, sinks=True
        )
    else:
        work = attention.scene(rng, HALF, heads=2, queries=64, keys=64, size=64, causal=True)
    attention.check_tiled(driver("nax_attention"), "attention_nax_half", work, 64, 32)
