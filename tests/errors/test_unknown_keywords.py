"""Unknown keywords of public functions have a suggestion when the error is shown."""

import sys

import numpy as np
import pytest

import metalloid as mtl
import metalloid.numpy as mnp
from metalloid import sum as total

X = mtl.asarray(np.ones(3, np.float32))


def own(x, *, axis=0):
    """A function of the user."""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python has suggestions of its own")
@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: mtl.sum(np.ones(3), axs=0), "Did you mean 'axis'?"),
        (lambda: total(X, keepdim=True), "Did you mean 'keepdims'?"),
        (lambda: (X + X).sum(axs=0), "Did you mean 'axis'?"),
        (lambda: mtl.linalg.norm(np.linalg.norm(np.ones((2, 2)), axis=0),
                                 orde=2), "Did you mean 'ord'?"),
        (lambda: mnp.random.default_rng(1).normal(siz=3), "Did you mean 'size'?"),
        (lambda: mtl.Buffer(X, devise="cpu"), "Did you mean 'device'?"),
        (lambda: mtl.library("", defins={}), "Did you mean 'defines'?"),
        (lambda: mtl.zeros(3, zzz=1), "Its keywords are shape, dtype, device."),
        (lambda: mtl.exp(X, axis=1), ""),
        (lambda: own(X, axs=0), ""),
        (lambda: np.sum(np.ones(3), axs=0), ""),
        (lambda: np.linalg.norm(np.ones(3), orde=2), ""),
    ],
)  # fmt: skip
def test_shown_errors(call, shown, capsys):
    with pytest.raises(TypeError) as caught:
        call()
    sys.excepthook(TypeError, caught.value, caught.tb)
    text = capsys.readouterr().err
    assert "unexpected keyword argument" in text
    assert text.splitlines()[-1] == shown if shown else "Did you" not in text


def test_a_call_without_text(capsys):
    scope = {"mtl": mtl, "x": X}
    with pytest.raises(TypeError) as caught:
        exec("mtl.sum(x, axs=0)", scope)
    sys.excepthook(TypeError, caught.value, caught.tb)
    assert "Did you mean 'axis'?" in capsys.readouterr().err


def test_ufuncs():
    x = mnp.ones(3)
    with pytest.raises(TypeError, match=r"\[add\] unexpected keyword argument 'dtyp'. Did you "):
        mnp.add(x, x, dtyp=np.float32)
    with pytest.raises(TypeError, match="Its keywords are out, where"):
        mnp.exp(x, zzz=1)
