"""Unsupported features of Metal: the names that use them, and the messages.

A text is refused for such a name only where clang does not know it either: an author's own
``struct mesh`` is as good as any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from metalloid.msl.diagnostics import Diagnostic

_NAMES = {
    "ray tracing": """
        raytracing metal_raytracing intersector intersection_query intersection_result
        intersection_params acceleration_structure primitive_acceleration_structure
        instance_acceleration_structure intersection_function_table intersection_function_buffer
        ray_data triangle_intersection_params curve_intersection_params triangle_data curve_data
        instancing world_space_data primitive_motion instance_motion""",
    "function tables": "visible_function_table visible_function_buffer",
    "mesh and object functions": """
        mesh mesh_grid_properties object_data payload amplification_id amplification_count
        primitive_culled""",
    "imageblocks and tile functions": """
        imageblock imageblock_slice imageblock_data implicit_imageblock_data
        explicit_imageblock_data threadgroup_imageblock imageblock_layout_explicit
        imageblock_layout_implicit user_data thread_position_in_tile""",
    "stage inputs": "stage_in",
    "the render pipeline": """
        dfdx dfdy fwidth discard_fragment get_sample_position get_num_samples sample_mask
        raster_order_group render_target_array_index viewport_array_index barycentric_coord
        rasterization_rate_map_data rasterization_rate_map_decoder simd_is_helper_thread
        calculate_clamped_lod calculate_unclamped_lod""",
    "pixel data types": """
        r8unorm r8snorm r16unorm r16snorm rg8unorm rg8snorm rg16unorm rg16snorm rgba8unorm
        rgba8snorm rgba16unorm rgba16snorm srgba8unorm rgb10a2 rg11b10f rgb9e5""",
    "tessellation": """
        patch patch_id patch_control_point position_in_patch MTLQuadTessellationFactorsHalf
        MTLTriangleTessellationFactorsHalf""",
    "interpolants": "interpolant interpolation",
    "indirect command buffers": """
        command_buffer render_command compute_command render_pipeline_state
        compute_pipeline_state""",
    "tensor operations other than matmul2d": """
        convolution2d convolution2d_descriptor reduce_rows reduce_columns reduction_operation
        reduction_operation_identity map_iterator is_iterator_compatible
        get_row_reduction_destination_cooperative_tensor
        get_column_reduction_destination_cooperative_tensor""",
    "simdgroups of a number known at run time only": "execution_dsimdgroups",
    "elements of less than a byte": """
        int4b_format uint4b_format int2b_format uint2b_format fp4_format fp8_format""",
    "sparse textures": "sparse_sample sparse_sample_compare sparse_read sparse_gather sparse_color",
    "bicubic filtering": "bicubic",
    "textures of this kind": "texture2d_ms_array depth2d_ms_array depthcube_array",
}
_SINGULAR = ("ray tracing", "the render pipeline", "tessellation", "bicubic filtering")
#: What kernels have in Metal as well.
_OF_KERNELS = (
    "sparse textures", "bicubic filtering", "textures of this kind",
    "tensor operations other than matmul2d", "simdgroups of a number known at run time only",
    "elements of less than a byte",
)  # fmt: skip
#: Supported features that a text gets by including a header.
_HEADER_FEATURES = {
    **dict.fromkeys(
        ("tensor", "tensor_handle", "tensor_inline", "tensor_offset", "extents", "dextents"),
        "<metal_tensor>",
    ),
    **dict.fromkeys(
        ("mpp", "tensor_ops", "matmul2d", "matmul2d_descriptor", "cooperative_tensor",
         "execution_thread", "execution_simdgroup", "execution_simdgroups"),
        "<MetalPerformancePrimitives/MetalPerformancePrimitives.h>",
    ),
}  # fmt: skip
_FEATURES = {name: feature for feature, names in _NAMES.items() for name in names.split()}
_OS_LOG = "Metal has no printf: #include <metal_logging>, and call os_log_default.log(...)"
#: Names of other languages, and what Metal has instead.
_INSTEAD = dict.fromkeys(("printf", "fprintf", "puts"), _OS_LOG) | dict.fromkeys(
    ("cout", "cerr"), _OS_LOG.replace("printf", "streams")
)
_UNDECLARED = re.compile(r"(use of undeclared identifier|no member named) '(\w+)'")
_NOT_IN_USE = re.compile(r"use of undeclared identifier '(\w+)'; did you mean 'metal::\1'\?")
_QUOTED = re.compile(r"'([^']*)'")
_WORD = re.compile(r"\w+")


def refusal(name: str) -> str | None:
    """The message for a text that uses `name`; None if nothing is known against it.

    Examples
    --------
    >>> refusal("intersector")
    "ray tracing ('intersector') is not supported: metalloid runs compute kernels only"
    """
    if header := _HEADER_FEATURES.get(name):
        return f"{name!r} needs #include {header}"
    feature = _FEATURES.get(name)
    if feature is None:
        return None
    text = f"{feature} ({name!r}) {'is' if feature in _SINGULAR else 'are'} not supported"
    return text if feature in _OF_KERNELS else f"{text}: metalloid runs compute kernels only"


def named_refusal(messages: Iterable[Diagnostic]) -> Diagnostic | None:
    """The one error to show instead of `messages`, if one is about a feature that stays out."""
    for message in messages:
        if not message.is_error:
            continue
        # What the message is about comes first: "no member named 'intersector' in namespace ...".
        quoted = _QUOTED.search(message.message)
        quoted_text = quoted[1] if quoted else message.source_line[message.column - 1 :]
        name = _WORD.search(quoted_text)
        if name and (text := refusal(name[0])):
            return replace(message, message=text)
    return None


def with_hint(message: Diagnostic) -> Diagnostic:
    """The error with what to do about it, if it is about a name that Metal has elsewhere.

    Examples
    --------
    >>> unknown = "use of undeclared identifier 'sin'; did you mean 'metal::sin'?"
    >>> with_hint(Diagnostic("error", "a.metal", 1, 1, unknown)).message
    "use of undeclared identifier 'sin'; #include <metal_stdlib>, then 'using namespace metal;'"
    """
    if match := _NOT_IN_USE.match(message.message):
        advice = "#include <metal_stdlib>, then 'using namespace metal;'"
        text = f"use of undeclared identifier '{match[1]}'; {advice}"
        return replace(message, message=text)
    match = _UNDECLARED.match(message.message)
    if match and (instead := _INSTEAD.get(match[2])):
        return replace(message, message=f"{match[0]}; {instead}")
    return message
