"""The texts of generated kernels: readable, and what Apple's compiler is not known to refuse."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compiler.toolchain import clang

FLOATS = mtl.asarray(np.linspace(0.1, 2, 600, dtype=np.float32).reshape(20, 30))


def softmax(x):
    e = mtl.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


EXPRESSIONS = {
    "elementwise": lambda x: mtl.exp(-x * x) * mtl.sin(x) + mtl.sqrt(x) / (1 + x * x),
    "softmax": softmax,
    "variance": lambda x: x.var(axis=0),
    "long sum": lambda x: (mtl.broadcast_to(x, (1000, 20, 30)) + 1).sum(),
    "places": lambda x: x.argmax(axis=1),
    "integers": lambda x: mtl.astype(x, mtl.int16) // 3 << mtl.asarray(2, dtype=mtl.int16),
    "halves": lambda x: mtl.tanh(mtl.astype(x, mtl.float16)),
    "bfloats": lambda x: mtl.log1p(mtl.astype(x, mtl.bfloat16)),
    "complex": lambda x: mtl.exp(mtl.astype(x, mtl.complex64) * 1j),
    "gather": lambda x: x[mtl.asarray([3, 1])][:, mtl.asarray([[0, 5]])],
    "joined": lambda x: mtl.concat([x, mtl.flip(x)], axis=1),
    "many axes": lambda x: x.reshape(2, 10, 3, 10)[:, ::2, ::-1, 1::3].T + 1,
    "random": lambda x: mtl.random.normal((5,), key=mtl.random.key(1)) + x[0, :5],
    "truth": lambda x: (x > 1).any(axis=1) | (x < 0).all(axis=1),
}


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [("registers", "int8"), ("registers", "complex64"), ("simdgroups", "bfloat16")],
)
def test_products_are_portable(backend, dtype):
    x = mtl.astype(FLOATS, getattr(mtl, dtype))
    with mtl.config.scope(products=backend):
        product = x @ (x.T * 2) + x[0, 0]
    for text in product.msl().split("#include <metal_stdlib>")[1:]:
        mtl.library("#include <metal_stdlib>" + text, portable=True)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_it_is_portable(name):
    for text in EXPRESSIONS[name](FLOATS).msl().split("#include <metal_stdlib>")[1:]:
        mtl.library("#include <metal_stdlib>" + text, portable=True)


def test_float64_is_refused_by_name():
    text = (mtl.astype(FLOATS, mtl.float64) + 1).msl()
    with pytest.raises(mtl.CompileError, match="double"):
        mtl.library(text, portable=True)


def test_the_text_depends_on_structure_only():
    def text(shape, number):
        return mtl.explain(mtl.exp(mtl.ones(shape) * number) + number).split("struct", 1)[1]

    assert text((3, 4), 2.0) == text((50,), 7.5)


def test_generated_texts_are_not_checked_before_they_are_compiled(monkeypatch):
    runs, run = [], clang.run

    def record(arguments, *rest, **options):
        runs.append(arguments)
        return run(arguments, *rest, **options)

    monkeypatch.setattr(clang, "run", record)
    value = float(np.random.default_rng().random())  # a constant of a text that is in no cache
    assert float((mtl.exp(FLOATS) * np.float32(value) + 1.5).sum()) > 0
    mtl.library(f"kernel void f(device float* x) {{ x[0] = {value}f; }}")
    checks = [arguments for arguments in runs if "-fsyntax-only" in arguments]
    assert len(checks) == 1
