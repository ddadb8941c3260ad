"""Messages of `metal_kernel` when something does not fit, word for word."""

import types

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

X = np.zeros(4, np.float32)


def make(**changes):
    arguments = {"name": "k", "input_names": ["x"], "output_names": ["y"], "source": "y[0] = x[0];"}
    return mtl.metal_kernel(**(arguments | changes))


def read_only(x):
    x.flags.writeable = False
    return x


#: Changes to a correct construction, and the message.
CONSTRUCTION = [
    ({"name": "my-kernel"}, "[metal_kernel] name expects letters, digits and underscores, got 'my-kernel'."),
    ({"name": ""}, "[metal_kernel] name expects letters, digits and underscores, got ''."),
    ({"name": "größe"}, "[metal_kernel] name expects letters, digits and underscores, got 'größe'."),
    ({"name": 3}, "[metal_kernel] name expects letters, digits and underscores, got 3."),
    ({"input_names": "x"}, "[metal_kernel] input_names expects a list of names, got 'x'."),
    ({"input_names": {"x": X}}, "[metal_kernel] input_names expects a list of names, got {'x': array([0., 0., 0., 0.], dtype=float32)}."),
    ({"input_names": [1]}, "[metal_kernel] input_names: 1 is not a valid name in MSL."),
    ({"input_names": ["1x"]}, "[metal_kernel] input_names: '1x' is not a valid name in MSL."),
    ({"input_names": ["x y"]}, "[metal_kernel] input_names: 'x y' is not a valid name in MSL."),
    ({"input_names": ["device"]}, "[metal_kernel] input_names: 'device' is a word of MSL. Choose another name."),
    ({"input_names": ["x", "x"]}, "[metal_kernel] input_names: 'x' is given twice."),
    ({"output_names": ["y", "y"]}, "[metal_kernel] output_names: 'y' is given twice."),
    ({"output_names": ["grid_size"]}, "[metal_kernel] output_names: 'grid_size' is a value that Metal gives each thread. Choose another name."),
    ({"output_names": []}, "[metal_kernel] output_names is empty: the kernel would have no result. Name an output."),
    ({"source": None}, "[metal_kernel] source expects MSL source, got NoneType None."),
    ({"header": b"x"}, "[metal_kernel] header expects MSL source, got bytes b'x'."),
    ({"source": "kernel void f(device float* y) { y[0] = 1; }"}, "[metal_kernel] source must be the body of a kernel, without its signature and braces. For whole functions use metalloid.library."),
    ({"math_mode": "quick"}, "[metal_kernel] math_mode must be one of 'safe', 'relaxed', 'fast', got 'quick'."),
]  # fmt: skip

#: Changes to a correct call, and the message.
CALLS = [
    ({"inputs": []}, "[k] inputs expects a list of 1 (x), got 0."),
    ({"inputs": [X, X]}, "[k] inputs expects a list of 1 (x), got 2."),
    ({"inputs": X}, "[k] inputs expects a list of 1 (x), got an array of float32 with shape (4,)."),
    ({"inputs": {"x": X}}, "[k] inputs expects a list of 1 (x), got dict {'x': array([0., 0., 0., 0.], dtype=f...."),
    ({"inputs": [[1, 2]]}, "[k] input 'x' expects an array, a Buffer or a number, got list [1, 2]. Pass numpy.array(x, dtype)."),
    ({"inputs": ["word"]}, "[k] input 'x' expects an array, a Buffer or a number, got str 'word'. Pass numpy.array(x, dtype)."),
    ({"inputs": [None]}, "[k] input 'x' expects an array, a Buffer or a number, got NoneType None. Pass numpy.array(x, dtype)."),
    ({"inputs": [np.zeros(2, complex)]}, "[k] input 'x' is an array of complex128 with shape (2,), a type that MSL does not support. Convert it: x.astype(numpy.complex64)."),
    ({"inputs": [np.zeros(2, np.longdouble)]}, "[k] input 'x' is an array of float128 with shape (2,), a type that MSL does not support. Convert it: x.astype(numpy.float64)."),
    ({"inputs": [np.zeros(2, "M8[s]")]}, "[k] input 'x' is an array of datetime64[s] with shape (2,), a type that MSL does not support."),
    ({"inputs": [np.array(["a"])]}, "[k] input 'x' is an array of <U1 with shape (1,), a type that MSL does not support."),
    ({"inputs": [np.zeros(2, "f4,i4")]}, "[k] input 'x' is an array of [('f0', '<f4'), ('f1', '<i4')] with shape (2,), a type that MSL does not support."),
    ({"inputs": [np.zeros(2, ml_dtypes.float8_e4m3)]}, "[k] input 'x' is an array of float8_e4m3 with shape (2,), a type that MSL does not support."),
    ({"inputs": [np.float32]}, "[k] input 'x' expects an array, a Buffer or a number, got <class 'numpy.float32'>. Pass numpy.array(x, dtype)."),
    ({"inputs": [2**64]}, "[k] input 'x' is 18446744073709551616, which no integer type of MSL can hold."),
    ({"inputs": [np.broadcast_to(X[:1], 2**31)]}, "[k] input 'x' has the shape (2147483648,); an extent is at most 2147483647."),
    ({"output_shapes": []}, "[k] output_shapes expects a list of 1 (y), got 0."),
    ({"output_shapes": 4}, "[k] output_shapes expects a list of 1 (y), got int 4."),
    ({"output_shapes": [4]}, "[k] output 'y' expects a shape, a sequence of numbers not below 0, got 4."),
    ({"output_shapes": [(2, -1)]}, "[k] output 'y' expects a shape, a sequence of numbers not below 0, got (2, -1)."),
    ({"output_shapes": [(2.0,)]}, "[k] output 'y' expects a shape, a sequence of numbers not below 0, got (2.0,)."),
    ({"output_dtypes": []}, "[k] output_dtypes expects a list of 1 (y), got 0."),
    ({"output_dtypes": np.float32}, "[k] output_dtypes expects a list of 1 (y), got <class 'numpy.float32'>."),
    ({"output_dtypes": [float]}, "[k] output 'y' expects a dtype of MSL such as numpy.float32, got <class 'float'>."),
    ({"output_dtypes": ["float"]}, "[k] output 'y' expects a dtype of MSL such as numpy.float32, got 'float'."),
    ({"output_dtypes": [np.complex128]}, "[k] output 'y' expects a dtype of MSL such as numpy.float32, got <class 'numpy.complex128'>."),
    ({"output_dtypes": [np.dtype(">f4")]}, "[k] output 'y' expects a dtype of MSL such as numpy.float32, got dtype('>f4')."),
    ({"output_dtypes": [[]]}, "[k] output 'y' expects a dtype of MSL such as numpy.float32, got []."),
    ({"output_dtypes": [np.uint32], "init_value": -1}, "[k] output 'y' is an array of uint32, which cannot hold init_value -1."),
    ({"output_dtypes": [np.int32], "init_value": 0.5}, "[k] output 'y' is an array of int32, which cannot hold init_value 0.5."),
    ({"output_dtypes": [np.int32], "init_value": np.nan}, "[k] output 'y' is an array of int32, which cannot hold init_value nan."),
    ({"output_dtypes": [bool], "init_value": 2}, "[k] output 'y' is an array of bool, which cannot hold init_value 2."),
    ({"init_value": 1j}, "[k] output 'y' is an array of float32, which cannot hold init_value 1j."),
    ({"init_value": "0"}, "[k] output 'y' is an array of float32, which cannot hold init_value '0'."),
    ({"init_value": [0]}, "[k] output 'y' is an array of float32, which cannot hold init_value [0]."),
    ({"grid": -1}, "[k] grid expects 1 to 3 numbers of threads, each at least 0 and at most 4294967295, got -1."),
    ({"grid": 2.0}, "[k] grid expects 1 to 3 numbers of threads, each at least 0 and at most 4294967295, got 2.0."),
    ({"grid": (1, 2, 3, 4)}, "[k] grid expects 1 to 3 numbers of threads, each at least 0 and at most 4294967295, got (1, 2, 3, 4)."),
    ({"grid": ()}, "[k] grid expects 1 to 3 numbers of threads, each at least 0 and at most 4294967295, got ()."),
    ({"grid": (1, 2**32)}, "[k] grid expects 1 to 3 numbers of threads, each at least 0 and at most 4294967295, got (1, 4294967296)."),
    ({"threadgroup": 0}, "[k] threadgroup expects 1 to 3 numbers of threads, each at least 1 and at most 4294967295, got 0."),
    ({"threadgroup": "32"}, "[k] threadgroup expects 1 to 3 numbers of threads, each at least 1 and at most 4294967295, got '32'."),
    ({"threadgroup": (64, 32)}, "[k] threadgroup (64, 32, 1) has 2048 threads; a threadgroup of this kernel has at most 1024."),
    ({"template": {"T": np.float32}}, "[k] template expects pairs of a name and a value, [(\"T\", numpy.float32)], got {'T': <class 'numpy.float32'>}."),
    ({"template": 3}, "[k] template expects pairs of a name and a value, [(\"T\", numpy.float32)], got 3."),
    ({"template": [("T", "double")]}, "[k] template parameter 'T' expects a dtype of MSL such as numpy.float32, an int of 32 bits or a bool, got 'double'."),
    ({"template": [("N", 2**31)]}, "[k] template parameter 'N' expects a dtype of MSL such as numpy.float32, an int of 32 bits or a bool, got 2147483648."),
    ({"template": [("N", 1.0)]}, "[k] template parameter 'N' expects a dtype of MSL such as numpy.float32, an int of 32 bits or a bool, got 1.0."),
    ({"template": [("x", 1)]}, "[k] template: 'x' is given twice."),
    ({"template": [("N", 1), ("N", 2)]}, "[k] template: 'N' is given twice."),
    ({"template": [("a b", 1)]}, "[k] template: 'a b' is not a valid name in MSL."),
]  # fmt: skip

IN_PLACE = {"input_names": ["x"], "output_names": ["x"], "source": "x[0] = 1;"}
#: Kernels of another form, a call of them, and the message.
OTHER_KERNELS = [
    (IN_PLACE, {"inputs": [3]}, "[k] input 'x' is updated in place and is int 3. Pass an array or a Buffer."),
    (IN_PLACE, {"inputs": [np.float32(3)]}, "[k] input 'x' is updated in place and is float32 np.float32(3.0). Pass an array or a Buffer."),
    (IN_PLACE, {"inputs": [read_only(np.zeros(3))]}, "[k] input 'x' is updated in place and is read-only. Pass a copy."),
    (IN_PLACE, {"inputs": [b"abcd"]}, "[k] input 'x' is updated in place and is read-only. Pass a copy."),
    (IN_PLACE, {"inputs": [X.copy()], "output_shapes": [(3,)]}, "[k] output_shapes expects a list of 0 (none), got 1."),
    (IN_PLACE | {"atomic_outputs": True}, {"inputs": [np.zeros(3, np.int8)]}, "[k] input 'x' is of int8, which has no atomic operations; atomic_outputs=True expects one of bool, float, int32_t, int64_t, uint32_t, uint64_t."),
    ({"atomic_outputs": True}, {"inputs": [X], "output_shapes": [()], "output_dtypes": [np.float16]}, "[k] output 'y' is of float16, which has no atomic operations; atomic_outputs=True expects one of bool, float, int32_t, int64_t, uint32_t, uint64_t."),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), CONSTRUCTION)
def test_construction(changes, message):
    with pytest.raises(mtl.ArgumentError) as caught:
        make(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(("changes", "message"), CALLS)
def test_calls(changes, message):
    call = {"inputs": [X], "grid": 1, "output_shapes": [(4,)], "output_dtypes": [np.float32]}
    with pytest.raises(mtl.ArgumentError) as caught:
        make()(**(call | changes))
    assert str(caught.value) == message


@pytest.mark.parametrize(("form", "call", "message"), OTHER_KERNELS)
def test_calls_of_other_kernels(form, call, message):
    with pytest.raises(mtl.ArgumentError) as caught:
        make(**form)(grid=1, **call)
    assert str(caught.value) == message


def test_an_output_too_large():
    with pytest.raises(mtl.OutOfMemory, match=r"\[k\] output 'y' of shape .* does not fit"):
        make()(inputs=[X], grid=1, output_shapes=[(2**40, 2**30)], output_dtypes=[np.float32])


@pytest.mark.needs("the CPU")
def test_a_buffer_of_another_device():
    buffer = mtl.Buffer(X)
    buffer.device = types.SimpleNamespace(name="cuda:1")
    with pytest.raises(mtl.ArgumentError) as caught:
        make()(inputs=[buffer], grid=1, output_shapes=[(1,)], output_dtypes=[np.float32])
    assert str(caught.value) == (
        "[k] input 'x' is a Buffer of 16 bytes on cuda:1, the kernel runs on cpu. "
        "Pass device='cuda:1', or an array."
    )


def test_positional_arguments_have_no_meaning():
    with pytest.raises(TypeError):
        make()([X], grid=1)


# -- texts that do not compile


def compile_error(source, header="", name="wrong", **call):
    kernel = mtl.metal_kernel(name, ["x"], ["y"], source, header)
    arguments = {"inputs": [X], "grid": 1, "output_shapes": [(1,)], "output_dtypes": [np.float32]}
    with pytest.raises(mtl.CompileError) as caught:
        kernel(**(arguments | call))
    return caught.value


#: Body, header, and the report.
COMPILE_ERRORS = {
    "in the body": (
        "\n    float a = 1;\n    y[0] = a + bee;\n", "",
        "wrong.source:3:16: error: use of undeclared identifier 'bee'\n"
        "    y[0] = a + bee;\n"
        "               ^",
    ),
    "in its first line": (
        "y[0] = x;", "",
        "wrong.source:1:8: error: assigning to 'float' from incompatible type 'constant float *'\n"
        "y[0] = x;\n"
        "       ^",
    ),
    "in the header": (
        "y[0] = f();", "// one\n// two\nfloat f() { return nothing; }",
        "wrong.header:3:20: error: use of undeclared identifier 'nothing'\n"
        "float f() { return nothing; }\n"
        "                   ^",
    ),
    "in both": (
        "y[0] = f(2);", "float f() { return 1; }",
        "wrong.source:1:8: error: no matching function for call to 'f'\n"
        "y[0] = f(2);\n"
        "       ^\n"
        "wrong.header:1:7: note: candidate function not viable: requires 0 arguments, but 1 was provided\n"
        "float f() { return 1; }\n"
        "      ^",
    ),
    "of the preprocessor": (
        "y[0] = 1;\n#error no more", "",
        "wrong.source:2:2: error: no more\n"
        "#error no more\n"
        " ^",
    ),
    "a brace too few": (
        "if (x[0] > 0) {\n  y[0] = 1;", "",
        "wrong.source:2:12: error: expected '}'\n"
        "  y[0] = 1;\n"
        "           ^",
    ),
    "a brace too many": (
        "y[0] = 1;\n}\ny[0] = 2;", "",
        None,
    ),
    "an include that does not exist": (
        "", '#include "none.h"',
        "wrong.header:1:10: error: 'none.h' file not found\n"
        '#include "none.h"\n'
        "         ^",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPILE_ERRORS)
def test_compile_errors_are_at_the_users_lines(case):
    source, header, expected = COMPILE_ERRORS[case]
    error = compile_error(source, header)
    if expected is not None:
        assert str(error) == expected
    first = next(d for d in error.diagnostics if d.is_error)
    assert (error.filename, error.lineno, error.offset) == (first.file, first.line, first.column)
    assert error.filename in ("wrong.source", "wrong.header")
    assert (
        error.text
        == (source if "source" in error.filename else header).splitlines()[error.lineno - 1]
    )


def test_compile_errors_of_an_instance_of_a_template():
    source = "T z = T(1);\ny[0] = z.x;"
    error = compile_error(source, template=[("T", np.float32)])
    assert str(error) == (
        "wrong.source:2:9: error: member reference base type 'float' is not a structure or union\n"
        "y[0] = z.x;\n"
        "        ^"
    )
    with pytest.raises(mtl.CompileError, match=r"^wrong.source:2:9"):
        raise compile_error(source, template=[("T", np.int32)])


def test_a_broken_kernel_breaks_nothing_else():
    good = make(source="y[0] = x[0] + 1;")
    call = {"inputs": [X], "grid": 1, "output_shapes": [(1,)], "output_dtypes": [np.float32]}
    (before,) = good(**call)
    compile_error("y[0] = undefined;")
    (after,) = good(inputs=[before], grid=1, output_shapes=[(1,)], output_dtypes=[np.float32])
    assert (before, after) == (1, 2)
