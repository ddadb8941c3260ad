"""The verifier finds each defect that is put into what passes leave of real kernels.

Each row of `MUTATIONS` (verifier_mutations.py) changes the function of one thread after a pass,
and names the error.
"""

from dataclasses import replace

import pytest
from verifier_mutations import (
    FLOW,
    MUTATIONS,
    atomic_result,
    copied,
    dropped_definition,
    missing_label,
    use_before_definition,
    wrong_predecessor,
)

import metalloid as mtl
from metalloid.compiler.ir import pass_manager
from metalloid.compiler.ir.verifier import InvalidIR, verify
from metalloid.compiler.vectorize import pipeline

#: Kernels are compiled although the cache has them, since passes are observed.
COMPILES = {"verify_passes": True, "print_after": "no pass", "cpu_engine": "simd"}


@pytest.fixture(scope="module")
def after():
    """A function: what a pass leaves of a kernel."""
    functions = {}

    def compile(source):
        with pytest.MonkeyPatch.context() as patch, mtl.config.scope(**COMPILES):  # fmt: skip
            copies = functions[source] = {}

            def save(function, name):
                copies.setdefault(name, copied(function))

            patch.setattr(pass_manager, "verify", save)
            library = mtl.library(source, device="cpu")
            assert library.function(library.functions[0]).engine.startswith("simd")

    def after(source, name):
        if source not in functions:
            compile(source)
        return copied(functions[source][name])

    return after


@pytest.mark.parametrize(
    ("mutate", "source", "name", "error"), MUTATIONS, ids=[row[0].__name__ for row in MUTATIONS]
)
def test_a_defect_is_reported(after, mutate, source, name, error):
    function = after(source, name)
    verify(function, name)
    mutate(function)
    with pytest.raises(InvalidIR, match=f"after {name}:\n(?s:.)*(?:{error})"):
        verify(function, name)


@pytest.mark.parametrize(
    ("name", "mutate"),
    [
        ("scalarize-vectors", dropped_definition),
        ("version-uniform-loops", wrong_predecessor),
        ("simplify-loops", missing_label),
        ("rematerialize", use_before_definition),
        ("defer-atomics", atomic_result),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_the_pass_that_leaves_a_defect_is_named(monkeypatch, name, mutate):
    def spoiled(each):
        def run(function, context):
            outcome = each.run(function, context)
            mutate(function)
            return outcome

        return replace(each, run=run) if each.name == name else each

    for each in ("LOWERING", "VECTORIZATION"):
        monkeypatch.setattr(pipeline, each, tuple(map(spoiled, getattr(pipeline, each))))
    with (
        mtl.config.scope(**COMPILES),
        pytest.raises(InvalidIR, match=f"in @mtl_thread after {name}:"),
    ):
        mtl.library(FLOW, device="cpu").function("flow")
