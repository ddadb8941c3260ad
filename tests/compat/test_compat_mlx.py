"""`compat.mlx` as MLX's documentation and tests use `mx.fast.metal_kernel`, in both dialects.

With MLX installed the same cases run on its arrays, and unchanged programs after `patch`.
"""

import sys

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat import mlx as compat
from metalloid.compat.mlx import metal_kernel

EXP = """
    uint elem = thread_position_in_grid.x;
    T tmp = inp[elem];
    out[elem] = metal::exp(tmp);
"""
EXP_STRIDED = """
    uint elem = thread_position_in_grid.x;
    uint loc = elem_to_loc(elem, inp_shape, inp_strides, inp_ndim);
    T tmp = inp[loc];
    out[elem] = metal::exp(tmp) * threads_per_simdgroup;
"""


class NumpyArrays:
    """The arrays of a library: how to make them, and what they hold."""

    float32, float16 = np.float32, np.float16
    make, values = staticmethod(np.asarray), staticmethod(np.asarray)


class OwnArrays(NumpyArrays):
    make = staticmethod(mtl.asarray)


@pytest.fixture(params=["numpy", "metalloid", "mlx"])
def arrays(request):
    if request.param == "mlx":
        mx = pytest.importorskip("mlx.core", reason="the package mlx is not installed")

        class MlxArrays:
            float32, float16 = mx.float32, mx.float16
            make, values = staticmethod(mx.array), staticmethod(np.array)

        return MlxArrays
    return NumpyArrays if request.param == "numpy" else OwnArrays


@pytest.fixture
def mx():
    return pytest.importorskip("mlx.core", reason="the package mlx is not installed")


def call(kernel, *inputs, dtype=np.float32, shape=None, **more):
    shape = inputs[0].shape if shape is None else shape
    size = int(np.prod(shape))
    options = {"grid": (size, 1, 1), "threadgroup": (256, 1, 1), **more}
    return kernel(inputs=list(inputs), output_shapes=[shape], output_dtypes=[dtype], **options)


def test_lists(arrays, rng):
    x = rng.normal(size=(4, 16)).astype(np.float16)
    kernel = metal_kernel("myexp", ["inp"], ["out"], EXP)
    (y,) = call(kernel, arrays.make(x), dtype=arrays.float16, template=[("T", arrays.float32)])
    assert type(y) is type(arrays.make(x))
    np.testing.assert_allclose(arrays.values(y), np.exp(x.astype(np.float64)), rtol=2e-3)


def test_dictionaries(arrays, rng):
    x = rng.normal(size=(4, 16)).astype(np.float16)
    kernel = metal_kernel(name="myexp", source=EXP)
    outputs = kernel(
        inputs={"inp": arrays.make(x)}, template={"T": arrays.float32}, grid=(x.size, 1, 1),
        threadgroup=(256, 1, 1), output_shapes={"out": x.shape},
        output_dtypes={"out": arrays.float16},
    )  # fmt: skip
    np.testing.assert_allclose(
        arrays.values(outputs["out"]), np.exp(x.astype(np.float64)), rtol=2e-3
    )


def test_names_of_dictionaries_are_sorted():
    kernel = metal_kernel("order", "out[0] = b - a; Other[0] = a;")
    results = kernel(
        inputs={"b": 5.0, "a": 2.0}, grid=(1, 1, 1), threadgroup=(1, 1, 1),
        output_shapes={"out": (1,), "Other": (1,)},
        output_dtypes={"out": np.float32, "Other": np.float32},
    )  # fmt: skip
    assert list(results) == ["Other", "out"]
    assert (results["out"][0], results["Other"][0]) == (3, 2)


@pytest.mark.parametrize("where", ["constructor", "call"])
def test_strides_are_followed(arrays, where):
    x = np.arange(32, dtype=np.float32).reshape(4, 8) / 8
    at_call = {"ensure_row_contiguous": False} if where == "call" else {}
    strided = metal_kernel("strided", EXP_STRIDED, ensure_row_contiguous=where == "call")
    y = strided(
        inputs={"inp": arrays.make(x)[::2]}, template={"T": arrays.float32}, grid=(16, 1, 1),
        threadgroup=(256, 1, 1), output_shapes={"out": (2, 8)},
        output_dtypes={"out": arrays.float32}, **at_call,
    )["out"]  # fmt: skip
    expected = np.exp(x[::2].astype(np.float64)) * 32
    np.testing.assert_allclose(arrays.values(y), expected, rtol=3e-7)


def test_templates_constants_and_two_outputs(arrays):
    kernel = metal_kernel(
        "args", ["a", "b", "c", "d"], ["out1", "out2"],
        """
        uint elem = thread_position_in_grid.x;
        T tmp = a[0];
        if (e) { out1[elem] = a[1] + b[2] + c[3] + d + f; } else { out1[elem] = 1; }
        out2[elem] = a[1] + b[2] + c[1] - d;
        """,
    )  # fmt: skip
    first, second = kernel(
        inputs=[arrays.make(np.arange(8, dtype=np.float32)), arrays.make(np.arange(4)), np.arange(4), 2.5],
        template=[("e", True), ("f", 3), ("T", arrays.float16)], grid=(6, 1, 1),
        threadgroup=(2, 1, 1), output_shapes=[(3, 2), (3, 2)],
        output_dtypes=[arrays.float32, np.int32 if arrays.float32 is np.float32 else arrays.float32],
    )  # fmt: skip
    assert arrays.values(first).tolist() == [[1 + 2 + 3 + 2.5 + 3] * 2] * 3
    assert arrays.values(second).astype(int).tolist() == [[int(1 + 2 + 1 - 2.5)] * 2] * 3


def test_header_attributes_and_initial_values():
    kernel = metal_kernel(
        "helper", ["a"], ["out"],
        "atomic_fetch_add_explicit(&out[0], do_exp(a[thread_position_in_grid.x]),"
        " memory_order_relaxed); if (threads_per_threadgroup.x != 2) {"
        " atomic_store_explicit(&out[1], 1, memory_order_relaxed); }",
        header="template <typename T> T do_exp(T x) { return metal::precise::exp(x); }",
        atomic_outputs=True,
    )  # fmt: skip
    x = np.zeros(4, np.float32)
    (y,) = call(kernel, x, shape=(2,), grid=(4, 1, 1), threadgroup=(2, 1, 1), init_value=10)
    assert y.tolist() == [14, 10]


@pytest.mark.parametrize(("value", "dtype"), [(True, "bool"), (7, "int"), (0.5, "float")])
def test_numbers_have_the_types_of_mlx(value, dtype, capsys):
    kernel = metal_kernel("number", ["v"], ["out"], "out[0] = v;")
    call(kernel, value, shape=(1,), verbose=True)
    printed = capsys.readouterr().out
    assert printed.startswith("Generated source code for `number`:\n```\n")
    assert f"{dtype}{'32_t' if dtype == 'int' else ''}& v [[buffer(0)]]" in printed.replace(
        "const constant ", ""
    )


def test_wide_numbers_of_numpy_become_narrow():
    kernel = metal_kernel("wide", ["v"], ["out"], "out[thread_position_in_grid.x] = v[0] / 3;")
    (y,) = call(kernel, np.ones(8))
    assert y.tolist() == [np.float32(1) / np.float32(3)] * 8
    kernel = metal_kernel("wide", ["v"], ["out"], "out[0] = v[0].imag + sizeof(v[0]);")
    (y,) = call(kernel, np.full(8, 2 + 3j), shape=(1,))
    assert y.tolist() == [3 + 8]


def test_initial_values_are_cast_and_fill_every_output():
    kernel = metal_kernel("initial", [], ["a", "b"], "")
    a, b = kernel(
        inputs=[], output_shapes=[(2, 2), (3,)], output_dtypes=[np.float32, np.int32],
        grid=(1, 1, 1), threadgroup=(1, 1, 1), init_value=2.0,
    )  # fmt: skip
    assert (a.tolist(), b.tolist()) == ([[2, 2], [2, 2]], [2, 2, 2])
    assert (a.dtype, b.dtype) == (np.float32, np.int32)


def test_grids_count_threads_and_threadgroups_are_cut_to_them():
    kernel = metal_kernel(
        "grid", [], ["out"], "out[thread_position_in_grid.x] = threads_per_threadgroup.x;"
    )
    for grid in ((3, 1, 1), [3, 1, 1], np.array([3, 1, 1])):
        (y,) = call(kernel, shape=(4,), dtype=np.uint32, grid=grid, init_value=0)
        assert y.tolist() == [3, 3, 3, 0]


MESSAGES = {
    "no outputs": (lambda: metal_kernel("k", ["a"], [], ""), ValueError,
                   "[metal_kernel] Must specify at least one output."),
    "two inputs": (lambda: call(metal_kernel("k", ["a"], ["out"], ""), 1, 2, shape=(1,)), ValueError,
                   "[metal_kernel] Expected `inputs` to have size 1 but got size 2."),
    "shapes": (lambda: metal_kernel("k", [], ["a", "b"], "")(inputs=[], output_shapes=[(1,)],
               output_dtypes=[np.float32] * 2, grid=(1, 1, 1), threadgroup=(1, 1, 1)), ValueError,
               "[metal_kernel] Expected `output_shapes` to have size 2 but got size 1."),
    "dtypes": (lambda: metal_kernel("k", [], ["a"], "")(inputs=[], output_shapes=[(1,)],
               output_dtypes=[], grid=(1, 1, 1), threadgroup=(1, 1, 1)), ValueError,
               "[metal_kernel] Expected `output_dtypes` to have size 1 but got size 0."),
    "inputs of a dictionary": (lambda: metal_kernel("k", ["a"], ["out"], "")(inputs={"a": 1},
                               output_shapes=[(1,)], output_dtypes=[np.float32], grid=(1, 1, 1),
                               threadgroup=(1, 1, 1)), TypeError,
                               "__call__(): incompatible function arguments"),
    "no keys": (lambda: metal_kernel("k", "")(inputs={}, output_shapes={}, output_dtypes={},
                grid=(1, 1, 1), threadgroup=(1, 1, 1)), ValueError,
                "[metal_kernel] Must specify at least one output."),
    "a float grid": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), grid=(1.0, 1, 1)),
                     TypeError, "__call__(): incompatible function arguments"),
    "a number of threads": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,),
                            threadgroup=1), TypeError, "__call__(): incompatible function arguments"),
    "a dtype": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), dtype="float32"),
                TypeError, "__call__(): incompatible function arguments"),
    "a number of NumPy": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,),
                          template=[("N", np.int64(3))]), ValueError,
                          "[metal_kernel] Invalid template argument."),
    "text": (lambda: call(metal_kernel("k", ["a"], ["out"], ""), "1", shape=(1,)), ValueError,
             "Invalid type str received in array initialization."),
    "template": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), template=[("T", "x")]),
                 ValueError, "[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, "
                 "`int` or `bool`."),
    "wide template": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), template=[("N", 2**40)]),
                      ValueError, "[metal_kernel] Invalid template argument."),
    "list": (lambda: call(metal_kernel("k", ["a"], ["out"], ""), [1.0], shape=(1,)), ValueError,
             "Invalid type list received in array initialization."),
    "mode": (lambda: metal_kernel("k", [], ["out"], "", compile_options={"math_mode": "quick"}), ValueError,
             "[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'."),
    "option": (lambda: metal_kernel("k", [], ["out"], "", compile_options={"x": 1}), ValueError,
               "[metal_kernel] Unknown compile option `x`."),
    "options": (lambda: metal_kernel("k", [], ["out"], "", compile_options=3), ValueError,
                "[metal_kernel] Expected `compile_options` to be a dict."),
    "threads": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), threadgroup=(2048, 1, 1)),
                ValueError, "Thread group size (2048) is greater than  the maximum allowed threads per "
                "threadgroup (1024)."),
    "keys": (lambda: metal_kernel("k", "")(inputs={}, output_shapes={"a": (1,)}, output_dtypes={},
             grid=(1, 1, 1), threadgroup=(1, 1, 1)), ValueError,
             "[metal_kernel] `output_shapes` and `output_dtypes` must have the same keys."),
    "grid": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), grid=(1, 1)), TypeError,
             "__call__(): incompatible function arguments"),
    "initial value": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=(1,), init_value="0"),
                      TypeError, "__call__(): incompatible function arguments"),
    "shape": (lambda: call(metal_kernel("k", [], ["out"], ""), shape=3, grid=(1, 1, 1)), TypeError,
              "__call__(): incompatible function arguments"),
    "a body that does not compile": (lambda: call(metal_kernel("k", [], ["out"], "out[0] = nothing;"), shape=(1,)), RuntimeError,
             "[metal::Device] Unable to build metal library from source\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
def test_errors_are_those_of_mlx(case):
    action, kind, text = MESSAGES[case]
    with pytest.raises(kind) as caught:
        action()
    assert str(caught.value).startswith(text)


def test_math_mode_reaches_the_kernel():
    source = "\n#ifdef __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif\n"
    for mode, fast in (("safe", 0), ("relaxed", 0), ("fast", 1)):
        kernel = metal_kernel("m", [], ["out"], source, compile_options={"math_mode": mode})
        assert call(kernel, shape=(1,))[0].tolist() == [fast]


def test_arguments_are_by_keyword_only():
    with pytest.raises(TypeError):
        metal_kernel("k", ["a"], ["out"], "")([1.0])


# -- with MLX itself


def test_bfloat16_and_results_of_mlx(mx):
    kernel = metal_kernel("half", ["x"], ["y"], "y[thread_position_in_grid.x] = x[0] / 2;")
    (y,) = call(kernel, mx.full((9,), 3, mx.bfloat16), dtype=mx.bfloat16)
    assert y.dtype == mx.bfloat16
    assert y.astype(mx.float32).tolist() == [1.5] * 9
    assert mx.exp(y).shape == (9,)  # it goes on as any other


def test_memory_of_mlx_is_read_in_place(mx):
    x = mx.zeros((1 << 16,))
    mx.eval(x)
    address = np.array(x, copy=None).__array_interface__["data"][0]
    source = "y[0] = reinterpret_cast<ulong>(x);"
    kernel = metal_kernel("address", ["x"], ["y"], source)
    (y,) = call(kernel, x, shape=(1,), dtype=mx.uint64)
    if mtl.Device().name == "cpu":
        assert y.item() == address


def test_installed_it_serves_unchanged_programs(mx):
    original = mx.fast.metal_kernel
    compat.patch()
    try:
        kernel = mx.fast.metal_kernel(
            name="double", input_names=["x"], output_names=["y"],
            source="y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];",
        )  # fmt: skip
        (y,) = call(kernel, mx.arange(10).astype(mx.float32), dtype=mx.float32, stream=mx.gpu)
        assert y.tolist() == [2.0 * k for k in range(10)]
        with pytest.raises(ValueError, match="Only supports the GPU"):
            call(kernel, mx.zeros(10), dtype=mx.float32, stream=mx.cpu)
    finally:
        compat.unpatch()
    assert mx.fast.metal_kernel is original


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool_", "complex64"])
@pytest.mark.parametrize("template", [None, [("N", 2)]])
def test_large_results_are_allocated_in_memory_of_mlx(mx, dtype, template, monkeypatch):
    array, count = mx.array, 100_000
    kernel = metal_kernel(
        "each", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i];"
    )  # fmt: skip
    x = array(np.arange(count) % 2).astype(getattr(mx, dtype))
    mx.eval(x)
    monkeypatch.setattr(compat.patching, "_MIN_SHARED_ELEMENTS", count)
    monkeypatch.setattr(compat.patching.np, "empty", lambda *_: pytest.fail("a copy would be made"))
    (y,) = kernel(
        inputs=[x], grid=(count, 1, 1), threadgroup=(256, 1, 1), output_shapes=[(count // 2, 2)],
        output_dtypes=[x.dtype], template=template,
    )  # fmt: skip
    assert (y.dtype, y.shape) == (x.dtype, (count // 2, 2))
    assert mx.array_equal(y.reshape(-1), x)
    assert mx.array_equal(mx.where(y, y, y)[:, 1], x[1::2])


def test_without_mlx_it_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "mlx.core", raising=False)
    kernel = metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")
    assert call(kernel, np.ones(1, np.float32))[0].tolist() == [1]
    assert "mlx.core" not in sys.modules


SQUARE = "uint i = thread_position_in_grid.x; out[i] = inp[i] * inp[i];"
TRANSFORMATIONS = {
    "vjp": lambda mx, f, x: mx.vjp(f, (x,), (x,)),
    "jvp": lambda mx, f, x: mx.jvp(f, (x,), (x,)),
    "grad": lambda mx, f, x: mx.grad(lambda x: f(x).sum())(x),
    "grad of the other argument": lambda mx, f, x: mx.grad(lambda y, x: (y * f(x)).sum(), 1)(x, x),
    "vmap": lambda mx, f, x: mx.vmap(f)(mx.stack([x, x])),
    "compile": lambda mx, f, x: mx.compile(f)(x),
}


def square(x, **more):
    kernel = metal_kernel("square", ["inp"], ["out"], SQUARE)
    return call(kernel, x, dtype=x.dtype, **more)[0]


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("more", [{}, {"init_value": 0}], ids=["usual", "with options"])
def test_transformations_of_kernels_raise(name, more, mx):
    """As MLX's do, never zeros: a kernel says nothing of its derivatives."""
    with pytest.raises(ValueError, match=r"Not implemented for"):
        TRANSFORMATIONS[name](mx, lambda x: square(x, **more), mx.array([1.0, 2.0, 3.0]))


def test_derivatives_of_kernels_in_a_custom_function(mx):
    @mx.custom_function
    def op(x):
        return square(x)

    op.vjp(lambda x, cotangent, output: 2 * x * cotangent)
    x = mx.array([1.0, 2.0, 3.0])
    value, gradient = mx.value_and_grad(lambda x: op(x).sum())(x)
    assert (value.item(), gradient.tolist()) == (14, [2, 4, 6])
    assert mx.grad(lambda x: mx.checkpoint(op)(x).sum())(x).tolist() == [2, 4, 6]
    # What no derivative is asked of needs none.
    stopped = mx.grad(lambda x: (mx.stop_gradient(square(x)) * x).sum())
    assert stopped(x).tolist() == [1, 4, 9]
    assert mx.grad(lambda y: (y * square(x)).sum())(x).tolist() == [1, 4, 9]


def test_kernels_of_a_library_do_not_write_to_arrays_of_mlx(mx):
    lib = mtl.library(
        """kernel void f(device float* y, constant float* x, uint i [[thread_position_in_grid]])
        { y[i] = 2 * x[i]; }
        kernel void t(metal::texture2d<float, metal::access::write> t) { t.write(1, uint2(0)); }
        struct P { device float* y; };
        kernel void p(constant P& p) { p.y[0] = 1; }"""
    )
    x = mx.array([1.0, 2.0, 3.0])
    y = np.zeros(3, np.float32)
    lib.f(y, x, threads=3)
    assert y.tolist() == [2, 4, 6]
    for launch in (
        lambda: lib.f(x, y, threads=3),
        lambda: lib.t(mx.ones((4, 4)), threads=1),
        lambda: lib.p({"y": x}, threads=1),
    ):
        with pytest.raises(mtl.ArgumentError, match="arrays of MLX are immutable"):
            launch()
    assert x.tolist() == [1, 2, 3]
