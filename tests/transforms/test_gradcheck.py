"""`gradcheck` accepts right derivatives and tells wrong ones."""

import pytest

import metalloid as mtl


def test_right_derivatives():
    x = mtl.asarray([0.5, 2.0])
    mtl.gradcheck(lambda x, y: (mtl.sin(x) * y, (x @ y) ** 2), x, x + 1)
    mtl.gradcheck(lambda z: mtl.exp(z) * mtl.conj(z), mtl.asarray([1 + 2j, 0.5j]))


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
def test_wrong_derivatives(mode):
    wrong = mtl.custom_function(mtl.sin)
    if mode == "jvp":
        wrong.jvp(lambda x, tangent: tangent)
    else:
        wrong.vjp(lambda x, cotangent, output: cotangent)
    with pytest.raises(AssertionError, match=rf"\[gradcheck\] {mode} of .* instead of"):
        mtl.gradcheck(wrong, mtl.asarray([0.5, 2.0]))


def test_integers():
    with pytest.raises(TypeError, match="int64"):
        mtl.gradcheck(mtl.abs, mtl.arange(3))
