"""Gradients of kernels of packages, and of the same formulas as functions of arrays."""

import functools
import json

import metalloid.compat.mlx as compat

compat.install(has_metal=True)

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402


class Cases(dict):
    """Functions by name, each of which returns the largest error of some kernels."""

    def __call__(self, function):
        self[function.__name__] = function
        return function

    def print(self):
        """Print the errors as JSON; null where another release of a package has the kernel."""
        results = {}
        for name, function in self.items():
            mx.random.seed(7)
            try:
                results[name] = function()
            except (ImportError, AttributeError):
                results[name] = None
        print(json.dumps(results, indent=1))


def normal(*shape, scale=1.0):
    return mx.random.normal(shape) * scale


def rms(x, eps=1e-5):
    return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + eps)


def compare(kernel, formula, *inputs):
    """The largest error of the gradients of a sum of the results, with random weights."""
    results = kernel(*inputs)
    results = results if isinstance(results, (list, tuple)) else [results]
    weights = [normal(*each.shape) for each in results]

    def loss(function):
        def total(*given):
            values = function(*given)
            values = values if isinstance(values, (list, tuple)) else [values]
            return sum((v * w).sum() for v, w in zip(values, weights, strict=True))

        return total

    numbers = list(range(len(inputs)))
    pairs = zip(
        *(mx.grad(loss(f), argnums=numbers)(*inputs) for f in (kernel, formula)), strict=True
    )
    return max(
        float(np.abs(np.array(a) - np.array(b)).max() / np.abs(np.array(b)).max()) for a, b in pairs
    )


def masked(function, mask, *given):
    """The results of a recurrence; what it returns of steps that the mask leaves out differs."""
    y, state = function(*given, mask)
    return [y if mask is None else mx.where(mask[..., None, None], y, 0), state]


def gated_delta_inputs(t, hk, hv, dk, dv, vector=False):
    return [
        normal(1, t, hk, dk, scale=0.3), normal(1, t, hk, dk, scale=0.1), normal(1, t, hv, dv),
        mx.random.uniform(0.5, 1, (1, t, hv, dk) if vector else (1, t, hv)),
        mx.random.uniform(0, 1, (1, t, hv)), normal(1, hv, dv, dk),
    ]  # fmt: skip


def masks(t):
    return None, mx.array(np.arange(t)[None] >= 3)


def gated_delta(module):
    """Scalar and vector gates, with and without masks: four kernels."""
    return max(
        compare(
            functools.partial(masked, module.gated_delta_kernel, mask),
            functools.partial(masked, module.gated_delta_ops, mask),
            *gated_delta_inputs(9, 2, 4, 64, 8, vector),
        )
        for vector in (False, True)
        for mask in masks(9)
    )


def ssm(module):
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


def wkv7(module):
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


def bitlinear(module):
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


def attention_of_residuals(module):
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
