"""`custom_function`: rules of derivatives and batching, for kernels, too; `checkpoint`."""

import gc

import numpy as np
import pytest

import metalloid as mtl
from metalloid import TraceError

X = mtl.asarray([1.0, 2.0, 3.0, 4.0])
SQUARE = mtl.metal_kernel(
    name="squares", input_names=["x"], output_names=["y"],
    source="uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
)  # fmt: skip


def close(result, expected, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(result), expected, rtol=rtol)


def kernel_squares(x):
    (y,) = SQUARE(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype],
                  grid=(x.size, 1, 1), threadgroup=(x.size, 1, 1))  # fmt: skip
    return y


def with_rules():
    squares = mtl.custom_function(kernel_squares)

    @squares.vjp
    def _(x, cotangent, output):
        return 2 * x * cotangent

    @squares.jvp
    def _(x, tangent):
        return 2 * x * tangent

    @squares.vmap
    def _(x, axis):
        return kernel_squares(x), axis

    return squares


def test_a_kernel_under_every_transform():
    squares = with_rules()
    close(squares(X), [1, 4, 9, 16])
    close(mtl.grad(lambda x: (squares(x) * X).sum())(X), 2 * np.asarray(X) ** 2)
    values, products = mtl.jvp(squares, [X], [mtl.ones(4)])
    close(values[0], [1, 4, 9, 16])
    close(products[0], [2, 4, 6, 8])
    rows = mtl.stack([X, X + 1])
    close(mtl.vmap(squares)(rows), np.asarray(rows) ** 2)
    gradients = mtl.vmap(mtl.grad(lambda x: squares(x).sum()))(rows)
    close(gradients, 2 * np.asarray(rows))
    close(mtl.compile(mtl.grad(lambda x: squares(x).sum()))(X), [2, 4, 6, 8])
    second = mtl.grad(lambda x: mtl.grad(lambda x: squares(x).sum())(x).sum())
    close(second(X), [2, 2, 2, 2])
    second = mtl.jvp(lambda x: mtl.jvp(squares, [x], [mtl.ones(4)])[1][0], [X], [X])[1]
    close(second[0], 2 * np.asarray(X))


def test_each_rule_serves_one_transform():
    exp = mtl.custom_function(mtl.exp)
    one = mtl.asarray(1.0)
    close(mtl.grad(exp)(one), np.e)
    exp.vjp(lambda x, cotangent, output: mtl.ones_like(x) * 42)
    assert float(mtl.grad(exp)(one)) == 42
    close(mtl.jvp(exp, [one], [one])[1][0], np.e)
    close(mtl.vmap(exp)(mtl.ones(3)), [np.e] * 3)
    exp.jvp(lambda x, tangent: 7 * tangent)
    exp.vmap(lambda x, axis: (x * 3, axis))
    assert float(mtl.grad(exp)(one)) == 42
    assert float(mtl.jvp(exp, [one], [one])[1][0]) == 7
    close(mtl.vmap(exp)(mtl.ones(3)), [3] * 3)


def test_the_rules_are_those_of_the_time_of_the_call():
    exp = mtl.custom_function(mtl.exp)
    exp.jvp(lambda x, tangent: tangent)
    one = mtl.asarray(1.0)
    _, (before,) = mtl.jvp(exp, [one], [one])
    exp.jvp(lambda x, tangent: 2 * tangent)  # before the result is evaluated
    assert float(before) == 1
    assert float(mtl.jvp(exp, [one], [one])[1][0]) == 2


def test_structures():
    @mtl.custom_function
    def double(params, k, *, sign):
        return {"out": 2 * params["x"] * params["y"] * k * sign, "rest": [params["x"]]}

    def loss(p):
        result = double(p, 3, sign=1)
        return (result["out"] + result["rest"][0]).sum()

    params = {"x": mtl.ones(2), "y": mtl.ones(2)}
    close(mtl.grad(loss)(params)["x"], [7, 7])

    @double.vjp
    def _(primals, cotangents, outputs, sign):
        _, k = primals
        assert (k, sign) == (3, 1)
        return {"x": cotangents["out"] * 5, "y": outputs["out"] + cotangents["rest"][0]}

    gradient = mtl.grad(loss)(params)
    close(gradient["x"], [5, 5])
    close(gradient["y"], [7, 7])


def layer(p, x):
    return mtl.tanh(x @ p["w"]) + x


def loss_of(layer, x):
    """A function of the layers' parameters."""

    def run(params):
        y = x
        for p in params:
            y = layer(p, y)
        return (y * y).sum()

    return run


def layers(rng):
    """Parameters of two layers, and their input."""
    params = [{"w": mtl.asarray(rng.standard_normal((4, 4)) / 2)} for _ in range(2)]
    return params, mtl.asarray(rng.standard_normal((2, 4)))


def test_checkpoint_has_the_same_gradients(rng):
    params, x = layers(rng)
    calls = []

    def counted(p, x):
        calls.append(p)
        return layer(p, x)

    plain = mtl.grad(loss_of(layer, x))(params)
    checkpointed = mtl.grad(loss_of(mtl.checkpoint(counted), x))(params)
    assert len(calls) == 4
    mtl.eval(plain, checkpointed)
    for a, b in zip(plain, checkpointed, strict=True):
        close(b["w"], np.asarray(a["w"]), 1e-12)


@pytest.mark.slow
def test_checkpoint_has_the_same_second_derivatives(rng):
    params, x = layers(rng)

    def second(layer):
        gradient = mtl.grad(loss_of(layer, x))
        return mtl.jvp(lambda w: gradient([{"w": w}])[0]["w"], [params[0]["w"]], [params[1]["w"]])[
            1
        ]

    [plain], [checkpointed] = second(layer), second(mtl.checkpoint(layer))
    close(checkpointed, np.asarray(plain), 1e-9)


def test_checkpoint_holds_fewer_values(without_vendor_products):
    x = mtl.asarray(np.linspace(-1, 1, 2**15, dtype=np.float32).reshape(512, 64))
    weights = [(mtl.eye(64, 256) / k, mtl.eye(256, 64) / k) for k in range(1, 9)]
    mtl.eval(x, weights)

    def layer(y, w):
        return y + mtl.tanh(y @ w[0]) @ w[1]

    def peak(layer):
        def loss(weights):
            y = x
            for w in weights:
                y = layer(y, w)
            return (y * y).sum()

        gc.collect()
        before = mtl.get_active_memory()
        mtl.reset_peak_memory()
        gradients = mtl.grad(loss)(weights)
        mtl.eval(gradients)
        return mtl.get_peak_memory() - before

    y, hidden = x.nbytes, x.nbytes * 4
    results = sum(a.nbytes + b.nbytes for a, b in weights)
    assert peak(layer) > 8 * hidden  # all of them live until the backward pass
    assert peak(mtl.checkpoint(layer)) < 8 * y + 3 * hidden + results


MISUSE = {
    "no second derivative": (TraceError, "second derivatives", lambda f: mtl.grad(lambda x: mtl.grad(lambda x: f(x).sum())(x).sum())(X)),
    "few cotangents": (ValueError, "must return 1 arrays", lambda f: [f.vjp(lambda *_: []), mtl.grad(lambda x: f(x).sum())(X)]),
    "few tangents": (ValueError, "0 arrays for 1", lambda f: [f.jvp(lambda *_: []), mtl.eval(mtl.jvp(f, [X], [X])[1])]),
    "no axes": (ValueError, "results and their axes", lambda f: [f.vmap(lambda x, axis: x), mtl.vmap(f)(X[None])]),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name):
    kind, text, call = MISUSE[name]
    with pytest.raises(kind, match=text):
        call(mtl.custom_function(kernel_squares))
