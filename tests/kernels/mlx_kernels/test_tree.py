"""The coverage table over MLX's tree: its runner, and a few entries of each family."""

import json
import os
import random
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from mlx_tree.entries import KERNELS, Entry, families, family_of, files, library

import metalloid as mtl

ROOT = Path(__file__).parents[3]
TREE = os.environ.get("METALLOID_MLX_TREE")
ENTRIES_PER_FAMILY = 4

ARANGE = """
template <typename T>
[[kernel]] void arange(constant const T& start, constant const T& step, device T* out,
                       uint index [[thread_position_in_grid]])
{
    out[index] = start + index * step;
}
template <typename T>
[[kernel]] void wrong(constant const T& start, constant const T& step, device T* out,
                      uint index [[thread_position_in_grid]])
{
    out[index] = start + index * step + (index == 900);
}
template [[host_name("arangefloat32")]] [[kernel]] decltype(arange<float>) arange<float>;
template [[host_name("arangeint32")]] [[kernel]] decltype(wrong<int>) wrong<int>;
"""
OTHER = """
kernel void f(device int* x [[buffer(0)]]) { x[0] = 1; }
"""


@pytest.fixture(autouse=True)
def _mlx_headers():
    """The wheel's headers are not used here."""


@pytest.fixture
def tree(tmp_path):
    """Two files with a right kernel, a wrong one and one of no family; a third is no MSL."""
    folder = tmp_path / "mlx/backend/metal/kernels"
    folder.mkdir(parents=True)
    (folder / "arange.metal").write_text(ARANGE)
    (folder / "other.metal").write_text(OTHER)
    (folder / "broken.metal").write_text("kernel void f(device nonsense* x) {}\n")
    (folder / "broken_nax.metal").write_text("left out\n")
    return tmp_path


def coverage(tree, *options):
    """Output of the script, and its results by entry."""
    results = tree / "results.jsonl"
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/coverage.py", "--mlx", tree, "--results", results,
         *options],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return done.stdout, lines


@pytest.mark.needs("the CPU")
def test_the_table_of_a_small_tree(tree, monkeypatch):
    monkeypatch.setenv("METALLOID_CPU_ENGINE", "simd")  # its kernels are counted
    first, lines = coverage(tree, "--family", "arange", "--match", "float")
    assert [(line["name"], line["checked"]) for line in lines] == [("arangefloat32", "agrees")]
    assert first.splitlines()[-1].split() == ["total", "4", "1", "1", "1", "0", "0", "3"]
    # What was there is not done again; the rest is, in two processes.
    text, lines = coverage(tree, "--jobs", "2", "--markdown")
    by_kernel = {(line["file"], line["name"]): line for line in lines}
    assert len(by_kernel) == len(lines) == 4
    assert lines[0]["name"] == "arangefloat32"
    wrong = by_kernel["arange.metal", "arangeint32"]
    assert (wrong["compiled"], wrong["checked"]) == (True, "disagrees")
    assert "Mismatched elements: 1 / 1000" in wrong["reason"]
    broken = by_kernel["broken.metal", ""]
    assert not broken["compiled"]
    assert "unknown type name 'nonsense'" in broken["reason"]
    alone = by_kernel["other.metal", "f"]
    assert (alone["compiled"], alone["reason"]) == (True, "no family covers it")
    assert "| arange | 2 | 2 | 1 | 1 | 1 | 0 | 0 |" in text
    assert text.splitlines()[-1] == "| total | 4 | 3 | 2 | 1 | 1 | 2 | 0 |"


def test_a_crash_costs_one_entry(tree, monkeypatch):
    import workers
    from mlx_tree.workers import MlxWorker

    monkeypatch.setattr(workers, "_work", _die_at_first)
    worker = MlxWorker(tree, gpu=None)
    lost = worker.check(Entry("arange.metal", "die"), 60)
    assert lost["reason"] == "crashes: the process ended with code 3"
    assert worker.check(Entry("arange.metal", "live"), 60)["checked"] == "agrees"
    late = worker.check(Entry("arange.metal", "sleep"), 0.1)
    assert late["reason"] == "hangs: no result after 0.1 seconds"
    assert worker.check(Entry("arange.metal", "live"), 60)["checked"] == "agrees"
    worker.stop()


def _die_at_first(tree, gpu, pipe):
    while job := pipe.recv():
        _, entry = job
        if entry.name == "die":
            os._exit(3)
        if entry.name == "sleep":
            time.sleep(60)
        pipe.send({"checked": "agrees", "reason": ""})


@pytest.mark.needs("the CPU")
def test_findings_of_an_entry(tree):
    from mlx_tree.checks import findings_of
    from mlx_tree.workers import MlxWorker

    path = tree / "mlx/backend/metal/kernels/arange.metal"
    path.write_text(ARANGE.replace("(index == 900)", "(out[index / 32] > 900)"))
    worker = MlxWorker(tree, None, findings_of)
    right = worker.check(Entry("arange.metal", "arangefloat32"), 60)
    racy = worker.check(Entry("arange.metal", "arangeint32"), 60)
    worker.stop()
    assert right == {"findings": [], "reason": ""}
    (finding,) = racy["findings"]
    assert (finding["kind"], finding["lines"]) == ("race", ["arange.metal:12", "arange.metal:12"])
    assert racy["reason"].startswith("AssertionError: ")


@pytest.mark.needs("the CPU")
def test_a_run_that_is_out_of_time_stops_and_shows_its_table(tree):
    from mlx_tree import workers

    few = workers.Workers(tree, jobs=2, gpus=0, seconds=-1)
    results = []
    few.check([Entry("arange.metal", "arangefloat32")], 60, lambda *one: results.append(one))
    few.stop()
    assert results == []
    one = workers.Workers(tree, jobs=1, gpus=0, seconds=60)
    one.check([Entry("arange.metal", "arangefloat32")], 60, lambda *one: results.append(one))
    one.stop()
    ((entry, result),) = results
    assert (entry.name, result["checked"]) == ("arangefloat32", "agrees")
    assert 0 < result["compiling"] < result["seconds"]


def entries_of(name):
    """A seeded sample of a family's entries."""
    if TREE is None:
        pytest.skip("METALLOID_MLX_TREE names no checkout of MLX")
    known = families()
    (family,) = [family for family in known if family.name == name]
    present = {file for nax in (False, True) for file in files(Path(TREE), nax)}
    for file in family.files:
        assert file in present, f"{TREE} has no kernels/{file}"
        lib = library(Path(TREE), file)
        mine = [entry for entry in lib if family_of(Entry(file, entry), known) is family]
        for entry in random.Random(1).sample(mine, min(len(mine), ENTRIES_PER_FAMILY)):
            yield family, lib, entry


def seeded(entry):
    return np.random.default_rng(zlib.crc32(entry.encode()))


@pytest.mark.slow
@pytest.mark.parametrize("family", [family.name for family in families()])
def test_entries_of_the_tree(family):
    for mine, lib, entry in entries_of(family):
        mine.check(lib, entry, seeded(entry))


class Swapped:
    """A library in which one kernel stands under another's name."""

    def __init__(self, lib, names):
        self.lib, self.names = lib, names

    def function(self, name, constants=None):
        return self.lib.function(self.names.get(name, name), constants)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entry", "wrong"),
    [
        ("unary", "gn1_Sinfloat16float16", "gn1_Cosfloat16float16"),
        ("binary", "vs_LessEqualbfloat16", "vs_Lessbfloat16"),
        ("binary", "g3large_Addint64", "g3large_BitwiseXorint64"),
        ("copy", "v_copyint32int32", "s_copyint32int32"),
        ("reduce", "col_reduce_2pass_5_32_32_reduce_maxint32",
         "col_reduce_2pass_5_32_32_reduce_minint32"),
        ("scan", "contig_scan_inclusive_max_float32_float32",
         "contig_scan_reverse_inclusive_max_float32_float32"),
        ("sort", "carg_block_sort_uint32_uint32_bn32_tn4", "c_block_sort_uint32_uint32_bn32_tn4"),
        ("arg_reduce", "argmax_uint8", "argmin_uint8"),
        ("searchsorted", "searchsorted_int8_left", "searchsorted_int8_right"),
        ("softmax", "block_softmax_precise_float16", "block_softmax_float16"),
        ("ternary", "v_Selectint32", "vs_Selectint32"),
        ("ternary", "svn_Selectbfloat16", "vn_Selectbfloat16"),
        ("fence", "input_coherent", "fence_update"),
        ("fence", "fence_update", "fence_wait"),
        ("fence", "fence_wait", "fence_update"),
    ],
)  # fmt: skip
def test_another_kernel_disagrees(name, entry, wrong):
    for mine, lib, _ in entries_of(name):
        with pytest.raises(AssertionError):
            mine.check(Swapped(lib, {entry: wrong}), entry, seeded(entry))
        return


def altered(folder, file, where, old, new):
    """A library of `file` for which `old` reads `new` in the text of the file `where`."""
    tree = Path(TREE)
    text = (tree / KERNELS / where).read_text()
    assert old in text
    copy = folder / KERNELS / where
    copy.parent.mkdir(parents=True)
    copy.write_text(text.replace(old, new))
    path = copy if where == file else tree / KERNELS / file
    return mtl.library(path=path, include_dirs=[folder, tree])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entry", "where", "old", "new"),
    [
        ("softmax", "looped_softmax_bfloat16", "softmax.h", "prevmax - maxval", "0"),
        ("logsumexp", "block_logsumexp_float16", "logsumexp.h", "log(normalizer)", "normalizer"),
        ("layer_norm", "layer_normfloat32", "layer_norm.metal", "axis_size + eps", "axis_size"),
        ("layer_norm", "vjp_layer_norm_loopedbfloat16", "layer_norm.metal",
         "- factors[meanwg])", ")"),
        ("rms_norm", "rmsfloat16", "rms_norm.metal", "axis_size + eps", "(axis_size + 1)"),
        ("rms_norm", "vjp_rms_loopedfloat32", "rms_norm.metal", "axis_size + eps", "axis_size"),
        ("rope", "rope_single_float32", "rope.metal", "fast::cos", "fast::sin"),
        ("rope", "rope_freqs_float16", "rope.metal", "+ i < n_head", "+ i + 1 < n_head"),
        ("random", "rbits", "random.metal", "16, 24", "16, 23"),
        ("random", "rbitsc", "random.metal", "drop_last ? 0 :", "false ? 0 :"),
        ("arange", "arangebfloat16", "arange.h", "index * step", "(index + 1) * step"),
        ("arange", "arangeuint8", "arange.h", "start +", "start -"),
        ("ternary", "g2_Selectcomplex64", "ternary_ops.h", "x : y", "y : x"),
    ],
)  # fmt: skip
def test_an_altered_kernel_disagrees(name, entry, where, old, new, tmp_path):
    for mine, _, _ in entries_of(name):
        wrong = altered(tmp_path, mine.files[0], where, old, new)
        with pytest.raises(AssertionError):
            mine.check(wrong, entry, seeded(entry))
        return
