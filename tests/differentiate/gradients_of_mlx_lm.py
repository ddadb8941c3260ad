"""Gradients of mlx-lm's kernels, and of the same formulas as functions of arrays.

    python gradients_of_mlx_lm.py

Prints for each kernel the largest error of the gradients by all inputs, relative to the largest
entry of each. mlx-lm is as it is, but for a barrier that its divergences lack.
"""

import math

import numpy as np
import package_gradients
from package_gradients import Cases, compare, mx, normal, rms

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

    return package_gradients.gated_delta(module)


@case
def ssm():
    from mlx_lm.models import ssm as module

    return package_gradients.ssm(module)


@case
def wkv7():
    from mlx_lm.models import rwkv7 as module

    return package_gradients.wkv7(module)


@case
def bitlinear():
    from mlx_lm.models import bitlinear_layers as module

    return package_gradients.bitlinear(module)


@case
def attnres_mix():
    from mlx_lm.models import kimi_k3 as module

    return package_gradients.attention_of_residuals(module)


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


if __name__ == "__main__":
    mx.fast.metal_kernel = with_barrier
    case.print()
