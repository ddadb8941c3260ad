"""Sorts by NumPy's functions between launches of kernels (backends/cpu/runtime/host_calls.py)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.runtime import host_calls

pytestmark = pytest.mark.needs("the CPU")

TYPES = ["float32", "float64", "int32", "int64", "uint32", "uint64"]


@pytest.fixture(autouse=True)
def sorts_of_numpy():
    with mtl.config.scope(sorting="host"):
        yield


@pytest.fixture
def jobs(monkeypatch):
    """The names of launches that are packed."""
    packed, job = [], host_calls.HostProgram.job

    def note(self, *arguments):
        packed.append(self.signature.name)
        return job(self, *arguments)

    monkeypatch.setattr(host_calls.HostProgram, "job", note)
    return packed


def numbers(rng, shape, dtype):
    bits = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    return bits.view(dtype)[..., 0]  # also NaN, infinities and subnormal numbers


@given(
    dtype=st.sampled_from([*TYPES, "int8", "float16", "uint16"]),
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    descending=st.booleans(),
    is_transposed=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_sorted_rows_are_numpys(dtype, shape, descending, is_transposed, seed):
    values = numbers(np.random.default_rng(seed), shape, dtype)
    array = mtl.asarray(values)
    if is_transposed:
        values, array = values.T, array.T
    expected = np.sort(values, -1)
    for _ in range(3):
        result = np.asarray(mtl.sort(array + 0 if seed % 2 else array, descending=descending))
        expected_now = np.flip(expected, -1) if descending else expected
        np.testing.assert_array_equal(result, expected_now)


@pytest.mark.parametrize("dtype", TYPES)
def test_sorts_are_launched_with_what_precedes_and_follows(dtype, jobs):
    values = np.random.default_rng(0).permutation(2000).reshape(4, 500).astype(dtype)
    for k in range(3):
        result = mtl.diff(mtl.sort(mtl.asarray(values) + k, axis=1), axis=1)
        np.testing.assert_array_equal(result, np.diff(np.sort(values, 1), axis=1))
    assert jobs == ["sort"]  # once, as the plan is repeated
    assert host_calls._sort_function(dtype)


def test_an_operand_is_not_sorted_in_place():
    values = np.random.default_rng(0).random(100)
    array = mtl.asarray(values)
    for _ in range(3):
        np.testing.assert_array_equal(mtl.sort(array), np.sort(values))
    np.testing.assert_array_equal(array, values)


def test_numpy_sorts_without_known_functions(monkeypatch, jobs):
    monkeypatch.setattr(host_calls, "_sort_function", lambda dtype: 0)
    values = np.random.default_rng(0).random((3, 101))
    np.testing.assert_array_equal(mtl.sort(mtl.asarray(values)), np.sort(values))
    assert not jobs
