"""MLX's wheel is an optional dependency of these tests."""

import pytest
from mlx_headers import include_folder

import metalloid as mtl

#: Tests of 6 to 24 seconds each, mostly compilation; faster ones run the same kernels in other types.
SLOW = (
    "test_attention_by_tiles[float]", "test_matrix_times_vector[row-bfloat]",
    "test_matrix_times_vector[small-half]", "test_vector_times_matrix[_tall-bfloat]",
    "test_gated_delta_update[fused_chunk-float]", "test_own_kernels[layer_norm]",
    "test_convolution_by_tiles[float]", "test_gathered_products",
    "test_a_few_vectors_at_a_time[float]", "test_tiled_products_of_chosen_matrices[float]",
    "test_quantized_product[float32-4-qmv]", "test_tiled_product_with_a_split_inner_axis[float]",
    "test_masked_products[float_bool_bool-dtype0-masks0]", "test_layer_norm[True-bfloat]",
    "test_product_plus_bias_in_a_batch_of_two_axes[float]", "test_fft[60]",
    "test_sums_of_complex",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in SLOW and "mlx_kernels" in item.nodeid:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _mlx_headers():
    if include_folder() is None:
        pytest.skip("the headers of the mlx-cpu wheel are not installed")


@pytest.fixture
def relaxed_barriers():
    """Some kernels of MLX rely on barriers that threads which have returned need not reach."""
    with mtl.config.scope(strict_barriers=False):
        yield
