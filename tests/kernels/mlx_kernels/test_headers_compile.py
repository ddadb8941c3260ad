"""Every kernel header of MLX compiles, and each of its kernels becomes machine code."""

import pytest
from mlx_headers import (
    driver,
    header_folder,
    headers_library,
    include_folder,
    kernels_of,
    template_of,
)

#: Driver by header. A driver includes what the header needs, in the order of MLX's own files, and
#: instantiates the kernels.
DRIVERS = {
    "arange.h": "arange",
    "binary.h": "binary",
    "binary_two.h": "binary_two",
    "copy.h": "copy",
    "cross_entropy.h": "cross_entropy",
    "dot.h": "dot",
    "fft.h": "fft",
    "fp_quantized.h": "fp_quantized",
    "gated_delta_update.h": "gated_delta_update",
    "gated_delta_update_vjp.h": "gated_delta_update_vjp",
    "gemv.h": "gemv",
    "gemv_masked.h": "gemv_masked",
    "hadamard.h": "hadamard",
    "indexing/gather_axis.h": "indexing",
    "indexing/gather_front.h": "indexing",
    "indexing/masked_scatter.h": "indexing",
    "indexing/scatter.h": "indexing",
    "indexing/scatter_axis.h": "indexing",
    "logsumexp.h": "logsumexp",
    "quantized.h": "quantized",
    "reduction/reduce_all.h": "reduce",
    "reduction/reduce_col.h": "reduce",
    "reduction/reduce_init.h": "reduce",
    "reduction/reduce_row.h": "reduce",
    "scan.h": "scan",
    "sdpa_blocked.h": "sdpa_blocked",
    "sdpa_vector.h": "sdpa_vector",
    "searchsorted.h": "searchsorted",
    "softmax.h": "softmax",
    "sort.h": "sort",
    "steel/attn/kernels/steel_attention.h": "steel_attention",
    "steel/conv/kernels/steel_conv.h": "steel_conv",
    "steel/conv/kernels/steel_conv_3d.h": "steel_conv",
    "steel/conv/kernels/steel_conv_general.h": "steel_conv",
    "steel/gemm/kernels/steel_gemm_fused.h": "steel_gemm_fused",
    "steel/gemm/kernels/steel_gemm_gather.h": "steel_gemm_gather",
    "steel/gemm/kernels/steel_gemm_masked.h": "steel_gemm_masked",
    "steel/gemm/kernels/steel_gemm_segmented.h": "steel_gemm_segmented",
    "steel/gemm/kernels/steel_gemm_splitk.h": "steel_gemm_splitk",
    "ternary.h": "ternary",
    "unary.h": "unary",
}

#: Headers without kernels, and what must be included before them.
NAX = ("utils.h", "quantized_utils.h", "steel/gemm/gemm.h", "steel/gemm/gemm_nax.h")
PARTS = {
    "atomic.h": (),
    "bf16.h": (),
    "bf16_math.h": ("utils.h",),
    "binary_ops.h": ("utils.h",),
    "cexpf.h": ("utils.h",),
    "complex.h": (),
    "defines.h": (),
    "erf.h": ("utils.h",),
    "expm1f.h": ("utils.h",),
    "fft/radix.h": (),
    "fft/readwrite.h": (),
    "fp4.h": ("utils.h",),
    "fp8.h": ("utils.h",),
    "indexing/gather.h": ("utils.h",),
    "indexing/indexing.h": ("utils.h",),
    "logging.h": (),
    "quantized_utils.h": ("utils.h",),
    "reduce.h": ("utils.h", "reduce_utils.h"),
    "reduce_utils.h": ("utils.h",),
    "reduction/ops.h": ("utils.h", "atomic.h"),
    "steel/attn/attn.h": ("utils.h",),
    "steel/attn/loader.h": (),
    "steel/attn/mma.h": ("utils.h",),
    "steel/attn/params.h": (),
    "steel/attn/transforms.h": (),
    "steel/conv/conv.h": ("utils.h",),
    "steel/conv/loader.h": ("steel/defines.h",),
    "steel/conv/loaders/loader_channel_l.h": ("steel/defines.h",),
    "steel/conv/loaders/loader_channel_n.h": ("steel/defines.h",),
    "steel/conv/loaders/loader_general.h": ("steel/conv/params.h",),
    "steel/conv/params.h": (),
    "steel/defines.h": (),
    "steel/gemm/gemm.h": ("utils.h",),
    "steel/gemm/loader.h": (),
    "steel/gemm/mma.h": ("utils.h",),
    "steel/gemm/params.h": (),
    "steel/gemm/transforms.h": (),
    "steel/utils.h": (),
    "steel/utils/integral_constant.h": (),
    "steel/utils/type_traits.h": (),
    "ternary_ops.h": (),
    "unary_ops.h": ("utils.h",),
    "utils.h": (),
    # Their kernels run in test_nax_run.py.
    "fp_quantized_nax.h": NAX,
    "gated_delta_nax_ops.h": NAX,
    "gated_delta_update_nax.h": NAX,
    "gated_delta_update_nax_vjp.h": NAX,
    "quantized_nax.h": NAX,
    "steel/attn/kernels/steel_attention_nax.h": ("utils.h",),
    "steel/attn/nax.h": ("utils.h",),
    "steel/gemm/gemm_nax.h": NAX,
    "steel/gemm/kernels/steel_gemm_fused_nax.h": NAX,
    "steel/gemm/kernels/steel_gemm_gather_nax.h": NAX,
    "steel/gemm/kernels/steel_gemm_segmented_nax.h": NAX,
    "steel/gemm/kernels/steel_gemm_splitk_nax.h": NAX,
    "steel/gemm/kernels/steel_gemm_thin_nax.h": NAX,
    "steel/gemm/nax.h": ("utils.h",),
}

#: Drivers of our own kernels, which use headers without kernels.
OWN_DRIVERS = ("layer_norm", "numbers", "reduce_complex", "steel_loaders")

#: Function constants of kernels that compute nothing without them.
CONSTANTS = {
    "fft": {"elems_per_thread_": 8, "is_power_of_2_": True, "radix_8_steps_": 2,
            "rader_4_steps_": 2, "rader_m_": 1},
    "gemv": {"gemv_wide_has_batch": True, "gemv_wide_do_axpby": True},
    "sdpa_vector": {"has_mask": True, "float_mask": True, "has_sinks": True, "blocks": 32},
}  # fmt: skip


def compile_instances(driver_name, header, first_only):
    """Compile the driver's instances of the header's kernels (of all kernels without a header)."""
    library = driver(driver_name)
    templates = kernels_of(header) if header else list(library.functions)
    left = set(templates)
    for instance in library.functions:
        template = template_of(instance, templates)
        if template is not None and (template in left or not first_only):
            left.discard(template)
            assert library.function(instance, CONSTANTS.get(driver_name)).name == instance
    assert not left, f"no instance of {left} in the driver"


#: The largest headers whose kernels run in the files next to this one, or twins of these.
RUN_ELSEWHERE = (
    "binary.h", "binary_two.h", "copy.h", "fft.h", "fp_quantized.h", "gated_delta_update.h", "gemv.h",
    "quantized.h", "sdpa_vector.h", "sort.h",
    "steel/attn/kernels/steel_attention.h", "steel/conv/kernels/steel_conv.h",
    "steel/gemm/kernels/steel_gemm_fused.h", "steel/gemm/kernels/steel_gemm_gather.h",
    "steel/gemm/kernels/steel_gemm_segmented.h", "unary.h",
)  # fmt: skip


@pytest.mark.parametrize(
    "header",
    [pytest.param(h, marks=pytest.mark.slow) if h in RUN_ELSEWHERE else h for h in DRIVERS],
)
@pytest.mark.sample(6)
def test_one_instance_of_each_kernel(header):
    compile_instances(DRIVERS[header], header, first_only=True)


@pytest.mark.slow
@pytest.mark.parametrize("header", DRIVERS)
def test_all_instances(header):
    compile_instances(DRIVERS[header], header, first_only=False)


@pytest.mark.parametrize(
    "driver_name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "reduce_complex" else name
        for name in OWN_DRIVERS
    ],
)
def test_own_kernels(driver_name):
    compile_instances(driver_name, None, first_only=False)


@pytest.mark.parametrize("header", PARTS)
@pytest.mark.sample(10)
def test_parts(header):
    headers_library(*PARTS[header], header)


def test_no_header_is_forgotten():
    there = {
        header.relative_to(header_folder()).as_posix() for header in header_folder().rglob("*.h")
    }
    assert there == {*DRIVERS, *PARTS}
    assert include_folder() is not None
