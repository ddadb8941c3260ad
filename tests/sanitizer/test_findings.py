"""Findings of the sanitizer, their messages, and the options that ask for checks."""

import json
from dataclasses import replace

import numpy as np
import pytest

import metalloid as mtl
from metalloid.cli.main import main
from metalloid.sanitizer.sarif import sarif_text

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """\
#include <metal_stdlib>
using namespace metal;
kernel void reverse(device const float* in, device float* out,
                    uint l [[thread_position_in_threadgroup]],
                    uint i [[thread_position_in_grid]]) {
    threadgroup float tile[64];
    tile[l] = in[i];
#ifdef BARRIER
    BARRIER;
#endif
    out[i] = tile[63 - l];
}
kernel void partial(device const float* in, device float* out, threadgroup float* tile,
                    uint l [[thread_position_in_threadgroup]],
                    uint i [[thread_position_in_grid]]) {
    if (l % 2 == 0) tile[l] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[l];
}
kernel void count(device int* total, uint i [[thread_position_in_grid]]) { total[0] += 1; }
kernel void mark(device int* any, device const int* in, uint i [[thread_position_in_grid]]) {
    if (in[i] > 0) any[0] = in[i];
}
kernel void mixed(device atomic_int* total, device int* out, uint i [[thread_position_in_grid]]) {
    if (i == 3) out[0] = *(device int*)total;
    else atomic_fetch_add_explicit(total, 1, memory_order_relaxed);
}
kernel void quotient(device int* a, device const int* b, uint i [[thread_position_in_grid]]) {
    a[i] /= b[i];
}
kernel void shuffled(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
    float v = in[i];
    v += simd_shuffle_down(v, 16);
    if (i % 2 == 0) v += simd_shuffle_xor(v, 1);
    out[i] = v;
}
kernel void converted(device const float* in, device int* out, device uchar* small,
                      uint i [[thread_position_in_grid]]) {
    float v = in[i];
    out[i] = int(v);
    small[i] = v < 256 ? uchar(v) : 255;
}
kernel void converted_vectors(device const float4* in, device uchar4* out, device uint* packed,
                              uint i [[thread_position_in_grid]]) {
    packed[i] = pack_float_to_unorm4x8(in[i]);  // the library's own conversions are right
    out[i] = uchar4(in[i]);
}
kernel void variables(device const float* in, device float* out, constant int& count,
                      uint i [[thread_position_in_grid]]) {
    float values[2][2];
    for (int j = 0; j < count; j++) values[j / 2][j % 2] = in[i];
    float scale, zeros[8] = {};
    if (i % 2) scale = 2;
    float total = zeros[i];
    for (int j = 0; j < 4; j++) total += values[j / 2][j % 2];
    if (count < 4) total *= scale;
    int unused;
    if (i > 8) total += unused;
    out[i] = total;
}
#define TWICE(x) do { lanes[l] = x; x = lanes[l ^ 1]; simdgroup_barrier(mem_flags::mem_threadgroup); } while (0)
kernel void swapped(device float* out, uint l [[thread_position_in_threadgroup]]) {
    threadgroup float lanes[64];
    float v = out[l];
    TWICE(v);
    out[l] = v;
}
kernel void list(device int* count, device int* out, uint i [[thread_position_in_grid]]) {
    int at = count[0];
    count[0] = at + 1;
    out[at] = i;
}
kernel void guarded(device float* out, uint l [[thread_position_in_threadgroup]],
                    uint i [[thread_position_in_grid]]) {
    threadgroup float first[4];
    float v = 0;
    if (l == 0) { first[0] = 1; v = first[0]; }
    out[i] = v;
}
// The threadgroup that ends last adds what all have stored.
kernel void sum(device const float* in, device float* partial, device atomic_uint* ended,
                device float* out, uint l [[thread_position_in_threadgroup]],
                uint i [[thread_position_in_grid]], uint g [[threadgroup_position_in_grid]],
                uint groups [[threadgroups_per_grid]]) {
    threadgroup bool is_last;
    float x = simd_sum(in[i]);
    if (l == 0) {
        partial[g] = x;
#ifndef WITHOUT_FENCE
        atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
#endif
        is_last = atomic_fetch_add_explicit(ended, 1u, memory_order_relaxed) == groups - 1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (is_last && l == 0) {
        atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
        float total = 0;
        for (uint k = 0; k < groups; k++) total += partial[k];
        out[0] = total;
    }
}
"""


def compiled(name, **defines):
    return mtl.library(SOURCE, device="cpu", defines=defines)[name]


def line_of(text):
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def findings_of(kernel, *arguments, threads=64, **options):
    with mtl.checking(raises=False) as findings:
        kernel(*arguments, threads=threads, group_size=min(threads, 64), **options)
    return findings


def arrays(count=64):
    return np.arange(count, dtype=np.float32), np.zeros(count, np.float32)


MESSAGE = """\
[reverse] the sanitizer found a defect.
data race (read, write) on element 32 of 'tile' (threadgroup memory) (64 times)
  program_source:11: thread (31, 0, 0) of threadgroup (0, 0, 0) read 0.0
          out[i] = tile[63 - l];
                   ^
  program_source:7: thread (32, 0, 0) of threadgroup (0, 0, 0) wrote 32.0
          tile[l] = in[i];
                  ^
  Put threadgroup_barrier(mem_flags::mem_threadgroup) between the two lines, where all threads reach it."""


def test_message_names_both_lines():
    with pytest.raises(mtl.SanitizerError) as caught:
        compiled("reverse")(*arrays(), threads=64, group_size=64, check=True)
    error = caught.value
    assert str(error) == MESSAGE
    assert (error.kernel, error.line, error.threadgroup) == ("reverse", 7, (0, 0, 0))
    assert isinstance(error, mtl.KernelFault)
    [finding] = json.loads(error.to_json())
    assert [access["line"] for access in finding["accesses"]] == [11, 7]
    [result] = json.loads(sarif_text(error.findings))["runs"][0]["results"]
    assert result["ruleId"] == "race"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 7, "startColumn": 13}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("barrier", "hint"),
    [
        (
            "threadgroup_barrier(mem_flags::mem_device)",
            "does not order threadgroup memory: let its flags include mem_flags::mem_threadgroup.",
        ),
        ("simdgroup_barrier(mem_flags::mem_threadgroup)", "of one simdgroup only: use thread"),
        ("threadgroup_barrier(mem_flags::mem_threadgroup)", None),
    ],
)
def test_barriers_that_do_not_suffice(barrier, hint):
    findings = findings_of(compiled("reverse", BARRIER=barrier), *arrays())
    assert len(findings) == (hint is not None)
    for finding in findings:
        assert hint in finding.hint


@pytest.mark.slow
def test_races_in_a_simdgroup_and_in_macros():
    [finding] = findings_of(compiled("swapped"), np.arange(64, dtype=np.float32))
    assert "a simdgroup_barrier suffices" in finding.hint
    assert {access.line for access in finding.accesses} == {line_of("TWICE(v)")}
    beyond = replace(finding.accesses[0], column=200)  # in the line as the preprocessor expands it
    assert "^" in finding.accesses[0].describe()
    assert "^" not in beyond.describe()


def test_races_between_threadgroups():
    [finding] = findings_of(compiled("count"), np.zeros(1, np.int32), threads=3 * 64)
    assert finding.memory == "element 0 of 'total' (device memory)"
    assert [access.access for access in finding.accesses] == ["write", "read"]
    assert finding.count > 180
    total = mtl.Buffer(np.zeros(1, np.int32), "cpu")  # a launch that does not wait
    with pytest.raises(mtl.SanitizerError):
        compiled("count")(total, threads=64, check=True)


@pytest.mark.slow
def test_equal_writes_are_no_race():
    kernel, values = compiled("mark"), np.ones(64, np.int32)
    assert findings_of(kernel, np.zeros(1, np.int32), values) == []
    values[40] = 2
    [finding] = findings_of(kernel, np.zeros(1, np.int32), values)
    assert [access.value for access in finding.accesses] == ["1", "2"]
    assert [access.thread[0] for access in finding.accesses] == [39, 40]


@pytest.mark.slow
def test_atomic_and_plain_accesses():
    total, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    findings = findings_of(compiled("mixed"), total, out, threads=64)
    assert {access.access for f in findings for access in f.accesses} == {"read", "atomic update"}
    assert all("Let both be atomic" in finding.hint for finding in findings)


def test_exchanges_that_fail_write_nothing():
    lib = mtl.library(
        """#include <metal_stdlib>
        using namespace metal;
        kernel void take(device atomic_int* lock, device int* out, constant int& free,
                         uint i [[thread_position_in_grid]]) {
            int expected = free;
            atomic_compare_exchange_weak_explicit(
                lock, &expected, 1, memory_order_relaxed, memory_order_relaxed);
            out[i] = *(device int*)lock;
        }
        """,
        device="cpu",
    )
    assert findings_of(lib.take, np.zeros(1, np.int32), np.zeros(64, np.int32), 7) == []
    [finding] = findings_of(lib.take, np.zeros(1, np.int32), np.zeros(64, np.int32), 0)
    assert finding.kind == "race"


def test_uninitialised_threadgroup_memory():
    memory = mtl.threadgroup_memory(256)
    [finding] = findings_of(compiled("partial"), *arrays(128), memory, threads=128)
    assert finding.kind == "uninitialised"
    assert finding.memory == "element 1 of 'tile' (threadgroup memory)"
    assert [access.line for access in finding.accesses] == [18]
    assert finding.count == 64  # in the second threadgroup, too


def test_loads_of_one_thread_stay_its_own():
    """LLVM would load `first[0]` in every thread."""
    assert findings_of(compiled("guarded"), np.zeros(64, np.float32)) == []


@pytest.mark.slow
def test_fences_and_atomics_order_threadgroups():
    values = np.ones(8 * 32, np.float32)

    def findings(**defines):
        ended, out = np.zeros(1, np.uint32), np.zeros(1, np.float32)
        kernel = compiled("sum", **defines)
        with mtl.checking(raises=False) as collected:
            kernel(values, np.zeros(8, np.float32), ended, out, threads=256, group_size=32)
        assert out[0] == 256
        return collected

    assert findings() == []
    [finding] = findings(WITHOUT_FENCE=1)
    assert finding.memory.startswith("element 0 of 'partial'")


def test_shuffles_from_lanes_that_do_not_take_part():
    [finding] = findings_of(compiled("shuffled"), *arrays(32), threads=32)
    assert finding.kind == "inactive-lane"
    assert (finding.memory, finding.count) == ("lane 1", 16)
    assert finding.accesses[0].line == line_of("simd_shuffle_xor")
    findings = findings_of(compiled("shuffled"), *arrays(24), threads=24)  # lanes 24 to 31 miss
    lines = [access.line for finding in findings for access in finding.accesses]
    assert lines == [line_of("simd_shuffle_down"), line_of("simd_shuffle_xor")]


@pytest.mark.slow
def test_conversions_out_of_range():
    values = np.array([1, 255.9, 300, -0.9, 2**31 - 128, 2**31, -(2**31), np.nan], np.float32)
    results = np.zeros(8, np.int32), np.zeros(8, np.uint8)
    [finding, other] = findings_of(compiled("converted"), values, *results, threads=8)
    assert {finding.kind, other.kind} == {"conversion"}
    assert (finding.memory, finding.count) == ("2147483648.0", 2)
    # Of `uchar(v)` only the numbers for which it is evaluated.
    assert (other.memory, other.count) == ("-2147483648.0", 1)
    lines = finding.accesses[0].line, other.accesses[0].line
    assert lines == (line_of("= int(v)"), line_of("uchar(v)"))


@pytest.mark.slow
def test_variables_without_a_value():
    kernel, (x, out) = compiled("variables"), arrays(8)
    assert findings_of(kernel, x, out, 4, threads=8) == []
    array, scalar = findings_of(kernel, x, out, 3, threads=8)
    assert {array.kind, scalar.kind} == {"uninitialised"}
    assert (array.memory, array.count) == ("variable 'values'", 8)
    assert (scalar.memory, scalar.count) == ("variable 'scale'", 4)
    assert array.accesses[0].line == line_of("total += values[")


@pytest.mark.slow
def test_conversions_of_vectors():
    values = np.array([[1, 255.9, -0.9, 7], [0, 1, 300, 3], [2, np.nan, 4, -1]], np.float32)
    results = np.zeros((3, 4), np.uint8), np.zeros(3, np.uint32)
    findings = findings_of(compiled("converted_vectors"), values, *results, threads=3)
    assert {finding.kind for finding in findings} == {"conversion"}
    assert {finding.accesses[0].line for finding in findings} == {line_of("= uchar4(")}
    assert sum(finding.count for finding in findings) == 3


@pytest.mark.slow
def test_other_faults_have_their_messages():
    with pytest.raises(
        mtl.KernelFault, match=rf"program_source:{line_of('/= b')}: integer division"
    ):
        compiled("quotient")(np.ones(4, np.int32), np.zeros(4, np.int32), threads=4, check=True)
    with pytest.raises(mtl.KernelFault, match="write to index 64 of 'out', which has 64 elements"):
        compiled("guarded")(np.zeros(64, np.float32), threads=65, group_size=65, check=True)


def test_bounds_are_those_of_the_library():
    """A read outside whose value is dropped is none, as in launches without checks."""
    source = """kernel void add(device float *y, device const float *x, constant uint &n,
                                uint i [[thread_position_in_grid]]) {
      float read = x[i];
      if (i < n) y[i] = read + 1;
    }
    """
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    lib = mtl.library(source, device="cpu", check=True)
    lib.add(y[:40], x[:40], 40, threads=64)
    np.testing.assert_array_equal(y[:40], x[:40] + 1)
    with pytest.raises(mtl.KernelFault, match="read of index 40 of 'x'"):
        lib.add(y, x[:40], 64, threads=64)
    unchecked = mtl.library(source, device="cpu", check=True, bounds="unchecked")
    unchecked.add(y, x[:40], 64, threads=64)
    np.testing.assert_array_equal(y, x + 1)


def test_settings_and_libraries_ask_for_checks():
    kernel, (x, out) = compiled("reverse"), arrays()
    sizes = {"threads": 64, "group_size": 64}
    for _ in range(2):  # the second launch would take the fast path
        kernel(x, out, **sizes)
    always = mtl.library(SOURCE, device="cpu", check=True).reverse
    with pytest.raises(mtl.SanitizerError):
        always(x, out, **sizes)
    with mtl.config.scope(check=True), pytest.raises(mtl.SanitizerError):
        kernel(x, out, **sizes)
    kernel(x, out, **sizes)


@pytest.mark.slow
def test_findings_before_a_fault():
    with pytest.raises(mtl.KernelFault, match="write to index 8 of 'out'") as caught:
        compiled("list")(np.zeros(1, np.int32), np.zeros(8, np.int32), threads=64, check=True)
    assert not isinstance(caught.value, mtl.SanitizerError)
    [note] = caught.value.__notes__
    assert note.startswith("Before that, [list] the sanitizer found 2 defects.\ndata race")


def test_checks_need_the_cpu():
    with pytest.raises(mtl.ArgumentError, match=r"check=True needs the CPU, got 'cuda:sm_90'"):
        mtl.library(SOURCE, target="cuda:sm_90", check=True)


def test_command_line(tmp_path, capsys):
    path = tmp_path / "kernels.metal"
    path.write_text(SOURCE)
    words = ["--threads", "64", "--arg", "ones:64:float32", "--arg", "out=zeros:64:float32"]
    assert main(["run", str(path), "reverse", *words, "--group-size", "64"]) == 0
    assert main(["run", str(path), "reverse", *words, "--group-size", "64", "--check"]) == 1
    assert f"{path}:7: thread (32, 0, 0)" in capsys.readouterr().err


PYTEST = """
import numpy as np
import metalloid as mtl

def test_racy():
    lib = mtl.library(path={path!r}, device="cpu")
    lib.reverse(np.ones(64, np.float32), np.zeros(64, np.float32), threads=64, group_size=64)

def test_right():
    assert True
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_pytest_plugin(tmp_path, monkeypatch, workers):
    path, sarif = tmp_path / "kernels.metal", tmp_path / "findings.sarif"
    path.write_text(SOURCE)
    (tmp_path / "test_it.py").write_text(PYTEST.format(path=str(path)))
    options = [str(tmp_path), "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    options += ["-p", "metalloid.sanitizer.pytest_plugin"]
    if workers:
        options += ["-p", "xdist", "-n", str(workers)]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert pytest.main(options) == pytest.ExitCode.OK
    checked = [*options, "--metalloid-check", "--metalloid-sarif", str(sarif)]
    assert pytest.main(checked) == pytest.ExitCode.TESTS_FAILED
    [result] = json.loads(sarif.read_text())["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == path.as_posix()
