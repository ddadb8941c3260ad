"""The generated text against MLX's own, word for word.

``metal_kernel_golden.txt`` is what MLX 0.32.4 prints for ``verbose=True``, recorded by exporting
each of these calls.
"""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.kernels.metal_kernel_names import used_identifiers
from metalloid.kernels.metal_kernel_text import InputText, OutputText, generate
from metalloid.msl.signature import IDS

_RECORDED = re.split(
    r"^##### (\w+)\n", (Path(__file__).parent / "metal_kernel_golden.txt").read_text(), flags=re.M
)
GOLDEN = dict(zip(_RECORDED[1::2], _RECORDED[2::2], strict=True))

EVERY_TYPE = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32, np.complex64,
)  # fmt: skip


def zeros(shape, dtype=np.float32):
    return np.zeros(shape, dtype)


#: Inputs by name, outputs with their dtype, body, and what else the call was given.
CASES = {
    "myexp": (
        {"inp": zeros((4, 16), np.float16)}, {"out": np.float16},
        "\n      uint elem = thread_position_in_grid.x;\n      T tmp = inp[elem];\n"
        "      out[elem] = metal::exp(tmp);\n",
        {"template": [("T", np.float32)]},
    ),
    "strided": (
        {"inp": zeros((4, 16), np.float16)}, {"out": np.float16},
        "uint loc = elem_to_loc(thread_position_in_grid.x, inp_shape, inp_strides, inp_ndim);"
        " out[0]=inp[loc];", {},
    ),
    "arg_test": (
        {"a": zeros((3, 6)), "b": zeros(3, np.int32), "c": zeros(4, ml_dtypes.bfloat16), "d": 1.0},
        {"out1": np.float32, "out2": np.int32},
        "out1[thread_position_in_grid.x]=a[1]+b[2]+c[3]+d+f; out2[0]=1;",
        {"template": [("e", True), ("f", 3), ("T", np.float16)]},
    ),
    "noattr2out_shape": (
        {"a": zeros(8)}, {"o1": np.int32, "o2": np.int32}, "o1[0]=a_shape[0]; o2[0]=a_ndim;", {},
    ),
    "noattr": ({"a": zeros(8)}, {"o1": np.float32, "o2": np.float32}, "o1[0]=a[0]; o2[0]=a[1];", {}),
    "noattr1shape": ({"a": zeros(8)}, {"o1": np.int32}, "o1[0]=a_shape[0];", {}),
    "atomic": (
        {"a": zeros(8)}, {"o1": np.float32},
        "atomic_fetch_add_explicit(&o1[0], a[0], memory_order_relaxed);", {"atomic_outputs": True},
    ),
    "hdr": (
        {"a": zeros(8)}, {"o1": np.float32}, "o1[0]=sq(a[0]);",
        {"header": "inline float sq(float x){return x*x;}"},
    ),
    "empty": ({"a": zeros(0)}, {"o1": np.float32}, "o1[0]=1;", {}),
    "sub": (
        {"a": zeros(8)}, {"o1": np.float32},
        "// dispatch_threads_per_threadgroup mentioned, data_shape too\no1[0]=1;", {},
    ),
    "noinputs": ({}, {"o1": np.float32}, "o1[thread_position_in_grid.x]=1;", {}),
    "alltypes": (
        {"abcdefghijklm"[i]: zeros(8, dtype) for i, dtype in enumerate(EVERY_TYPE)},
        {"o": np.complex64}, "o[0]=1;", {},
    ),
    "tbool": (
        {"a": zeros(8)}, {"o1": np.float32}, "o1[0]=1;",
        {"template": [("B", False), ("N", -3), ("T", np.int8)]},
    ),
}  # fmt: skip

#: Where we differ from MLX on purpose: its text, ours, and why.
DEVIATIONS = {
    "noattr2out_shape": [
        (
            "device int32_t* o1 [[buffer(3)]]) {\n", "device int32_t* o1 [[buffer(3)]],\n",
            "MLX closes the parameter list twice: its text does not compile",
        ),
    ],
    "sub": [
        (
            ",\n  uint3 dispatch_threads_per_threadgroup [[dispatch_threads_per_threadgroup]]"
            ",\n  uint3 threads_per_threadgroup [[threads_per_threadgroup]]", "",
            "MLX finds the ids in a comment, and one inside of the name of the other",
        ),
        (
            "  const constant int* a_shape [[buffer(1)]],\n", "",
            "MLX finds a_shape in data_shape, in a comment",
        ),
        ("o1 [[buffer(2)]]", "o1 [[buffer(1)]]", "without the shape it is the second buffer"),
    ],
}  # fmt: skip


def test_every_recorded_text_has_its_case():
    assert CASES.keys() == GOLDEN.keys()
    assert len(GOLDEN) == 13


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_mlx_s(name, capsys):
    inputs, outputs, source, options = CASES[name]
    of_the_call = {key: value for key, value in options.items() if key == "template"}
    options = {key: value for key, value in options.items() if key != "template"}
    kernel = mtl.metal_kernel(name, [*inputs], [*outputs], source, **options)
    kernel(
        inputs=[*inputs.values()], output_shapes=[(64,)] * len(outputs),
        output_dtypes=[*outputs.values()], grid=(1, 1, 1), threadgroup=(1, 1, 1), verbose=True,
        **of_the_call,
    )  # fmt: skip
    expected = GOLDEN[name]
    for theirs, ours, _reason in DEVIATIONS.get(name, ()):
        assert theirs in expected
        expected = expected.replace(theirs, ours)
    assert capsys.readouterr().out == expected


def text(source, header="", inputs=("x",), outputs=("y",)):
    kernel = generate(
        "k", tuple(InputText(name, "float") for name in inputs),
        tuple(OutputText(name, "float") for name in outputs), (), source, header,
    )  # fmt: skip
    return kernel.own_text


#: Body, header, and the parameters they add.
USES = {
    "a plain use": ("y[0] = x_ndim;", "", ["x_ndim"]),
    "in MLX's order": ("x_ndim + x_strides[0] + x_shape[0]", "", ["x_shape", "x_strides", "x_ndim"]),
    "ids by name": ("threads_per_grid.x + grid_size.x", "", ["grid_size", "threads_per_grid"]),
    "a line comment": ("// x_shape\ny[0] = 1; // grid_size", "", []),
    "a continued line comment": ("// a \\\nx_shape\ny[0] = x_ndim;", "", ["x_ndim"]),
    "a block comment": ("/* x_shape\n x_ndim */ y[0] = 1; /* grid_size", "", []),
    "a comment that is none": ('auto s = "/*"; y[0] = x_ndim; // */', "", ["x_ndim"]),
    "a string": ('log("x_shape // grid_size \\" x_ndim"); grid_origin;', "", ["grid_origin"]),
    "a character": ("char c = '\"'; y[0] = x_ndim; c = '\"';", "", ["x_ndim"]),
    "a longer name": ("max_shape + x_shapes + my_grid_size + x_ndim2 + X_ndim", "", []),
    "the end of a longer name": ("dispatch_threads_per_threadgroup.x", "", ["dispatch_threads_per_threadgroup"]),
    "a member": ("p.x_shape + q->grid_size + metal::x_ndim + ns :: grid_origin", "", []),
    "a member of a used name": ("x_shape.x_ndim", "", ["x_shape"]),
    "a header's function": ("y[0] = f();", "int f() { int x_ndim = 3; return x_ndim; }", []),
    "a header's macro": ("y[0] = ID;", "#define ID grid_size.x\n#define OTHER x_ndim", ["grid_size"]),
    "macros of macros": ("A(1)", "#define A(n) (n + B)\n#  define B \\\n  C\n#define C x_ndim", ["x_ndim"]),
    "macros in circles": ("A", "#define A B\n#define B A x_ndim", ["x_ndim"]),
    "a macro of its own": ("#define ID \\\n  grid_size\ny[ID.x] = 1;", "", ["grid_size"]),
    "a macro it does not use": ("#define ID grid_size\ny[0] = 1;", "", []),
    "a number that looks like a name": ("0x_ndim + 1.x_shape", "", []),
    "next to an operator": ("y[0]=-x_ndim+x_shape[0]", "", ["x_shape", "x_ndim"]),
    "nothing at all": ("", "", []),
}  # fmt: skip


@pytest.mark.parametrize("case", USES)
def test_what_the_body_uses_is_what_it_gets(case):
    source, header, expected = USES[case]
    generated = text(source, header)
    added = re.findall(r"(\w+) \[\[(?:buffer|\w+)", generated)
    assert [name for name in added if name not in ("x", "y")] == expected


def test_a_name_of_the_users_own_means_that():
    generated = text("x_shape[0] + x_ndim;", inputs=("x", "x_shape"), outputs=("x_ndim",))
    assert "const device float* x_shape [[buffer(1)]]" in generated
    assert "device float* x_ndim [[buffer(2)]]" in generated
    assert "[[buffer(3)]]" not in generated
    assert "x_shape_" not in generated


def test_all_ids_of_metal():
    generated = text(" + ".join(IDS))
    types = {name: kind for kind, name in re.findall(r"(\w+) (\w+) \[\[\2\]\]", generated)}
    assert types.keys() == IDS
    assert [*types] == sorted(types)
    assert {name for name, kind in types.items() if kind == "uint3"} == {
        "dispatch_threads_per_threadgroup", "grid_origin", "grid_size", "thread_position_in_grid",
        "thread_position_in_threadgroup", "threadgroup_position_in_grid", "threadgroups_per_grid",
        "threads_per_grid", "threads_per_threadgroup",
    }  # fmt: skip


WORDS = st.sampled_from(["x_shape", "x_ndim", "grid_size", "x", "y", "foo", "x_shapes"])
SPACES = st.sampled_from([" ", "\n", " + ", ";", "\t", "(", ")", " // x_ndim\n", "/*x_shape*/", '"foo"'])  # fmt: skip


@given(st.lists(st.tuples(WORDS, SPACES), max_size=12))
def test_any_sequence_of_words(pairs):
    source = "".join(word + space for word, space in pairs)
    assert used_identifiers(source) == {word for word, _ in pairs}
