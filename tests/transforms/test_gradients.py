"""`grad`, `value_and_grad`, `vjp`, `jvp`: against derivatives that are known, and finite differences."""

import dataclasses

import numpy as np
import pytest

import metalloid as mtl
from metalloid import TraceError

X = mtl.asarray([1.0, 2.0, 3.0, 4.0])


def close(result, expected, rtol=1e-6, atol=1e-12):
    np.testing.assert_allclose(np.asarray(result), expected, rtol=rtol, atol=atol)


def numeric(function, *points, step=1e-6):
    """Gradients of a real function of float64 arrays by central differences."""
    gradients = []
    for k, point in enumerate(points):
        gradient = np.zeros_like(point)
        for at in np.ndindex(point.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in points]
                moved[k][at] += sign * step
                ends.append(float(function(*map(mtl.asarray, moved))))
            gradient[at] = (ends[0] - ends[1]) / (2 * step)
        gradients.append(gradient)
    return gradients


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape)


#: Functions of float64 arrays of shape (3, 4) and (4, 2); the result has no axes.
FUNCTIONS = {
    "product": lambda a, b: mtl.tanh(a @ b).sum(),
    "stack of products": lambda a, b: (a[None] @ mtl.stack([b, b * 2])).sum() ** 2,
    "views": lambda a, b: (mtl.flip(a.T, axis=0)[1:] * b.reshape(4, 2)[:3, :1]).sum(),
    "slices with steps": lambda a, b: (a[::-2, 1::2] * b[:2, :]).sum(),
    "concatenation": lambda a, b: (mtl.concat([a.flatten(), b.flatten() ** 2]) ** 2)[3:16].sum(),
    "broadcast": lambda a, b: (a[:, :, None] * b[None] * a[:, :1, None]).sum(),
    "softmax": lambda a, b: (mtl.exp(a) / mtl.exp(a).sum(axis=1, keepdims=True) @ b)[0, 1],
    "extremes": lambda a, b: a.max(axis=1).sum() * b.min(),
    "product of elements": lambda a, b: a.prod(axis=0).sum() * b.prod(),
    "variance": lambda a, b: a.var(axis=1).sum() * b.std(),
    "gather": lambda a, b: (a[mtl.asarray([0, 2, 0]), mtl.asarray([1, 1, 3])] ** 2).sum() * b[1, 1],
    "scatter": lambda a, b: (a.at[mtl.asarray([0, 2, 0])].add(b.T[:1] * 2) ** 2).sum(),
    "set": lambda a, b: (a.at[1:, ::2].set(b[:2]) ** 3).sum(),
    "running sums": lambda a, b: (mtl.cumulative_sum(a, axis=1) ** 2).sum() * b[0, 0],
    "running products": lambda a, b: mtl.cumulative_prod(a, axis=0).sum() + b.sum(),
    "running maxima": lambda a, b: (mtl.cummax(a, axis=1) @ b).sum() + mtl.cummin(a, axis=0).prod(),
    "where": lambda a, b: mtl.where(a > 0, a * b[:, 0], a**3).sum(),
    "einsum": lambda a, b: mtl.einsum("ij,jk,ij->k", a, b, a)[1],
}


def fast(*names):
    """All functions; the others than these are slow."""
    marks = {name: [pytest.mark.slow] * (name not in names) for name in FUNCTIONS}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=m) for n, m in marks.items()])


@fast("running products")
def test_gradients_and_their_gradients(name):
    function, points = FUNCTIONS[name], (random(3, 4), random(4, 2))
    arrays = list(map(mtl.asarray, points))
    gradient = mtl.grad(function, argnums=(0, 1))
    for result, expected in zip(gradient(*arrays), numeric(function, *points), strict=True):
        close(result, expected, 1e-6, 1e-9)  # of finite differences

    def slope(a, b):
        first, second = gradient(a, b)
        return (first * mtl.asarray(random(3, 4))).sum() + (
            second * mtl.asarray(random(4, 2))
        ).sum()

    second = mtl.grad(slope, argnums=(0, 1))(*arrays)
    for result, expected in zip(second, numeric(slope, *points), strict=True):
        close(result, expected, 1e-6, 1e-9)  # of finite differences
    # The derivative along a direction is that of the gradient.
    directions = [mtl.asarray(random(3, 4)), mtl.asarray(random(4, 2))]
    _, (along,) = mtl.jvp(function, arrays, directions)
    both = zip(gradient(*arrays), directions, strict=True)
    close(along, sum(float((g * d).sum()) for g, d in both), 1e-12)


@fast("stack of products", "gather", "running sums")
@pytest.mark.sample(1)
def test_vmap_is_a_stack_of_calls(name):
    function = FUNCTIONS[name]
    a, b = (mtl.asarray(random(5, *shape), dtype="float32") for shape in ((3, 4), (4, 2)))
    alone = [function(a[k], b[k]) for k in range(5)]
    close(mtl.vmap(function)(a, b), np.stack([np.asarray(v) for v in alone]), 2e-5)
    shared = mtl.vmap(function, in_axes=(None, 0))(a[0], b)
    close(shared, np.stack([np.asarray(function(a[0], b[k])) for k in range(5)]), 2e-5)
    gradients = mtl.vmap(mtl.grad(function))(a, b)
    expected = np.stack([np.asarray(mtl.grad(function)(a[k], b[k])) for k in range(5)])
    np.testing.assert_allclose(np.asarray(gradients), expected, rtol=2e-4, atol=1e-5)


@dataclasses.dataclass
class Layer:
    weight: mtl.Array
    bias: mtl.Array


def test_arguments_are_trees():
    layer = Layer(mtl.ones((4, 2)), mtl.zeros(2))
    value, gradient = mtl.value_and_grad(
        lambda p, x: (x @ p["l"][0].weight + p["l"][0].bias).sum()
    )({"l": [layer]}, X)
    assert float(value) == 20
    assert isinstance(gradient["l"][0], Layer)
    close(gradient["l"][0].weight, np.repeat(np.asarray(X)[:, None], 2, 1))
    close(gradient["l"][0].bias, [1, 1])


def test_arguments_by_number_and_name():
    function = lambda x, y, z: (x * y * z).sum()  # noqa: E731
    x, y, z = mtl.asarray(2.0), mtl.asarray(3.0), mtl.asarray(4.0)
    assert float(mtl.grad(function, argnums=1)(x, y, z)) == 8
    (dx, dy), named = mtl.grad(function, argnums=[0, 1], argnames="z")(x, y, z=z)
    assert (float(dx), float(dy), float(named["z"])) == (12, 8, 6)
    none, named = mtl.grad(function, argnames=["z"])(x, y=y, z=z)
    assert none is None
    assert float(named["z"]) == 6


def test_other_values_are_returned():
    (loss, more), gradient = mtl.value_and_grad(lambda x: ((x * x).sum(), {"twice": x * 2}))(X)
    assert float(loss) == 30
    close(more["twice"], [2, 4, 6, 8])
    close(gradient, [2, 4, 6, 8])


def test_control_flow_on_values():
    def function(x):
        total = x.sum()
        mtl.eval(total)
        if float(total) > 3 and x[0].item() == 1:
            return (x**2).sum()
        return total

    close(mtl.grad(function)(X), [2, 4, 6, 8])


def test_state_of_the_function_outlives_it():
    state = []

    def function(x):
        state.append(x * 2)
        return (x * x).sum()

    mtl.grad(function)(X)
    kernel = mtl.library("kernel void twice(device float* x, uint i [[thread_position_in_grid]])"
                         " { x[i] *= 2; }").twice  # fmt: skip
    kernel(state[0], threads=4)  # it is an array like others
    close(state[0], [4, 8, 12, 16])
    close(mtl.compile(mtl.sqrt)(state[0]), [2, 8**0.5, 12**0.5, 4])


def test_writes_to_arrays_outside_are_differentiated():
    buffer = mtl.zeros(4)

    def function(x):
        buffer[1:3] = x
        buffer[mtl.asarray([0])] = x[:1] * 3
        return (buffer * X).sum()

    close(mtl.grad(function)(mtl.asarray([5.0, 6.0])), [2 + 3, 3])
    close(buffer, [15, 5, 6, 0])


@pytest.mark.needs("the process's memory")
def test_memory_of_others_is_read_when_the_gradient_is_built():
    memory = np.array([1, 2, 3], np.float32)
    gradient = mtl.grad(lambda x: (x * mtl.asarray(memory, copy=False)).sum())(mtl.ones(3))
    memory[:] = 0
    close(gradient, [1, 2, 3])


def test_stop_gradient():
    close(mtl.grad(lambda x: (x * mtl.stop_gradient(x)).sum())(X), [1, 2, 3, 4])


def test_ties_share_the_derivative():
    close(mtl.grad(lambda x: x.max())(mtl.asarray([1.0, 3.0, 3.0])), [0, 0.5, 0.5])


def test_products_with_zeros():
    close(mtl.grad(lambda x: x.prod())(mtl.asarray([2.0, 0.0, 3.0])), [0, 6, 0])
    hessian = mtl.vmap(lambda t: mtl.jvp(mtl.grad(lambda x: x.prod()), [mtl.zeros(2)], [t])[1][0])
    close(hessian(mtl.eye(2)), [[0, 1], [1, 0]])
    for y, expected in (([2.0, 0.0, 2.0, 2.0, 3.0], [1, 38, 0, 0, 0]),
                        ([2.0, 0.0, 2.0, 0.0, 3.0], [1, 6, 0, 0, 0])):  # fmt: skip
        running = mtl.grad(lambda y: mtl.cumulative_prod(y).sum())(mtl.asarray(y))
        close(running, expected)


def test_scatters_with_repeated_indices():
    index = mtl.asarray([1, 3, 1])
    new = mtl.asarray([2.0, 0.0, 7.0])
    expected = {
        "add": ([4, 5, 6, 7], [5, 7, 5]),
        "subtract": ([4, 5, 6, 7], [-5, -7, -5]),
        "multiply": ([4, 70, 6, 0], [70, 28, 20]),
        "max": ([4, 0, 6, 7], [0, 0, 5]),
        "min": ([4, 2.5, 6, 0], [2.5, 7, 0]),
        "set": ([4, 0, 6, 0], [0, 7, 5]),
    }
    for name, both in expected.items():
        _, results = mtl.vjp(
            lambda x, u, name=name: getattr(x.at[index], name)(u),
            [X, new], [mtl.asarray([4.0, 5.0, 6.0, 7.0])],
        )  # fmt: skip
        for result, values in zip(results, both, strict=True):
            close(result, values)


def test_complex_gradients_are_the_steepest_ascent():
    z = mtl.asarray([1j, 1 + 0j, 0.5 + 0.5j])
    close(mtl.grad(lambda z: (2 * z.real).sum())(z), [2, 2, 2])
    close(mtl.grad(lambda z: (2 * z.imag).sum())(z), [2j] * 3)
    close(mtl.grad(lambda z: (mtl.abs(z) ** 2).sum())(z), 2 * np.asarray(z))


#: Of complex arrays of shape (3, 3); `m` is one. Some are not holomorphic.
COMPLEX = {
    "a left factor": lambda z, m: mtl.exp(z) @ m,
    "a right factor": lambda z, m: m @ z / (z + 2),
    "conj": lambda z, m: mtl.conj(z) * z.real,
    "abs": lambda z, m: mtl.abs(z) * mtl.cumulative_sum(z, axis=1),
    "running products": lambda z, m: mtl.cumulative_prod(z, axis=0) + z.prod(axis=1),
    "a cast": lambda z, m: z.astype("complex64"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n not in ("a right factor", "abs")))
        for n in COMPLEX
    ],
)
def test_complex_products_are_adjoint(name):
    """``Re <w, J v> = Re <J* w, v>``, for the Jacobian of functions that are not holomorphic, too."""
    rng = np.random.default_rng(1)
    z, v, m = (rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)) for _ in range(3))

    def function(z):
        return COMPLEX[name](z, mtl.asarray(m))

    point, along = mtl.asarray(z), mtl.asarray(v)
    values, (forward,) = mtl.jvp(function, [point], [along])
    w = rng.standard_normal(values[0].shape) + 1j * rng.standard_normal(values[0].shape)
    _, (backward,) = mtl.vjp(function, [point], [mtl.asarray(w).astype(values[0].dtype)])
    step = 1e-6
    ends = [np.asarray(function(mtl.asarray(z + s * step * v))) for s in (1, -1)]
    if values[0].dtype == mtl.complex128:
        close(forward, (ends[0] - ends[1]) / (2 * step), 1e-6)
    left, right = np.vdot(w, np.asarray(forward)).real, np.vdot(np.asarray(backward), v).real
    assert left == pytest.approx(right, rel=1e-6)


KERNEL = mtl.metal_kernel(name="twice", input_names=["x"], output_names=["y"], source="""
    uint i = thread_position_in_grid.x;
    y[i] = as_type<float>(as_type<int>(x[i]) + 0x800000);""")  # fmt: skip


def run_kernel(x):
    (y,) = KERNEL(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(4, 1, 1),
                  threadgroup=(4, 1, 1))  # fmt: skip
    return y.sum()


def select(x):
    return x if x.sum() > 0 else -x


MISUSE = {
    "a kernel has no derivative": (mtl.CompileError, "the bits of integers", lambda: mtl.grad(run_kernel)(X)),
    "a kernel has no batch rule": (TraceError, "'twice' has no rule", lambda: mtl.vmap(run_kernel)(mtl.ones((2, 4)))),
    "values under vmap": (TraceError, r"\[vmap\] the function reads the values", lambda: mtl.vmap(select)(mtl.ones((2, 4)))),
    "a result with axes": (ValueError, r"shape \(\), got \(4,\)", lambda: mtl.grad(lambda x: x)(X)),
    "no array": (ValueError, "float 1.0", lambda: mtl.grad(lambda x: x)(1.0)),
    "integers": (TypeError, "got int64", lambda: mtl.grad(lambda x: x.sum())(mtl.arange(3))),
    "an index": (TraceError, "stop_gradient", lambda: mtl.vjp(lambda x, i: x[i], [X, mtl.asarray([1])], [mtl.ones(1)])),
    "few arguments": (ValueError, "argument 2", lambda: mtl.grad(lambda x: x, argnums=2)(X)),
    "negative numbers": (ValueError, "-1", lambda: mtl.grad(lambda x: x, argnums=-1)),
    "nothing to do": (ValueError, "no argument", lambda: mtl.grad(lambda x: x, argnums=())),
    "types of numbers": (TypeError, "None", lambda: mtl.grad(lambda x: x, argnums=(None,))),
    "cotangents": (ValueError, r"\(3,\)", lambda: mtl.vjp(lambda x: x, [X], [mtl.ones(3)])),
    "tangents": (ValueError, "2 tangents for 1 arguments", lambda: mtl.jvp(lambda x: x, [X], [X, X])),
    "extents": (ValueError, "one extent", lambda: mtl.vmap(mtl.add)(mtl.ones(2), mtl.ones(3))),
    "no axis": (ValueError, "at least one", lambda: mtl.vmap(mtl.add, (None, None))(X, X)),
    "axes": (ValueError, "structure of the arguments", lambda: mtl.vmap(mtl.add, (0,))(X, X)),
    "axes of a dictionary": (ValueError, "structure of the results", lambda: mtl.vmap(lambda x: {"a": x}, out_axes={"b": 0})(X)),
    "a result that depends": (ValueError, "out_axes is None", lambda: mtl.vmap(mtl.sin, out_axes=None)(X)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name):
    kind, text, call = MISUSE[name]
    with pytest.raises(kind, match=text):
        call()


def test_structures_of_vmap():
    args = {"a": mtl.ones((3, 2)), "b": [mtl.arange(4.0).reshape(2, 2)]}
    result = mtl.vmap(
        lambda p, c: {"x": p["a"].sum() * c, "y": (p["b"][0], c)},
        in_axes=({"a": 1, "b": 0}, None), out_axes={"x": 0, "y": (1, None)},
    )(args, mtl.asarray(2.0))  # fmt: skip
    close(result["x"], [6, 6])
    close(result["y"][0], [[0, 2], [1, 3]])
    assert float(result["y"][1]) == 2
