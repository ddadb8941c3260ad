"""MLX's unary, binary, ternary, copy and arange kernels on arrays, launched as MLX does."""

import ml_dtypes
import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree import arange, binary, copy, searchsorted, ternary, unary
from mlx_tree.agreement import BFLOAT, FLOAT, HALF, NAMES
from mlx_tree.elementwise import Form, launch_contiguous, per_thread

INT = np.dtype(np.int32)
COMPLEX = np.dtype(np.complex64)
TYPE_NAMES = {**NAMES, INT: "int", np.dtype(bool): "bool", np.dtype(np.uint32): "uint",
              np.dtype(np.int64): "int64", COMPLEX: "complex"}  # fmt: skip
each_float = pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)


def vectors(letters):
    """The form of a kernel of contiguous operands, several elements a thread."""
    return Form(False, work=0, vectors=letters)


def check_unary(op, source, rng, result=None):
    run = kernel("unary", f"unary_v_{op}_{TYPE_NAMES[np.dtype(source)]}")
    unary.check_kernel(run, vectors("v"), op, source, result or source, rng)


@pytest.mark.parametrize("op", [*unary.ROWS, "Sigmoid", "Expm1", "Erf"])
@pytest.mark.sample(2)
def test_unary(op, rng):
    check_unary(op, FLOAT, rng)


@pytest.mark.parametrize("dtype", [HALF, BFLOAT], ids=NAMES.get)
@pytest.mark.parametrize("op", ["Exp", "Log", "Sqrt", "Tanh", "Sigmoid"])
@pytest.mark.sample(1)
def test_unary_of_16_bits(op, dtype, rng):
    check_unary(op, dtype, rng)


@pytest.mark.parametrize("op", ["ArcCos", "Conjugate", "Exp", "Log", "Sqrt", "Tanh"])
@pytest.mark.sample(1)
def test_unary_of_complex(op, rng):
    check_unary(op, COMPLEX, rng)


def test_signs_of_zeros():
    x, out = np.array([0, -0.0], np.float32), np.empty(2, np.float32)
    launch_contiguous(kernel("unary", "unary_v_Negative_float"), [x, out], 2, per_thread(FLOAT))
    assert np.signbit(out).tolist() == [True, False]


def test_unary_between_types(rng):
    check_unary("Abs", np.int64, rng)
    check_unary("BitwiseInvert", np.int32, rng)
    check_unary("LogicalNot", bool, rng)
    check_unary("Real", COMPLEX, rng, np.float32)
    check_unary("Imag", COMPLEX, rng, np.float32)


def test_eight_bit_floats(rng):
    check_unary("ToFP8", FLOAT, rng, np.uint8)
    from_fp8 = kernel("unary", "unary_v_FromFP8_uchar")
    unary.check_kernel(from_fp8, vectors("v"), "FromFP8", np.uint8, np.float32, rng)


@pytest.mark.parametrize(
    ("name", "form"),
    [("v2", Form(False, work=0, vectors="v", dimensions=2)), ("g", Form(True)),
     ("g_n4", Form(True, work=4))],
    ids=["v2", "g", "g_n4"],
)  # fmt: skip
@pytest.mark.sample(1)
def test_forms_of_unary(name, form, rng):
    for op, dtype in (("Square", FLOAT), ("Negative", BFLOAT)):
        run = kernel("unary", f"unary_{name}_{op}_{NAMES[dtype]}")
        unary.check_kernel(run, form, op, dtype, dtype, rng)


def check_binary(op, dtype, rng):
    run = kernel("binary", f"binary_vv_{op}_{TYPE_NAMES[np.dtype(dtype)]}")
    binary.check_kernel(run, vectors("vv"), op, dtype, rng)


ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "FloorDivide", "Remainder", "Maximum",
              "Minimum", "Less")  # fmt: skip


@each_float
@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.sample(2)
def test_binary(op, dtype, rng):
    check_binary(op, dtype, rng)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [*((op, np.int32) for op in ARITHMETIC), ("Power", np.int32), ("BitwiseXor", np.uint32),
     ("LeftShift", np.uint32), ("LogicalAnd", bool)],
)  # fmt: skip
@pytest.mark.sample(1)
def test_binary_of_integers(op, dtype, rng):
    check_binary(op, dtype, rng)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("Power", FLOAT), ("ArcTan2", FLOAT), ("LogAddExp", FLOAT), ("LogAddExp", BFLOAT),
     ("NaNEqual", FLOAT), ("Multiply", COMPLEX), ("Divide", COMPLEX), ("Power", COMPLEX)],
    ids=str,
)  # fmt: skip
@pytest.mark.sample(1)
def test_binary_functions(op, dtype, rng):
    check_binary(op, dtype, rng)


@pytest.mark.parametrize(("op", "dtype"), [("Subtract", FLOAT), ("Less", HALF)], ids=str)
@pytest.mark.sample(1)
def test_forms_of_binary(op, dtype, rng):
    forms = {letters: vectors(letters) for letters in ("ss", "sv", "vs")}
    for letters in ("sv", "vs", "vv"):
        forms[f"{letters}2"] = Form(False, work=0, vectors=letters, dimensions=2)
    forms |= {f"g_nd{rank}": Form(True, rank=rank) for rank in (1, 2, 3)}
    forms |= {"g": Form(True), "g_n2": Form(True, work=2)}
    for name, form in forms.items():
        run = kernel("binary", f"binary_{name}_{op}_{NAMES[dtype]}")
        binary.check_kernel(run, form, op, dtype, rng)


@pytest.mark.parametrize("dtype", [FLOAT, INT], ids=TYPE_NAMES.get)
@pytest.mark.sample(1)
def test_divmod(dtype, rng):
    run = kernel("binary_two", f"binary_vv_DivMod_{TYPE_NAMES[dtype]}")
    binary.check_kernel(run, vectors("vv"), "DivMod", dtype, rng)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("float_float", np.float32, np.float32), ("float_half", np.float32, np.float16),
     ("half_bfloat", np.float16, BFLOAT), ("bool_float", bool, np.float32),
     ("float_complex", np.float32, np.complex64), ("complex_bool", np.complex64, bool)],
)  # fmt: skip
@pytest.mark.sample(1)
def test_contiguous_copy(name, source, target, rng):
    for letter in "vs":
        for suffix, dimensions in (("", 1), ("2", 2)):
            form = Form(False, work=0, vectors=letter, dimensions=dimensions)
            run = kernel("copy", f"copy_{letter}{suffix}_{name}")
            copy.check_kernel(run, form, source, target, rng)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("float_float", np.float32, np.float32), ("int_bfloat", np.int32, BFLOAT)],
)
@pytest.mark.sample(1)
def test_strided_copy(name, source, target, rng):
    for form, strided, dynamic in (("g", False, False), ("gg", True, False),
                                   ("gg_dynamic", True, True)):  # fmt: skip
        shapes = {f"nd{rank}_": (rank, 1) for rank in (1, 2, 3)} | {"": (0, 1)}
        shapes |= {} if dynamic else {"n2_": (0, 2)}
        for shape, (rank, work) in shapes.items():
            run = kernel("copy", f"copy_{form}_{shape}{name}")
            copy.check_kernel(run, Form(True, strided, dynamic, rank, work), source, target, rng)


@pytest.mark.parametrize(
    ("name", "dtype"), [("float", np.float32), ("bfloat", BFLOAT), ("complex", np.complex64)]
)
@pytest.mark.sample(1)
def test_select(name, dtype, rng):
    for form, letters, dimensions in (("v", "v", 1), ("v_scalar_b", "sv", 1), ("v2", "v", 2),
                                      ("v2_scalar_c", "vs", 2)):  # fmt: skip
        run = kernel("ternary", f"ternary_{form}_{name}")
        form = Form(False, work=0, vectors=letters, dimensions=dimensions)
        ternary.check_kernel(run, form, dtype, rng)


@pytest.mark.parametrize(
    ("name", "form"),
    [*((f"g_nd{rank}", Form(True, rank=rank)) for rank in (1, 2, 3)), ("g", Form(True)),
     ("g_n2", Form(True, work=2))],
    ids=["g_nd1", "g_nd2", "g_nd3", "g", "g_n2"],
)  # fmt: skip
@pytest.mark.sample(1)
def test_strided_select(name, form, rng):
    ternary.check_kernel(kernel("ternary", f"ternary_{name}_float"), form, FLOAT, rng)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float", np.float32), ("half", np.float16), ("int64", np.int64),
     ("bfloat", ml_dtypes.bfloat16), ("uchar", np.uint8)],
)  # fmt: skip
@pytest.mark.sample(1)
def test_arange(name, dtype):
    arange.check_kernel(kernel("arange", f"arange_{name}"), dtype)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.sample(1)
def test_searchsorted(side, rng):
    run = kernel("searchsorted", f"searchsorted_{side}_float")
    searchsorted.check_kernel(run, FLOAT, side, rng)
