"""Products of matrices are found in the forms in which processors return two floats."""

import pytest

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.matrix_type import MATRIX, column_of, row_of
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.verifier import verify
from metalloid.compiler.transforms.matrix_products import lower_matrix_products
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors

CALL = "@__msl_simdgroup_matrix_multiply_f32(float %a, float %b, float %c, float %d, float 0.0, float 1.0)"
FORMS = {
    "x86-64": f"%r = call <2 x float> {CALL}\n%x = extractelement <2 x float> %r, i64 0\n"
    "%y = extractelement <2 x float> %r, i64 1",
    "aarch64": f"%r = call {{ float, float }} {CALL}\n%x = extractvalue {{ float, float }} %r, 0\n"
    "%y = extractvalue { float, float } %r, 1",
}


@pytest.mark.parametrize("form", FORMS)
def test_products_are_lowered(form):
    text = (
        "define void @f(ptr %p, float %a, float %b, float %c, float %d) {\nentry:\n"
        f"{FORMS[form]}\n%s = fadd float %x, %y\nstore float %s, ptr %p\nret void\n}}\n"
    )
    function = parse_function(text, "f")
    lower_matrix_products(function)
    scalarize_vectors(function)
    body = function.entry.body
    assert [i.op for i in body] == [
        *["to_matrix"] * 3, "multiply_matrices", *["of_matrix"] * 2, "fadd", "store",
    ]  # fmt: skip
    left, right, start, product, x, y, total, _ = body
    assert [v.name for i in (left, right, start) for v in i.operands] == [
        "%a", "%b", "%c", "%d", "0.0", "1.0",
    ]  # fmt: skip
    assert product.operands == [left.value, right.value, start.value]
    assert product.type is MATRIX
    assert (x.indices, y.indices) == ((0,), (1,))
    assert total.operands == [x.value, y.value]


def test_every_element_has_an_owner():
    elements = {(row_of(lane), column_of(lane) + j) for lane in range(WIDTH) for j in (0, 1)}
    assert elements == {(row, column) for row in range(8) for column in range(8)}


def test_no_name_of_clang_is_redefined():
    """clang calls its own values ``%r.1`` and the like, where it has inlined or unrolled."""
    names = ("0", "1", "half", "left", "right", "start", "matrix")
    own = "\n".join(f"%r.{name} = fadd float %a, %b" for name in names)
    text = (
        "define void @f(ptr %p, float %a, float %b, float %c, float %d) {\nentry:\n"
        f"{own}\n{FORMS['x86-64']}\n%s = fadd float %x, %r.1\nstore float %s, ptr %p\nret void\n}}\n"
    )
    function = parse_function(text, "f")
    verify(function)
    lower_matrix_products(function)
    verify(function)
    scalarize_vectors(function)
    verify(function)
