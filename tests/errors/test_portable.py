"""``portable=True`` refuses what Apple's compiler refuses, and nothing that it takes.

The words of each finding are in ``messages.txt``; the kernels of MLX, which Apple's compiler takes,
are in ``tests/kernels/mlx_kernels``; our own in ``test_shipped_texts.py``.
"""

import shutil
from pathlib import Path

import pytest
from portable_texts import fine, rules

import metalloid as mtl
from metalloid.cli.main import main
from metalloid.kernels.metal_kernel_text import InputText, OutputText, TemplateArgument, generate

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", rules())
def test_near_misses(name):
    refused, taken = rules()[name]
    mtl.library(HEADER + taken, portable=True)
    mtl.library(HEADER + refused)  # clang takes it, or the rule would not be needed


@pytest.mark.parametrize("name", fine())
def test_what_looks_like_a_rule(name):
    mtl.library(HEADER + fine()[name], portable=True)


def test_threadgroup_memory_that_only_the_compiled_kernel_tells():
    """Memory of structs, and of variables whose size depends on a template's arguments."""
    text = (
        HEADER
        + """
template <int n> struct Tile { float rows[n][64]; };
template <int n> [[kernel]] void f(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup Tile<n> tile;
  tile.rows[i % n][0] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = tile.rows[(i + 1) % n][0];
}
template [[host_name("small")]] [[kernel]] decltype(f<128>) f<128>;
template [[host_name("large")]] [[kernel]] decltype(f<129>) f<129>;
"""
    )
    lib = mtl.library(text, portable=True)
    assert lib.small.threadgroup_bytes == 32768
    with pytest.raises(mtl.CompileError, match=r"size \(\d+\) exceeds .* \(32768\)") as caught:
        lib.function("large")
    assert caught.value.lineno == 12
    assert mtl.library(text).large.threadgroup_bytes >= 129 * 256  # the CPU takes it


def test_all_findings_are_in_the_order_of_the_text():
    body = HEADER + "int n = 1;\nkernel void a(device int* x) { double d = n; float* p; x[0] = d; }"
    with pytest.raises(mtl.CompileError) as caught:
        mtl.library(body, portable=True)
    positions = [(d.line, d.column) for d in caught.value.diagnostics]
    assert positions == [(3, 5), (4, 32), (4, 53)]


def test_a_macro_is_reported_where_it_is_used():
    text = HEADER + "#define REAL double\nkernel void k(device float* x) { x[0] = REAL(1); }"
    with pytest.raises(mtl.CompileError) as caught:
        mtl.library(text, portable=True)
    assert (caught.value.lineno, caught.value.offset) == (4, 41)


def test_generated_kernels():
    text = generate(
        "each",
        (
            InputText("x", "T1"),
            InputText("s", "float", is_scalar=True),
            InputText("c", "int", is_small=True),
        ),
        (OutputText("y", "float"), OutputText("n", "uint", is_atomic=True)),
        (TemplateArgument("typename", "T", "half"),),
        "uint at = elem_to_loc(thread_position_in_grid.x, x_shape, x_strides, x_ndim);\n"
        "y[0] = T(x[at]) * s + c[0];\n"
        "atomic_fetch_add_explicit(&n[0], 1u, memory_order_relaxed);",
        "typedef half T1;",
    ).text
    mtl.library(text, portable=True)


def test_check_portable(tmp_path, capsys):
    shutil.copy(EXAMPLES / "square.metal", tmp_path / "good.metal")
    bad = tmp_path / "bad.metal"
    bad.write_text(
        HEADER + "kernel void k(device float* x) {\n    double d = 1;\n    x[0] = d;\n}\n"
    )
    with mtl.config.scope(device="cpu"):
        assert main(["check", str(bad)]) == 0
    assert main(["check", "--portable", str(tmp_path / "good.metal")]) == 0
    capsys.readouterr()
    assert main(["check", "--portable", str(bad)]) == 1
    assert capsys.readouterr().err == (
        f"{bad}:4:5: error: 'double' is not supported in Metal; use float\n"
        "    double d = 1;\n"
        "    ^\n"
        "1 file checked, 1 with errors\n"
    )
