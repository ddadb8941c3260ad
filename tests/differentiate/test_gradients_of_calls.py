"""`grad` and `vjp` go through kernels that are called on arrays."""

import numpy as np
import pytest

import metalloid as mtl

WAVES = mtl.metal_kernel(
    "waves", ["x", "index", "scale", "phase"], ["y", "z"],
    """uint i = thread_position_in_grid.x;
    float a = x[elem_to_loc(index[i], x_shape, x_strides, x_ndim)] * scale + phase;
    y[i] = sin(a); z[i] = T(a * a);""",
)  # fmt: skip
INDEX = np.array([4, 0, 4, 2], np.int32)


def waves(x, scale, dtype=np.float32):
    return WAVES(
        inputs=[x, INDEX, scale, 0.25], grid=4, output_shapes=[(4,), (2, 2)],
        output_dtypes=[np.float32, dtype], template=[("T", dtype)],
    )  # fmt: skip


def test_grad_of_metal_kernel():
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    scale = np.float32(1.5)

    def loss(x, scale):
        y, z = waves(2 * x, scale)
        return (y * mtl.arange(4, dtype=mtl.float32)).sum() + z.sum()

    gradients = mtl.grad(loss, argnums=(0, 1))(mtl.asarray(x), mtl.asarray(scale))
    taken = 2.0 * x.reshape(-1)[INDEX]
    by_a = np.arange(4) * np.cos(taken * scale + 0.25) + 2 * (taken * scale + 0.25)
    exact = np.zeros(6)
    np.add.at(exact, INDEX, by_a * scale * 2)
    np.testing.assert_allclose(gradients[0], exact.reshape(2, 3), 1e-6, 1e-6)
    np.testing.assert_allclose(gradients[1], (by_a * taken).sum(), 1e-6)
    compiled = mtl.compile(mtl.grad(loss))(mtl.asarray(x), mtl.asarray(scale))
    assert np.array_equal(compiled, gradients[0])


def test_one_of_two_outputs_in_short_floats():
    x, scale = mtl.asarray([[0.5, 1.0, 2.0]] * 2, dtype=mtl.float16), mtl.asarray(1.0)
    _, (gradient,) = mtl.vjp(lambda x: waves(x, scale, np.float16)[1], [x], [mtl.ones((2, 2))])
    assert gradient.dtype == mtl.float16
    by_a = 2 * (np.asarray(x, np.float64).reshape(-1)[INDEX] + 0.25)
    exact = np.zeros(6)
    np.add.at(exact, INDEX, by_a)
    np.testing.assert_allclose(gradient, exact.reshape(2, 3), 1e-3)


def test_defined_derivatives():
    kernel = mtl.metal_kernel(
        "opaque", ["x", "k"], ["y"],
        "uint i = thread_position_in_grid.x; y[i] = as_type<float>(as_type<int>(x[i]) + k);",
    )  # fmt: skip

    def loss(x):
        (y,) = kernel(inputs=[x, 0], grid=3, output_shapes=[(3,)], output_dtypes=[np.float32])
        return (y * y).sum()

    x = mtl.asarray([1.0, 2.0, 3.0], dtype=mtl.float32)
    with pytest.raises(mtl.CompileError, match="the bits of integers") as error:
        mtl.grad(loss)(x)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.file, diagnostic.line) == ("opaque.source", 1)
    assert diagnostic.source_line.endswith("+ k);")

    @kernel.define_vjp
    def rule(arguments, cotangents, outputs):
        assert arguments[1] == 0
        return [cotangents[0] * outputs[0] / arguments[0]]

    assert mtl.grad(loss)(x).tolist() == [2, 4, 6]
    with pytest.raises(mtl.TraceError, match="'opaque' for reverse mode only"):
        mtl.jvp(loss, [x], [x])[1][0].tolist()
    kernel.define_vjp(lambda arguments, cotangents, outputs: [])
    with pytest.raises(ValueError, match=r"'opaque' must return 1 cotangents, .* got 0"):
        mtl.grad(loss)(x)


LIBRARY = mtl.library("""
kernel void add(device const float *x, device float *y, constant float &scale,
                uint i [[thread_position_in_grid]]) { y[i] += scale * x[i]; }
kernel void square(device float *x, device float *y, constant int &n,
                   uint i [[thread_position_in_grid]]) { if (int(i) < n) y[i] = x[i] * x[i]; }
kernel void twice(device float *x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
""")  # fmt: skip


def updated(x):
    y = x * x
    LIBRARY.add(x, y, 3.0, threads=4)
    LIBRARY.square(x, y=y, n=np.int32(2), threads=4)  # overwrites the first two
    return y


def test_launches_that_update_arrays():
    x = mtl.asarray([1.0, 2.0, 3.0, 4.0], dtype=mtl.float32)
    weights = mtl.asarray([1.0, 2.0, 3.0, 4.0], dtype=mtl.float32)
    values, (gradient,) = mtl.vjp(updated, [x], [weights])
    assert values[0].tolist() == [1, 4, 18, 28] == updated(x).tolist()
    assert gradient.tolist() == [2, 8, 27, 44]
    compiled = mtl.compile(mtl.grad(lambda x: (updated(x) * weights).sum()))
    assert compiled(x).tolist() == [2, 8, 27, 44]


def test_launches_that_are_not_recorded():
    x = mtl.asarray([1.0, 2.0, 3.0, 4.0], dtype=mtl.float32)
    memory = np.zeros(4, np.float32)

    def after(launch):
        def function(x):
            x = x + 0
            launch(x)
            return x.sum()

        return function

    with pytest.raises(mtl.TraceError, match="'y' is memory that may change"):
        mtl.grad(after(lambda x: LIBRARY.add(x, memory, 3.0, threads=4)))(x)
    with pytest.raises(mtl.TraceError, match="passed twice and written"):
        mtl.grad(after(lambda x: LIBRARY.add(x, x, 3.0, threads=4)))(x)
    # Devices with memory of their own refuse it later than `grad` does.
    with pytest.raises(mtl.ArgumentError, match=r"'n' (.* expects constant int|is no pointer)"):
        mtl.grad(after(lambda x: LIBRARY.square(x + 1, x, x + 2, threads=4)))(x)
    with pytest.raises(mtl.CompileError, match="x is written to and read") as error:
        mtl.grad(after(lambda x: LIBRARY.twice(x, threads=4)))(x)
    assert error.value.diagnostics[0].line == 6


def test_tangents():
    random = np.random.default_rng(0)
    x, step = random.normal(size=(2, 2, 3)).astype(np.float32)
    scale, by_scale = np.float32(1.5), np.float32(0.5)
    arguments = [[mtl.asarray(each) for each in pair] for pair in ((x, scale), (step, by_scale))]
    _, (dot_y, dot_z) = mtl.jvp(lambda *args: [*waves(*args, np.float16)], *arguments)
    taken = x.reshape(-1)[INDEX].astype(np.float64)
    a, dot_a = taken * scale + 0.25, step.reshape(-1)[INDEX] * scale + taken * by_scale
    np.testing.assert_allclose(dot_y, np.cos(a) * dot_a, 1e-6, 1e-6)
    assert (dot_z.dtype, dot_z.shape) == (mtl.float16, (2, 2))
    np.testing.assert_allclose(np.asarray(dot_z).reshape(-1), 2 * a * dot_a, 1e-3)

    x = mtl.asarray([1.0, 2.0, 3.0, 4.0], dtype=mtl.float32)
    step = mtl.asarray([1.0, 10.0, 100.0, 1000.0], dtype=mtl.float32)
    values, products = mtl.jvp(updated, [x], [step])
    assert values[0].tolist() == [1, 4, 18, 28]
    assert products[0].tolist() == [2, 40, 900, 11000]


def test_second_derivatives():
    """Derivatives of the sum of sin(a) + a^4 for a = 1.5 x + 0.25."""
    x, step = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(np.float32)
    along = [mtl.asarray(step)]

    def loss(x):
        y, z = waves(x, mtl.asarray(1.5))
        return y.sum() + (z * z).sum()

    def slope(x):
        return mtl.jvp(loss, [x], along)[1][0]

    a = 1.5 * x.reshape(-1)[INDEX].astype(np.float64) + 0.25
    by_a = (12 * a**2 - np.sin(a)) * 1.5**2 * step.reshape(-1)[INDEX]
    exact = np.zeros(6)
    np.add.at(exact, INDEX, by_a)
    np.testing.assert_allclose(mtl.grad(slope)(mtl.asarray(x)), exact.reshape(2, 3), 1e-5, 1e-5)
    _, (curvature,) = mtl.jvp(slope, [mtl.asarray(x)], along)
    np.testing.assert_allclose(curvature, (exact * step.reshape(-1)).sum(), 1e-5)
    with pytest.raises(mtl.TraceError, match="grad of grad are not supported"):
        mtl.grad(lambda x: mtl.grad(loss)(x).sum())(mtl.asarray(x))


def test_names_by_default():
    lib = mtl.library("""
    kernel void k(device const float *x, device float *y, device half *z, constant int &n,
                  uint i [[thread_position_in_grid]]) { y[i] = x[i] * float(z[i]); }""")
    adjoint = lib.k.vjp()
    assert (adjoint.wrt, adjoint.outputs) == (("x", "z"), ("y",))
    assert adjoint is lib.k.vjp()
    assert lib.k.vjp(wrt=["z"]).wrt == ("z",)


def test_structs_are_those_of_the_call():
    """Also if they change before the launch, and if only an element in the middle differs."""
    lib = mtl.library("""
struct Weights { float v[3000]; };
kernel void scale(device const float *x, device float *y, constant Weights &w,
                  uint i [[thread_position_in_grid]]) { y[i] = x[i] * w.v[1500]; }""")

    def scaled(x, factor):
        weights, y = {"v": np.ones(3000, np.float32)}, mtl.zeros(4, dtype=mtl.float32)
        weights["v"][1500] = factor
        lib.scale(x, y, weights, threads=4)
        weights["v"][1500] = 100
        return y.sum()

    def f(x):
        return scaled(x, 2) + scaled(x, 3)

    value, gradient = mtl.value_and_grad(f)(mtl.ones(4, dtype=mtl.float32))
    assert float(value) == 20
    np.testing.assert_array_equal(gradient, np.full(4, 5))
