"""MLX's matrix products: vectors, tiles, and matrices in few bits a number."""

import pytest
from mlx_headers import driver, kernel
from mlx_tree import gemm, gemm_indexed, gemv, masked, quantize, quantized
from mlx_tree.agreement import BFLOAT, FLOAT, HALF, NAMES
from mlx_tree.dot import check_dot
from mlx_tree.gemm import Tiling
from mlx_tree.quantized import Entry

DTYPES = pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
FLOAT_AND_BFLOAT = pytest.mark.parametrize(
    "dtype", [FLOAT, pytest.param(BFLOAT, marks=pytest.mark.slow)], ids=NAMES.get
)

#: The blocks of a driver's instances: BM, BN, SM, SN, TM, TN.
GEMV_BLOCKS = {"tall": (8, 1, 1, 32, 4, 4), "small": (1, 1, 8, 4, 4, 4), "row": (1, 8, 1, 32, 4, 4)}
GEMV_T_BLOCKS = {"": (1, 2, 8, 4, 4, 1), "_tall": (8, 4, 8, 4, 4, 4)}


@DTYPES
@pytest.mark.parametrize("form", GEMV_BLOCKS)
@pytest.mark.sample(2)
def test_matrix_times_vector(form, dtype, rng):
    run = kernel("gemv", f"gemv_{NAMES[dtype]}_{form}")
    for sizes in (None, (4, 1), (31, 33), (65, 4097)):
        gemv.check_gemv(run, dtype, GEMV_BLOCKS[form], rng, sizes=sizes)


@DTYPES
@pytest.mark.parametrize("form", GEMV_T_BLOCKS)
@pytest.mark.sample(1)
def test_vector_times_matrix(form, dtype, rng):
    run = kernel("gemv", f"gemv_t_{NAMES[dtype]}{form}")
    for sizes in (None, (8, 1), (104, 1000)):
        gemv.check_gemv(run, dtype, GEMV_T_BLOCKS[form], rng, transposed=True, sizes=sizes)


@DTYPES
@pytest.mark.sample(1)
def test_product_plus_bias_in_a_batch_of_two_axes(dtype, rng):
    options = {"batch": (2, 3), "with_bias": True}
    run = kernel("gemv", f"gemv_{NAMES[dtype]}_axpby")
    gemv.check_gemv(run, dtype, (4, 1, 1, 32, 1, 4), rng, **options)
    run = kernel("gemv", f"gemv_t_{NAMES[dtype]}_axpby")
    gemv.check_gemv(run, dtype, (1, 4, 8, 4, 4, 4), rng, transposed=True, **options)


@FLOAT_AND_BFLOAT
def test_a_few_vectors_at_a_time(dtype, rng):
    gemv.check_wide(driver("gemv"), f"gemv_wide_{NAMES[dtype]}", dtype, 4, 32, rng)


def test_gathered_products(rng):
    library = driver("gemv")
    gemv.check_gather(library.gemv_gather_float, FLOAT, (4, 1, 1, 32, 4, 4), rng)
    gemv.check_gather(library.gemv_t_gather_float, FLOAT, (1, 4, 8, 4, 4, 4), rng, transposed=True)
    gemv.check_wide(library, "gemv_wide_gather_float", FLOAT, 4, 8, rng, gather=True)


@pytest.mark.parametrize(
    ("name", "dtype", "masks"),
    [("float_bool_bool", FLOAT, ("bool_", "bool_")),
     pytest.param("float_float_none", FLOAT, ("float32", "nomask"), marks=pytest.mark.slow),
     ("half_none_bool", HALF, ("nomask", "bool_"))],
)  # fmt: skip
@pytest.mark.sample(1)
def test_masked_products(name, dtype, masks, rng):
    run = kernel("gemv_masked", f"gemv_masked_{name}")
    masked.check_masked_gemv(run, dtype, (2, 1, 2, 16, 4, 4), rng, masks=masks)
    run = kernel("gemv_masked", f"gemv_t_masked_{name}")
    masked.check_masked_gemv(run, dtype, (1, 2, 8, 4, 4, 4), rng, masks=masks, transposed=True)


@DTYPES
@pytest.mark.sample(1)
def test_dot_product(dtype, rng):
    check_dot(kernel("dot", f"dot_product_{NAMES[dtype]}"), dtype, 32, 256, rng)


@FLOAT_AND_BFLOAT
@pytest.mark.parametrize(
    ("unaligned", "source"),
    [
        (False, "none"),
        pytest.param(True, "add", marks=pytest.mark.slow),
        pytest.param(True, "axpby", marks=pytest.mark.slow),
    ],
)
def test_tiled_product(unaligned, source, dtype, rng):
    tiling = Tiling(64, 64, 16, 2, 2, transpose_b=True)
    library = driver("steel_gemm_fused")
    gemm.check_fused(
        library, f"gemm_{NAMES[dtype]}", dtype, tiling, rng, unaligned=unaligned, source=source
    )


@FLOAT_AND_BFLOAT
def test_tiled_product_with_a_split_inner_axis(dtype, rng):
    tiling, name = Tiling(32, 32, 16, 2, 2), NAMES[dtype]
    run = kernel("steel_gemm_splitk", f"gemm_splitk_{name}")
    gemm.check_split(run, dtype, tiling, rng, unaligned_mn=True, unaligned_k=False)
    for form, axpby in (("accum", False), ("accum_axpby", True)):
        run = kernel("steel_gemm_splitk", f"gemm_splitk_{form}_{name}")
        gemm.check_accumulation(run, dtype, rng, axpby=axpby)


@FLOAT_AND_BFLOAT
def test_tiled_products_of_chosen_matrices(dtype, rng):
    tiling = Tiling(32, 32, 16, 2, 2, transpose_b=True)
    library, name = driver("steel_gemm_gather"), f"gather_mm_{NAMES[dtype]}"
    gemm_indexed.check_gather(library, name, dtype, tiling, rng, unaligned=True)


@pytest.mark.slow
@FLOAT_AND_BFLOAT
def test_tiled_products_of_segments(dtype, rng):
    tiling = Tiling(64, 64, 16, 2, 2, transpose_a=True)
    library, name = driver("steel_gemm_segmented"), f"segmented_mm_{NAMES[dtype]}"
    gemm_indexed.check_segments(library, name, dtype, tiling, rng, unaligned=True)


@FLOAT_AND_BFLOAT
def test_masked_tiled_product(dtype, rng):
    run, tiling = (
        kernel("steel_gemm_masked", f"block_masked_gemm_{NAMES[dtype]}"),
        Tiling(32, 32, 16, 2, 2),
    )
    masks = ("bool_", "float32")
    masked.check_masked_gemm(
        run, dtype, tiling, rng, masks=masks, unaligned_mn=False, unaligned_k=True
    )


#: Template arguments of the driver's instances that the names do not say.
QUANTIZED_FLAGS = {
    "qmv": {"batch": "1"}, "qmv_fast": {}, "qmv_quad": {"d": "64"}, "qmm_t": {"alN": "true"},
    "qmm_n": {}, "qvm": {}, "qmv_wide": {"nv": "4", "kl": "8"}, "qvm_split_k": {"spk": "8"},
    "gather_qmv": {}, "gather_qmm_t": {"alN": "false"},
}  # fmt: skip
FAST = {"qmv", "qmm_t"}


@pytest.mark.parametrize(
    "form",
    [form if form in FAST else pytest.param(form, marks=pytest.mark.slow) for form in QUANTIZED_FLAGS],
)  # fmt: skip
@pytest.mark.parametrize(("dtype", "bits"), [(FLOAT, 4), (BFLOAT, 3)], ids=str)
@pytest.mark.sample(1)
def test_quantized_product(form, dtype, bits, rng):
    if form == "qmv_quad" and bits == 3:
        pytest.skip("a kernel for codes that fill words: those of 2, 4 and 8 bits")
    entry = Entry("affine", form, dtype, 64, bits, QUANTIZED_FLAGS[form])
    quantized.check_entry(driver("quantized"), f"affine_{form}_{NAMES[dtype]}_{bits}", entry, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "bits"), [(FLOAT, 4), (BFLOAT, 3)], ids=str)
def test_quantization(dtype, bits, rng):
    entry = Entry("affine", "", dtype, 64, bits)
    for form in ("quantize", "dequantize"):
        run = kernel("quantized", f"affine_{form}_{NAMES[dtype]}_{bits}")
        getattr(quantize, f"check_affine_{form}")(run, entry, rng)
