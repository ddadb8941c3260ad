"""Gradients of mlx-lm's kernels, and of the same formulas as functions of arrays.

    python gradients_of_mlx_lm.py

Prints for each kernel the largest error of the gradients by all inputs, relative to the largest
entry of each. mlx-lm is as it is, but for a barrier that its divergences lack.
"""

import functools
import math

import numpy as np
from package_gradients import Cases, compare, masked, mx, normal, rms

RACE = "max_p = simd_max(max_p);\n\n        // Share the sum_exp"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
case = Cases()
_metal_kernel = mx.fast.metal_kernel


def with_barrier(*args, source, **named):
    head, _, tail = RACE.partition("\n\n")
    return _metal_kernel(*args, source=source.replace(RACE, f"{head}\n{BARRIER}\n{tail}"), **named)


def softmax_of(x):
    return mx.softmax(x, axis=-1)


def logs_of(x):
    return x - mx.logsumexp(x, axis=-1, keepdims=True)


def kl_of(q, p):
    return (softmax_of(p) * (logs_of(p) - logs_of(q))).sum(-1)


def kl_q_of(q, p):
    """The divergence of q from the mean of q and p."""
    q, p = logs_of(q), logs_of(p)
    return (mx.exp(q) * (math.log(2) - mx.log(1 + mx.exp(p - q)))).sum(-1)


def js_of(q, p):
    return 0.5 * (kl_q_of(q, p) + kl_q_of(p, q))


def rows(kernel, outputs, *inputs):
    q = inputs[0]
    return kernel(
        inputs=list(inputs), output_shapes=outputs, output_dtypes=[mx.float32] * len(outputs),
        template=[("T", mx.float32), ("V", q.shape[-1])],
        grid=(1024, q.shape[0], 1), threadgroup=(1024, 1, 1),
    )  # fmt: skip


def logits(count=4999):
    return normal(3, count), normal(3, count)


@case
def kl_forward():
    from mlx_lm.tuner import losses

    return compare(lambda q, p: rows(losses._kl_forward_kernel, [(3,)], q, p)[0], kl_of, *logits())


@case
def kl_backward():
    """The adjoint of the kernel that is the hand-written adjoint of the one before."""
    from mlx_lm.tuner import losses

    return compare(
        lambda q, p, c: rows(losses._kl_backward_kernel, [q.shape], q, p, c)[0],
        lambda q, p, c: c[:, None] * (softmax_of(q) - softmax_of(p)),
        *logits(), normal(3),
    )  # fmt: skip


@case
def kl_div_loss_by_its_backward_kernel():
    from mlx_lm.tuner import losses

    q, p = logits()
    return compare(lambda q: losses.kl_div_loss(q, p), lambda q: kl_of(q, p), q)


@case
def js_forward():
    from mlx_lm.tuner import losses

    return compare(
        lambda q, p: rows(losses._js_forward_kernel, [(3,), (3,)], q, p)[0], js_of, *logits()
    )


@case
def js_backward():
    from mlx_lm.tuner import losses

    def formula(q, p, c, kl):
        q, p = logs_of(q), logs_of(p)
        inner = math.log(2) - mx.log(1 + mx.exp(p - q)) - kl[:, None]
        return c[:, None] * 0.5 * mx.exp(q) * inner

    return compare(
        lambda *given: rows(losses._js_backward_kernel, [given[0].shape], *given)[0],
        formula, *logits(), normal(3), normal(3),
    )  # fmt: skip


@case
def js_div_loss_by_its_backward_kernel():
    from mlx_lm.tuner import losses

    q, p = logits()
    return compare(lambda q: losses.js_div_loss(q, p), lambda q: js_of(q, p), q)


@case
def gated_delta():
    from mlx_lm.models import gated_delta as module

    b, t, hk, hv, dk, dv = 1, 9, 2, 4, 64, 8
    errors = []
    for vector in (False, True):
        for mask in (None, mx.array(np.arange(t)[None] >= 3)):
            gate = mx.random.uniform(0.5, 1, (b, t, hv, dk) if vector else (b, t, hv))
            given = [
                normal(b, t, hk, dk, scale=0.3), normal(b, t, hk, dk, scale=0.1),
                normal(b, t, hv, dv), gate, mx.random.uniform(0, 1, (b, t, hv)),
                normal(b, hv, dv, dk),
            ]  # fmt: skip
            kernel = functools.partial(masked, module.gated_delta_kernel, mask)
            errors.append(compare(kernel, functools.partial(masked, module.gated_delta_ops, mask),
                                  *given))  # fmt: skip
    return max(errors)


@case
def ssm():
    from mlx_lm.models import ssm as module

    n, h, d, groups, ds = 2, 4, 16, 2, 64

    def kernel(x, a_log, b, c, skip, dt, state):
        return module._ssm_kernel(
            inputs=[x, a_log, b, c, skip, dt, state],
            template=[("T", mx.float32), ("U", mx.float32), ("Dh", d), ("Ds", ds), ("H", h),
                      ("G", h // groups)],
            grid=(32, d, h * n), threadgroup=(32, 8, 1),
            output_shapes=[(n, 1, h, d), state.shape], output_dtypes=[mx.float32] * 2,
        )  # fmt: skip

    def formula(x, a_log, b, c, skip, dt, state):
        b, c = (mx.repeat(each, h // groups, axis=1)[:, :, None] for each in (b, c))
        decay = mx.exp(-mx.exp(a_log) * dt)[..., None, None]
        state = decay * state + (x[:, 0] * dt[..., None])[..., None] * b
        return [((state * c).sum(-1) + x[:, 0] * skip[:, None])[:, None], state]

    return compare(
        kernel, formula, normal(n, 1, h, d), normal(h, scale=0.3), normal(n, groups, ds),
        normal(n, groups, ds), normal(h), mx.random.uniform(0.1, 1, (n, h)), normal(n, h, d, ds),
    )  # fmt: skip


@case
def wkv7():
    from mlx_lm.models import rwkv7 as module

    b, t, h, d = 1, 6, 2, 64

    def formula(r, w, k, v, a, b_, state):
        results = []
        for step in range(t):
            at = [each[:, step] for each in (r, w, k, v, a, b_)]
            y, state = module._wkv7_step_ops(*at, state)
            results.append(y[..., 0])
        return [mx.stack(results, axis=1), state]

    given = [normal(b, t, h, d, scale=0.2) for _ in range(6)]
    given[1] = mx.random.uniform(0.5, 1, (b, t, h, d))
    return compare(module.wkv7_kernel, formula, *given, normal(b, h, d, d))


@case
def bitlinear():
    from mlx_lm.models import bitlinear_layers as module

    columns, lines = 256, 32
    packed = mx.random.randint(0, 256, (lines // 4, columns)).astype(mx.uint8)
    bits = np.array(packed).astype(int)
    weight = mx.array(np.concatenate([(bits >> 2 * k & 3) - 1 for k in range(4)]), dtype=mx.float32)

    def kernel(x, scale):
        return module._bitlinear_kernel(
            inputs=[x, packed, scale],
            template=[("T", mx.float32), ("invert_weight_scales", True), ("in_features", columns),
                      ("out_features", lines)],
            grid=(32, x.shape[0] * lines // 4, 1), threadgroup=(32, 1, 1),
            output_shapes=[(x.shape[0], lines)], output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    return compare(kernel, lambda x, s: x @ weight.T / s, normal(3, columns), mx.array([1.7]))


@case
def qk_norm():
    from mlx_lm.kernels import qk_norm as kernel

    heads, kv, d = 4, 2, 48

    def formula(x):
        parts = x[..., : (heads + kv) * d].reshape(*x.shape[:-1], heads + kv, d)
        return [rms(parts[..., :heads, :]) * 0.3, rms(parts[..., heads:, :])]

    sizes = {"n_heads": heads, "n_kv_heads": kv, "head_dim": d, "eps": 1e-5, "query_scale": 0.3}
    return compare(lambda x: kernel(x, **sizes), formula, normal(2, 5, 2 * (heads + kv) * d))


@case
def qk_norm_rope():
    from mlx_lm.kernels import qk_norm_rope as kernel

    heads, kv, d = 4, 2, 64

    def rope(x):
        rotated = mx.fast.rope(x.swapaxes(-2, -3), d, traditional=True, base=1e4, scale=1, offset=3)
        return rotated.swapaxes(-2, -3)

    def formula(x):
        parts = x[..., : (heads + kv) * d].reshape(*x.shape[:-1], heads + kv, d)
        return [rope(rms(parts[..., :heads, :]) * 0.3), rope(rms(parts[..., heads:, :]))]

    sizes = {"n_heads": heads, "n_kv_heads": kv, "head_dim": d, "eps": 1e-5, "query_scale": 0.3}
    sizes |= {"rope_base": 1e4, "offset": 3}
    return compare(lambda x: kernel(x, **sizes), formula, normal(2, 5, 2 * (heads + kv) * d))


@case
def rms_norm_sigmoid_gate():
    from mlx_lm.kernels import rms_norm_sigmoid_gate as kernel

    b, h, n, d = 2, 4, 5, 48

    def formula(x, gate):
        return rms(x).swapaxes(1, 2).reshape(b, n, h * d) * mx.sigmoid(gate)

    return compare(
        lambda x, g: kernel(x, g, eps=1e-5), formula, normal(b, h, n, d), normal(b, n, h * d)
    )


@case
def norm_add_norm():
    from mlx import nn
    from mlx_lm.kernels import norm_add_norm as kernel

    d = 600
    norm = nn.RMSNorm(d, eps=1e-5)
    norm.weight = normal(d)

    def run(branch, stream, alpha, beta, weight):
        return kernel(
            branch, stream, alpha=alpha, beta=beta, post_weight=weight, post_eps=1e-5,
            next_norm=norm,
        )  # fmt: skip

    def formula(branch, stream, alpha, beta, weight):
        total = alpha * stream + beta * rms(weight * branch)
        return [total, rms(total) * norm.weight]

    return compare(run, formula, normal(3, d), normal(3, d), normal(d), normal(d), normal(d))


@case
def post_expert_norm_combine():
    from mlx_lm.kernels import post_expert_norm_combine as kernel

    k, d = 3, 500

    def formula(experts, weights, norm_weight):
        return (rms(experts * norm_weight) * weights[..., None]).sum(-2)

    return compare(
        lambda x, w, n: kernel(x, w, norm_weight=n, eps=1e-5), formula,
        normal(4, k, d), normal(4, k), normal(d),
    )  # fmt: skip


@case
def expert_routing():
    from mlx_lm.kernels import expert_routing as kernel

    experts, top = 40, 4
    bias = normal(experts)

    def run(x):
        numbers = {"top_k": top, "multiplier": 1.3, "score_eps": 1e-3, "route_scale": 2.0}
        return kernel(x, bias, **numbers)[1]

    x = normal(8, experts)
    indices = np.argsort(-np.array(mx.sigmoid(x * 1.3) + bias), axis=-1)[:, :top]
    one_hot = mx.array(np.eye(experts, dtype=np.float32)[indices])

    def formula(x):
        chosen = (mx.sigmoid(x * 1.3)[:, None] * one_hot).sum(-1)
        return chosen / (chosen.sum(-1, keepdims=True) + 1e-3) * 2

    return compare(run, formula, x)


@case
def sinkhorn():
    from mlx_lm.models import deepseek_v41 as module

    eps = mx.array([1e-4])

    def kernel(x):
        return module._sinkhorn_kernel(
            inputs=[x, eps], template=[("HC", 4), ("ITERS", 5)], grid=(x.shape[0], 1, 1),
            threadgroup=(x.shape[0], 1, 1), output_shapes=[x.shape], output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def formula(x):
        x = x / (x.sum(-2, keepdims=True) + eps)
        for _ in range(4):
            x = x / (x.sum(-1, keepdims=True) + eps)
            x = x / (x.sum(-2, keepdims=True) + eps)
        return x

    return compare(kernel, formula, mx.random.uniform(0.1, 1, (7, 4, 4)))


@case
def attnres_mix():
    from mlx_lm.models import kimi_k3 as module

    k, n, d = 3, 4, 300

    def kernel(raw, inv_rms, partial, w):
        return module._attn_res_kernel(
            inputs=[raw, inv_rms, partial, w, mx.array([1e-5]), n],
            template=[("InT", mx.float32), ("K", k), ("D", d), ("THREADS", 512)],
            grid=(512, n, 1), threadgroup=(512, 1, 1), output_shapes=[partial.shape],
            output_dtypes=[mx.float32],
        )[0]  # fmt: skip

    def formula(raw, inv_rms, partial, w):
        given = [(raw * w).sum(-1) * inv_rms, (rms(partial) * w).sum(-1)[None]]
        weights = mx.softmax(mx.concatenate(given), axis=0)
        return (weights[:, :, None] * mx.concatenate([raw, partial[None]])).sum(0)

    return compare(
        kernel, formula, normal(k, n, d), mx.random.uniform(0.5, 1, (k, n)), normal(n, d),
        normal(d, scale=0.1),
    )  # fmt: skip


if __name__ == "__main__":
    mx.fast.metal_kernel = with_barrier
    case.print()
