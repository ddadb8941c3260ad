"""The benchmark of the CPU, in sizes that only show that it works."""

import sys

import cpu
import numpy as np
import passes
import pytest
from cpu_rivals import goals, images, oracles
from cpu_rivals.native import RIVALS, CLibrary
from cpu_rivals.operations import operations
from cpu_rivals.peers import CASES, peers

import metalloid as mtl
from metalloid.backends.cpu.host import vector_extension
from metalloid.bench.cases import cases, kernels

CASE_NAMES = [case.name for case in cases(tiny=True)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    return {rival: CLibrary(rival, folder) for rival in RIVALS}


@pytest.mark.parametrize("name", CASE_NAMES)
def test_every_text_of_a_case_computes_the_same(name, built):
    case = next(case for case in cases(tiny=True) if case.name == name)
    actions = {"metalloid": case.launcher(kernels(math_mode="relaxed"))}
    actions |= {rival: library.launcher(case) for rival, library in built.items()}
    for rival, library in built.items():
        actions[f"{rival}, its own steps"] = library.launcher(case, "_as_told")
    assert actions["loop"], "every case has a loop to be compared with"
    for rival, action in actions.items():
        if action:
            cpu.checked(case, rival, action, lambda: case.arguments[0])


@pytest.mark.parametrize("name", CASE_NAMES)
def test_a_rival_that_computes_nothing_is_not_timed(name):
    case = next(case for case in cases(tiny=True) if case.name == name)
    with pytest.raises(AssertionError, match=rf"{name} by nobody: (off by|.* differ)"):
        cpu.checked(case, "nobody", lambda: None, lambda: case.arguments[0])


def test_how_results_may_differ():
    case = cases(tiny=True)[0]
    counts, values = np.zeros(4, np.uint32), np.ones(4, np.float32)
    assert oracles.disagreement(case, counts, counts + 1) == "4 of 4 differ"
    assert oracles.disagreement(case, values * 1.001, values) == "off by 0.0005, relative"
    assert oracles.disagreement(case, values * 1.0001, values) == ""


def test_peers_compute_the_same_or_say_why_they_are_absent():
    for name, peer in peers():
        if isinstance(peer, str):
            assert peer.startswith(("not installed: ", "does not start: ")), name
            continue
        for case in cases(tiny=True):
            if case.name in CASES and (pair := peer.launcher(case)):
                cpu.checked(case, name, *pair)


@pytest.mark.needs("the CPU")
def test_tables(capsys):
    parts = [f"--part={part}" for part in ("one", "math", "reference", "scaling")]
    with mtl.config.scope(cpu_engine="simd"):
        cpu.main(["--tiny", "--repeat=1", *parts, "saxpy", "exp_of", "nbody"])
    out = capsys.readouterr().out
    one, functions, engines, _ = out.split("\n\n")[1:]
    head, _, *rows = one.splitlines()[1:]
    assert head.split("  ")[-1] == "engine"
    for column in (*RIVALS, "metalloid", "over loop", "over hand"):
        assert column in head
    assert [row.split()[0] for row in rows] == ["saxpy", "exp_of", "nbody"]
    assert f": {goals.OVER_LOOP['nbody']:.2g})" in rows[2]
    assert functions.splitlines()[3].startswith("exp_of")
    assert "reference" in engines.splitlines()[1]


@pytest.mark.needs("the CPU")
def test_passes_and_back_end_are_timed_separately(tmp_path):
    with mtl.config.scope(cpu_engine="simd", cache_dir=tmp_path), passes.watched() as spent:
        engine = kernels()["saxpy"].engine
    assert engine.startswith("simd"), engine
    assert set(spent) == {"passes", "back end"}
    assert all(seconds > 0 for seconds in spent.values())


def test_a_verdict_says_whether_a_goal_is_met():
    assert goals.verdict(2.0, 1.5) == "2.00 (met: 1.5)"
    assert goals.verdict(1.0, 1.5) == "1.00 (MISSED: 1.5)"
    assert goals.verdict(1.0, None) == "1.00"


def test_unknown_cases_are_named():
    with pytest.raises(SystemExit, match="unknown cases: \\['nonsense'\\]"):
        cpu.main(["nonsense"])


def test_every_goal_is_of_a_case():
    named = {*goals.OVER_LOOP, *goals.OVER_HAND, *goals.OVER_REFERENCE,
             *goals.COMPUTE_BOUND, *goals.FUNCTIONS, *CASES}  # fmt: skip
    assert named <= {row for name in CASE_NAMES for row in (name, goals.as_told(name))}
    assert "cpu_rivals" in sys.modules


COUNTED = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  float a = fma(x[i], x[i], 3.0f) - 0.5f * y[i];  // four
  if (a < 0) y[i + 1] = a * a + 1;                // not always
  y[i] = a * 7;                                   // one
}
"""


@pytest.mark.needs("the CPU")
def test_operations_are_those_that_every_thread_does():
    with mtl.config.scope(cpu_engine="simd"):
        assert operations(mtl.library(COUNTED, math_mode="safe").f.asm["ll"]) == 5


@pytest.mark.needs("the CPU")
@pytest.mark.skipif(vector_extension() != "AVX-512", reason="other processors compute otherwise")
def test_operations_of_the_functions_as_the_documents_say():
    lib = kernels(math_mode="relaxed")
    with mtl.config.scope(cpu_engine="simd"):
        counts = {name: operations(lib[name].asm["ll"]) for name in goals.FUNCTIONS}
    assert counts == {"exp_of": 19, "log_of": 23, "sin_of": 19, "pow_of": 39}


def test_pictures_are_what_numpy_makes_of_them():
    lib = images.library("safe")
    for picture in images.pictures(tiny=True):
        expected = picture.expected()
        for action in filter(None, (picture.launcher(lib), images.of_opencv(picture))):
            picture.result.fill(77)
            action()
            assert np.abs(picture.result - expected).max() < images.MAX_DIFFERENCE
