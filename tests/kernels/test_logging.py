"""Messages of kernels arrive in `logging`; assertions that do not hold are faults."""

import ctypes
import logging
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.runtime.launch.log_messages import LOGGER, format_message

SOURCE = """
#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
constant os_log network("com.example", "network");

kernel void levels(uint i [[thread_position_in_grid]]) {
    if (i != 2) return;
    os_log_default.log_debug("a");
    os_log_default.log_info("b");
    os_log_default.log("c");
    os_log_default.log_error("d");
    os_log_default.log_fault("e");
    network.log_with_type(log_type_error, "f");
}
kernel void values(device const float* x, constant char* unused, uint2 i [[thread_position_in_grid]]) {
    network.log_info("%d %5.2f %v3f|%-4u|%x %ld %s %%", int(i.x) - 1, x[i.x], float3(x[0], x[1], x[2]),
                     i.y, -1, 1l << 40, "text");
}
kernel void together(device float* x, uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    float sum = simd_sum(x[i]);
    if (lane == 3) os_log_default.log("%g", sum);
}
kernel void flood(uint i [[thread_position_in_grid]]) { os_log_default.log("message number %d", i); }
kernel void checked(device const float* x, uint2 i [[thread_position_in_grid]]) { assert(x[i.x] < 3); }
kernel void checked_together(device const float* x, uint i [[thread_position_in_grid]]) {
    float sum = simd_sum(x[i]);
    assert(sum < 100 || i < 37);
}
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE)


@pytest.fixture(autouse=True)
def every_level(caplog):
    caplog.set_level(logging.DEBUG, LOGGER)


def test_levels_and_loggers(lib, caplog):
    lib.levels(threads=3, wait=True)
    assert [(r.levelname, r.name) for r in caplog.records] == [
        ("DEBUG", LOGGER),
        ("INFO", LOGGER),
        ("INFO", LOGGER),
        ("ERROR", LOGGER),
        ("CRITICAL", LOGGER),
        ("ERROR", f"{LOGGER}.com.example.network"),
    ]
    assert caplog.messages[0] == "[levels] a (thread (2, 0, 0) of threadgroup (0, 0, 0))"


def test_values_and_thread_positions(lib, caplog):
    x = np.array([0.5, 1.25, -2], np.float32)
    lib.values(x, 0, threads=(3, 2), group_size=(2, 1))
    texts = {}
    for record in caplog.records:
        group, thread = record.kernel_threadgroup, record.kernel_thread
        texts[2 * group[0] + thread[0], group[1] + thread[1]] = record.args[1]
        assert record.kernel == "values"
    vector = "0.500000,1.250000,-2.000000"
    assert texts == {
        (i, j): f"{i - 1} {x[i]:5.2f} {vector}|{j:<4}|ffffffff {2**40} text %"
        for i in range(3)
        for j in range(2)
    }


def test_threads_that_meet(lib, caplog):
    lib.together(np.arange(70, dtype=np.float32), threads=70, group_size=70)
    got = {(r.kernel_thread[0], r.args[1]) for r in caplog.records}
    assert got == {(3, "496"), (35, "1520"), (67, f"{sum(range(64, 70))}")}


def test_a_launch_that_is_not_waited_for_logs_when_it_has_ended(lib, caplog):
    event = lib.levels(threads=3, wait=False)
    event.wait()
    assert len(caplog.records) == 6


def test_messages_beyond_the_capacity_are_counted(lib, caplog):
    threads = 100_000
    lib.flood(threads=threads, wait=True)
    *arrived, last = caplog.records
    assert last.levelname == "WARNING"
    assert len(arrived) + last.args[0] == threads
    assert len({r.args[1] for r in arrived}) == len(arrived) > 1000
    caplog.clear()
    lib.levels(threads=3, wait=True)
    assert len(caplog.records) == 6


@pytest.mark.needs("the CPU")
@pytest.mark.skipif(mtl.config.cpu_engine != "simd", reason="of the vector engine")
def test_kernels_that_log_or_assert_are_vector_code(lib):
    for name in lib:
        assert lib[name].engine.startswith("simd"), name


@pytest.mark.needs("the CPU")
def test_an_assertion_that_does_not_hold(lib):
    x = np.array([0, 1, 2, 3, 0, 0], np.float32)
    lib.checked(x, threads=(3, 5))
    with pytest.raises(mtl.KernelFault, match=r":\d+: assertion failed: x\[i\.x\] < 3") as fault:
        lib.checked(x, threads=(6, 1), group_size=(2, 1))
    assert (fault.value.threadgroup, fault.value.thread) == ((1, 0, 0), (1, 0, 0))


@pytest.mark.needs("the CPU")
def test_an_assertion_among_threads_that_meet(lib):
    lib.checked_together(np.ones(64, np.float32), threads=64)
    with pytest.raises(mtl.KernelFault, match="assertion failed: sum < 100") as fault:
        lib.checked_together(np.full(64, 10, np.float32), threads=64)
    assert fault.value.thread == (37, 0, 0)


def test_assertions_can_be_switched_off():
    lib = mtl.library(SOURCE, defines={"NDEBUG": None})
    lib.checked(np.full(4, 9, np.float32), threads=4)


def printf(form, value):
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(1024)
    libc.snprintf(buffer, ctypes.c_size_t(len(buffer)), form.encode(), value)
    return buffer.value.decode()


FLAGS = st.sampled_from(["", "-", "+", " ", "0", "#", "+0", "- "])
WIDTH = st.sampled_from(["", "1", "8", "20"])
PRECISION = st.sampled_from(["", ".0", ".3", ".10"])


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("eEfFgG"), st.floats(width=32))
def test_floats_look_as_in_c(flags, width, precision, letter, value):
    form = f"<%{flags}{width}{precision}{letter}>"
    expected = printf(form, ctypes.c_double(value))
    if np.isfinite(value):
        assert format_message(form, [[value]]) == expected
    else:
        # C fills with blanks where Python would fill with zeros.
        assert format_message(form, [[value]]).strip("<0 >+-") == expected.strip("<0 >+-")


@given(FLAGS, WIDTH, st.sampled_from("di"), st.integers(-(2**31), 2**31 - 1))
def test_integers_look_as_in_c(flags, width, letter, value):
    form = f"<%{flags}{width}{letter}>"
    assert format_message(form, [[value]]) == printf(form, ctypes.c_int(value))


@given(st.sampled_from(["", "-", "0"]), WIDTH, st.sampled_from("uxX"), st.integers(0, 2**32 - 1))
def test_unsigned_integers_look_as_in_c(flags, width, letter, value):
    form = f"<%{flags}{width}{letter}>"
    assert format_message(form, [[value]]) == printf(form, ctypes.c_uint(value))


@pytest.mark.parametrize(
    ("form", "values", "text"),
    [
        ("%v2d %v4hlf", [[1, 2], [0.5, 1.0, 2.0, 3.0]], "1,2 0.500000,1.000000,2.000000,3.000000"),
        ("%d %d", [[1]], "1 %d"),
        ("100%% %s", [["x"]], "100% x"),
        ("%d %f", [[1.5], [2]], "1.5 2.000000"),
        ("%c%a%p", [[65], [1.0], [255]], "A0x1.0000000000000p+00xff"),
        ("%s", [[7]], "7"),
    ],
)
def test_directives_and_values_of_other_kinds(form, values, text):
    assert format_message(form, values) == text


SCRIPT = """
import logging
import metalloid as mtl
SETUP
lib = mtl.library('#include <metal_stdlib>\\n#include <metal_logging>\\nusing namespace metal;'
    'kernel void f(uint i [[thread_position_in_grid]]) {'
    ' os_log_default.log_debug("debug"); os_log_default.log("x %d", i); os_log_default.log_error("error"); }')
lib.f(threads=1, wait=True)
"""
SHOWN = "[f] {} (thread (0, 0, 0) of threadgroup (0, 0, 0))\n"


@pytest.mark.parametrize(
    ("setup", "shown"),
    [
        ("", ["x 0", "error"]),
        ("logging.getLogger('metalloid').setLevel('DEBUG')", ["debug", "x 0", "error"]),
        ("logging.getLogger('metalloid.kernels').setLevel('ERROR')", ["error"]),
        ("logging.disable(logging.INFO)", ["error"]),
        ("logging.disable()", []),
        ("logging.getLogger('metalloid').addHandler(logging.NullHandler())", []),
        ("logging.basicConfig(level='INFO', format='%(message)s')", ["x 0", "error"]),
        ("logging.basicConfig(format='%(message)s')", ["error"]),
    ],
)
@pytest.mark.sample(2)
def test_messages_are_shown_where_logging_is_not_configured(setup, shown):
    """As in a script or a notebook: on standard error, once, unless the program says otherwise."""
    script = SCRIPT.replace("SETUP", setup)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "".join(SHOWN.format(text) for text in shown))
