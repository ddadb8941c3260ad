"""Gradients of mlx-vlm's kernels as they are, and of the same formulas as functions of arrays.

    python gradients_of_mlx_vlm.py

Prints for each kernel the largest error of the gradients by all inputs, relative to the largest
entry of each. Where mlx-vlm has the formula, it is its own.
"""

import numpy as np
import package_gradients
from package_gradients import Cases, compare, gated_delta_inputs, masks, mx, normal

case = Cases()


@case
def gated_delta():
    from mlx_vlm.models import gated_delta as module

    return package_gradients.gated_delta(module)


@case
def ssm():
    from mlx_vlm.models import ssm as module

    return package_gradients.ssm(module)


@case
def wkv7():
    from mlx_vlm.models.rwkv7 import language as module

    return package_gradients.wkv7(module)


@case
def bitlinear():
    from mlx_vlm.models.bitnet import bitlinear as module

    return package_gradients.bitlinear(module)


@case
def attention_of_residuals():
    from mlx_vlm.models.kimi_k3 import language as module

    return package_gradients.attention_of_residuals(module)


@case
def gated_delta_states():
    """The same with the states of the first steps."""
    from mlx_vlm.models import gated_delta as module

    return max(
        compare(
            lambda *given: module.gated_delta_kernel(*given, state_steps=5),
            lambda *given: module.gated_delta_ops(*given, state_steps=5),
            *gated_delta_inputs(7, 2, 4, 64, 8, vector),
        )
        for vector in (False, True)
    )


@case
def gated_delta_packed():
    """Eight rows of values in a simdgroup, and sums by shuffles."""
    from mlx_vlm.models.qwen3_5 import gated_delta as module

    return compare(
        module.gated_delta_kernel, module.gated_delta_ops, *gated_delta_inputs(6, 1, 2, 128, 16)
    )


@case
def gated_delta_with_states():
    from mlx_vlm.models.qwen3_5 import gated_delta as module

    t, hk, hv, dk, dv, steps = 7, 2, 4, 64, 8, 5
    errors = []
    for mask in masks(t):
        kernel = module._gated_delta_with_states_kernel
        more = [] if mask is None else [mask]
        if more:
            kernel = module._gated_delta_with_states_kernel_masked

        def run(*given, kernel=kernel, more=more):
            return kernel(
                inputs=[*given, t, *more],
                template=[("InT", mx.float32), ("StT", mx.float32), ("Dk", dk), ("Dv", dv),
                          ("Hk", hk), ("Hv", hv), ("StateT", steps)],
                grid=(32, dv, hv), threadgroup=(32, 4, 1),
                output_shapes=[(1, t, hv, dv), given[5].shape, (1, steps, hv, dv, dk)],
                output_dtypes=[mx.float32] * 3,
            )  # fmt: skip

        def formula(*given, mask=mask):
            return module._gated_delta_with_states_ops(*given, mask, steps)

        errors.append(compare(run, formula, *gated_delta_inputs(t, hk, hv, dk, dv)))
    return max(errors)


def hyper_connection_inputs():
    return normal(1, 3, 24), mx.random.uniform(0.5, 1, (3,)), normal(24, scale=0.3)


@case
def hyper_connection():
    """Sinkhorn's iterations and the sum of streams."""
    from mlx_vlm.models.deepseek_v4 import hyper_connection as module

    d = 64  # the kernel leaves out the rest if it is no multiple of 4
    kernel = module._make_hc_sinkhorn_collapse_kernel()

    def run(x, mixes, scale, base):
        return kernel(
            inputs=[x, mixes, scale, base],
            template=[("T", mx.float32), ("U", mx.float32), ("HC", 4), ("ITERS", 3), ("D", d),
                      ("EPS_INT", 1000)],
            grid=(3 * 256, 1, 1), threadgroup=(256, 1, 1),
            output_shapes=[(1, 3, d), (1, 3, 4), (1, 3, 4, 4)], output_dtypes=[mx.float32] * 3,
        )  # fmt: skip

    return compare(
        run, lambda x, *more: module._hc_ops(x, x, *more, 4, 3, 1e-6), normal(1, 3, 4, d),
        *hyper_connection_inputs(),
    )  # fmt: skip


@case
def hyper_connection_split():
    from mlx_vlm.models.deepseek_v4 import hyper_connection as module

    kernel = module._make_hc_sinkhorn_split_kernel()

    def run(mixes, scale, base):
        return kernel(
            inputs=[mixes, scale, base],
            template=[("HC", 4), ("ITERS", 3), ("EPS_INT", 1000)],
            grid=(3 * 32, 1, 1), threadgroup=(32, 1, 1),
            output_shapes=[(1, 3, 4), (1, 3, 4), (1, 3, 4, 4)], output_dtypes=[mx.float32] * 3,
        )  # fmt: skip

    return compare(
        run, lambda *given: module._hc_split_sinkhorn_ops(*given, 4, 3, 1e-6),
        *hyper_connection_inputs(),
    )  # fmt: skip


@case
def short_convolution():
    from mlx_vlm.models.kimi_k3 import language as module

    b, c, size = 3, 40, 4

    def kernel(x, state, w):
        return module._short_conv_kernel(
            inputs=[x, state, w], template=[("T", mx.float32), ("C", c), ("KS", size)],
            grid=(c, b, 1), threadgroup=(c, 1, 1), output_shapes=[x.shape, state.shape],
            output_dtypes=[mx.float32] * 2,
        )  # fmt: skip

    def formula(x, state, w):
        window = mx.concatenate([state, x], axis=1)
        v = (window * w[..., 0].T).sum(1, keepdims=True)
        return [v * mx.sigmoid(v), window[:, 1:]]

    return compare(kernel, formula, normal(b, 1, c), normal(b, size - 1, c), normal(c, size, 1))


@case
def bicubic_interpolation():
    from mlx_vlm.models import kernels as module

    return max(
        compare(
            lambda x, s=size, a=antialias: module.bicubic_interpolate(x, size=s, antialias=a),
            lambda x, s=size, a=antialias: module._bicubic_interpolate_mlx(x, *s, antialias=a),
            normal(2, 3, 9, 11),
        )
        for size, antialias in (((14, 17), False), ((5, 6), True))
    )


@case
def nearest_interpolation():
    from mlx_vlm.models import kernels as module

    return compare(
        lambda x: module.nearest_interpolate(x, size=(14, 7)),
        lambda x: module._nearest_interpolate_mlx(x, 14, 7), normal(2, 3, 9, 11),
    )  # fmt: skip


@case
def grid_sample():
    from mlx_vlm.models import kernels as module

    return compare(
        module.grid_sample, module._grid_sample_mlx, normal(2, 7, 11, 5),
        mx.random.uniform(-0.8, 0.8, (2, 6, 4, 2)),
    )  # fmt: skip


@case
def separable_interpolation():
    from mlx_vlm.models import kernels as module

    iy = mx.random.randint(0, 9, (6, 3)).astype(mx.int32)
    ix = mx.random.randint(0, 11, (5, 4)).astype(mx.int32)
    return compare(
        lambda x, wy, wx: module.separable_interpolate(x, iy, wy, ix, wx),
        lambda x, wy, wx: module._separable_interpolate_mlx(x, iy, wy, ix, wx),
        normal(2, 9, 11, 3), normal(6, 3), normal(5, 4),
    )  # fmt: skip


@case
def rotary_embedding():
    """By angles of positions on three axes, in pairs of both kinds."""
    from mlx_vlm.models import rope_utils as module

    b, heads, t, d, rotary = 2, 3, 5, 48, 32
    positions = mx.random.randint(0, 9, (3, b, t)).astype(mx.int32)
    axes = mx.array(np.arange(rotary // 2) % 3, dtype=mx.int32)
    errors = []
    for pairing in (module._EVEN_ODD, module._HALF_SPLIT):
        kernel = module._mrope_apply_kernel(rotary, 3, pairing)

        def run(x, frequencies, kernel=kernel):
            return kernel(
                inputs=[x, positions, frequencies, axes], template=[("T", mx.float32)],
                grid=(b * heads * t * (d - rotary // 2), 1, 1), threadgroup=(256, 1, 1),
                output_shapes=[x.shape], output_dtypes=[mx.float32],
            )[0]  # fmt: skip

        def formula(x, frequencies, pairing=pairing):
            return module._mrope_apply(x, x, positions, frequencies, axes, pairing)[0]

        errors.append(compare(run, formula, normal(b, heads, t, d), normal(rotary // 2)))
    return max(errors)


@case
def rotary_embedding_of_cosines():
    from mlx_vlm.models import rope_utils as module

    b, heads, t, d, rotary = 2, 3, 5, 48, 32
    kernel = module._rotary_apply_kernel(rotary, module._HALF_SPLIT, 3, False, module._FULL_COS)

    def run(x, cos, sin):
        return kernel(
            inputs=[x, cos, sin], template=[("T", mx.float32)],
            grid=(b * heads * t * (d - rotary // 2), 1, 1), threadgroup=(256, 1, 1),
            output_shapes=[x.shape], output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def formula(x, cos, sin):
        return module._precomputed_rotary(
            x, x, cos, sin, pairing=module._HALF_SPLIT, cos_layout=module._FULL_COS,
            sectioned=False, mrope_section=None,
        )[0]  # fmt: skip

    return compare(run, formula, normal(b, heads, t, d), normal(b, t, rotary), normal(b, t, rotary))


def one_bit_inputs(rows, columns, lines, group):
    weight = mx.random.randint(0, 2**31, (lines, columns // 32)).astype(mx.uint32)
    return weight, (
        normal(rows, columns), normal(lines, columns // group), normal(lines, columns // group)
    )  # fmt: skip


@case
def one_bit_products():
    """With a vector, and by matrices of simdgroups with a matrix."""
    from mlx_vlm.quantization import one_bit as module

    errors = []
    for rows in (2, 20):
        weight, given = one_bit_inputs(rows, 512, 40, 64)

        def kernel(x, scales, biases, weight=weight):
            return module.one_bit_quantized_matmul(x, weight, scales, biases, group_size=64)

        def formula(x, scales, biases, weight=weight):
            return x @ module.dequantize_one_bit(weight, scales, biases, 64).T

        errors.append(compare(kernel, formula, *given))
    return max(errors)


@case
def attention_to_sequences_of_lengths():
    """Attention to sequences of different lengths, by 32 simdgroups."""
    from mlx_vlm.models.qwen3_5 import language as module

    b, heads, kv, t, d = 2, 4, 2, 70, 64
    pads = [0, 7]
    kernel = module._qwen3_5_ragged_sdpa_one_pass_kernel(mx.float32, d, d)

    def run(q, k, v, scale):
        return kernel(
            inputs=[q, k, v, mx.array(pads, dtype=mx.int32), scale, mx.array([t], dtype=mx.int32)],
            template=[("T", mx.float32), ("D_SIZE", d), ("V_SIZE", d), ("NUM_Q_HEADS", heads),
                      ("GQA_FACTOR", heads // kv)],
            grid=(1024, b * heads, 1), threadgroup=(1024, 1, 1), output_shapes=[q.shape],
            output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def formula(q, k, v, scale):
        k, v = (mx.repeat(each, heads // kv, axis=1) for each in (k, v))
        scores = (q @ k.swapaxes(-1, -2)) * scale
        is_padded = mx.arange(t)[None] < mx.array(pads)[:, None]
        scores = mx.where(is_padded[:, None, None], -np.inf, scores)
        return mx.softmax(scores, axis=-1) @ v

    return compare(
        run, formula, normal(b, heads, 1, d), normal(b, kv, t, d), normal(b, kv, t, d),
        mx.array([0.125]),
    )  # fmt: skip


def codes(count, bits, width):
    """Packed codes, and the codes."""
    values = np.random.default_rng(3).integers(0, 2**bits, (count, width))
    packed = np.zeros((count, -(-width * bits // 32) + 1), np.uint64)
    for k in range(width):
        word, offset = divmod(k * bits, 32)
        shifted = values[:, k].astype(np.uint64) << np.uint64(offset)
        packed[:, word] |= shifted & np.uint64(0xFFFFFFFF)
        packed[:, word + 1] |= shifted >> np.uint64(32)
    return packed.astype(np.uint32), mx.array(values)


@case
def scores_of_codes():
    """Products with vectors whose components are codes of 3 bits, and sums of such vectors."""
    from mlx_vlm import turboquant as module

    b, h, r, t, d, bits = 1, 2, 3, 5, 64, 3
    packed, values = codes(b * h * t, bits, d)
    packed, values = mx.array(packed.reshape(b, h, t, -1)), values.reshape(b, h, t, d)
    width = packed.shape[-1]
    template = [("Dim", d), ("Bits", bits), ("PackedWidth", width)]

    def score(q, norms, codebook):
        return module._mse_score_kernel()(
            inputs=[q, norms, packed, codebook], template=template, grid=(32, r, b * h * t),
            threadgroup=(32, 1, 1), output_shapes=[(b, h, r, t)], output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def weighted(weights, norms, codebook):
        return module._mse_weighted_rot_kernel()(
            inputs=[weights, norms, packed, codebook], template=template, grid=(32, d, b * h * r),
            threadgroup=(32, 1, 1), output_shapes=[(b, h, r, d)], output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def vectors(norms, codebook):
        return codebook[values] * norms[..., None]

    given = mx.random.uniform(0.5, 1, (b, h, t)), normal(2**bits)
    return max(
        compare(
            score, lambda q, n, c: q @ vectors(n, c).swapaxes(-1, -2), normal(b, h, r, d), *given
        ),
        compare(weighted, lambda w, n, c: w @ vectors(n, c), normal(b, h, r, t), *given),
    )


if __name__ == "__main__":
    case.print()
