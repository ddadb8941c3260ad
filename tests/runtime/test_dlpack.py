"""Capsules of DLPack: those that are wrong are refused, flags are read and written."""

import ctypes
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.runtime.interop.dlpack import (
    _UNVERSIONED,
    _VERSIONED,
    _get_pointer,
    _is_capsule,
    _Tensor,
    _Versioned,
    can_say_read_only,
    from_dlpack,
)

READ_ONLY, IS_COPIED = 1, 2
TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void add(device float* x, device const float* y, uint i [[thread_position_in_grid]])
{ x[i] += y[i]; }
kernel void show(texture2d<float> image, device float* x) { x[0] = image.read(uint2(0)).x; }
"""

pytestmark = [
    pytest.mark.needs("the process's memory"),
    pytest.mark.skipif(not can_say_read_only((1, 0)), reason="NumPy 2.1 makes the capsules"),
]


class Theirs:
    """An array of another library, with a capsule that says what it is told to say."""

    def __init__(self, array, is_versioned=True, **changes):
        self.array, self.is_versioned, self.changes = array, is_versioned, changes
        self.asked = []

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        self.asked.append(options)
        if not self.is_versioned and options:
            raise TypeError("unexpected keyword argument")
        version = options.get("max_version")
        capsule = self.array.__dlpack__(max_version=version)
        if _is_capsule(capsule, _VERSIONED):
            managed = _Versioned.from_address(_get_pointer(capsule, _VERSIONED))
            tensor = managed.tensor
        else:
            managed, tensor = None, _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED))
        for name, value in self.changes.items():
            setattr(managed if name in ("major", "minor", "flags") else tensor, name, value)
        return capsule


def floats(count=6):
    return np.arange(count, dtype=np.float32)


def frozen(array):
    array.flags.writeable = False
    return array


WRONG = {
    "vectors": ({"lanes": 4}, r"elements of this Theirs are vectors \(4 lanes\)"),
    "no lanes": ({"lanes": 0}, r"\(0 lanes\)"),
    "an odd start": ({"byte_offset": 2}, "not a multiple of the 4 bytes of an element"),
    "no data": ({"data": None}, "is a null pointer"),
    "no shape": (
        {"shape": ctypes.POINTER(ctypes.c_int64)()},
        "the shape of this Theirs is not supported",
    ),
    "-1 axes": ({"ndim": -1}, "is not supported: -1 axes"),
    "2^30 axes": ({"ndim": 2**30}, "is not supported: 1073741824 axes"),
    "a negative extent": (
        {"shape": (ctypes.c_int64 * 1)(-6)},
        r"is not supported: 1 axes, \(-6,\)",
    ),
    "version 2": ({"major": 2}, "is exported as DLPack 2.0; the supported versions are 1.x"),
}


def changed(name, is_versioned):
    """An array whose capsule is wrong."""
    changes = dict(WRONG[name][0])
    if isinstance(changes.get("shape"), ctypes.Array):
        changes["shape"] = ctypes.cast(changes["shape"], ctypes.POINTER(ctypes.c_int64))
    return Theirs(floats(), is_versioned, **changes)


CASES = [
    pytest.param(name, is_versioned, id=f"{name}, {'' if is_versioned else 'un'}versioned")
    for name in WRONG
    for is_versioned in (True, False)
    if is_versioned or name != "version 2"
]


@pytest.mark.parametrize(("name", "is_versioned"), CASES)
def test_wrong_capsules_are_buffer_errors(name, is_versioned):
    message = WRONG[name][1]
    for function in (
        mtl.from_dlpack,
        mtl.asarray,
        lambda x: mtl.asarray(x, copy=False),
        lambda x: mtl.arange(6) + mtl.asarray(x),
    ):
        with pytest.raises(BufferError, match=message):
            function(changed(name, is_versioned))


@pytest.mark.parametrize(("name", "is_versioned"), CASES)
def test_wrong_capsules_are_no_arguments_of_launches(name, is_versioned):
    message = WRONG[name][1]
    lib = mtl.library(TEXT)
    builder = mtl.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply_capsules")
    body = mtl.metal_kernel("twice", ["x"], ["y"], "y[0] = x[0];")
    options = {"grid": 1, "output_shapes": [(1,)], "output_dtypes": [np.float32]}
    for launch in (
        lambda x: lib.add(floats(), x, threads=6),
        lambda x: lib.add(x, floats(), threads=6),
        lambda x: lib.show(x, floats(), threads=1),
        lambda x: builder(x, 2),
        lambda x: body(inputs=[x], **options),
    ):
        with pytest.raises(mtl.ArgumentError, match=message):
            launch(changed(name, is_versioned))


def test_what_is_no_capsule():
    class Wrong(Theirs):
        def __dlpack__(self, **options):
            return self.array

    with pytest.raises(
        BufferError, match=r"Wrong.__dlpack__\(\) returned .*, not an unused DLPack capsule"
    ):
        mtl.from_dlpack(Wrong(floats()))
    theirs = Theirs(floats())
    capsule = theirs.__dlpack__()
    theirs.__dlpack__ = None
    used = type("Used", (Theirs,), {"__dlpack__": lambda self, **options: capsule})(floats())
    mtl.from_dlpack(used)
    np.from_dlpack(used)  # renames it
    with pytest.raises(BufferError, match=r"returned .*, not an unused DLPack capsule"):
        mtl.from_dlpack(used)


@pytest.mark.parametrize("bits", [4, 12, 128])
def test_types_of_odd_widths(bits):
    with pytest.raises(BufferError, match=rf"MSL has no type .*{bits} bits"):
        mtl.from_dlpack(Theirs(floats(), bits=bits))


def test_versioned_capsules_are_asked_for_and_older_libraries_need_not_know():
    theirs = Theirs(floats())
    assert from_dlpack(theirs).tolist() == [0, 1, 2, 3, 4, 5]
    assert theirs.asked == [{"max_version": (1, 0)}]
    theirs = Theirs(floats(), is_versioned=False)
    assert from_dlpack(theirs).tolist() == [0, 1, 2, 3, 4, 5]
    assert theirs.asked == [{"max_version": (1, 0)}, {}]


@pytest.mark.parametrize("make", [Theirs, lambda array: array])
def test_read_only_arrays_are_taken(make):
    theirs = make(frozen(floats()))
    assert (mtl.from_dlpack(theirs) + 1).tolist() == [1, 2, 3, 4, 5, 6]
    assert mtl.asarray(theirs).tolist() == [0, 1, 2, 3, 4, 5]
    lib, x = mtl.library(TEXT), floats()
    lib.add(x, theirs, threads=6)
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(mtl.ArgumentError, match="may write to it and the array is read-only"):
        lib.add(theirs, x, threads=6)


def test_offsets_that_are_multiples_of_the_element_size_are_taken():
    assert mtl.from_dlpack(Theirs(floats()[:4], byte_offset=8)).tolist() == [2, 3, 4, 5]


# -- ours


def told(capsule):
    """The flags of a versioned capsule, and where its data are."""
    managed = _Versioned.from_address(_get_pointer(capsule, _VERSIONED))
    return managed.flags, managed.tensor.data + managed.tensor.byte_offset


def test_a_view_of_an_array_cannot_change_it():
    a = mtl.arange(3) + 0
    b, pending = a, a * 2
    view = np.from_dlpack(a)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 77
    shown = np.asarray(a)
    for array in (view, shown):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
    assert (b.tolist(), pending.tolist()) == ([0, 1, 2], [0, 2, 4])


def test_flags_of_our_capsules():
    a = mtl.arange(3) + 0
    mtl.eval(a)
    address = np.asarray(a).ctypes.data
    assert told(a.__dlpack__(max_version=(1, 0))) == (READ_ONLY, address)
    assert told(a.__dlpack__(max_version=(1, 3), copy=False)) == (READ_ONLY, address)
    flags, elsewhere = told(a.__dlpack__(max_version=(1, 0), copy=True))
    assert (flags, elsewhere == address) == (IS_COPIED, False)
    buffer = mtl.Buffer(np.arange(3))  # memory that others may write to
    assert told(buffer.__dlpack__(max_version=(1, 0))) == (0, buffer.address)
    assert told(buffer.__dlpack__(max_version=(1, 0), copy=True))[0] == IS_COPIED


def test_consumers_of_unversioned_capsules_get_a_copy():
    a = mtl.arange(3) + 0
    for options in ({}, {"max_version": None}, {"max_version": (0, 8)}):
        capsule = a.__dlpack__(**options)
        tensor = _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED))
        ctypes.c_int64.from_address(tensor.data).value = 77
    assert a.tolist() == [0, 1, 2]


def write_to(array, value):
    """Write to the first element through an unversioned capsule; what keeps the memory alive."""
    capsule = array.__dlpack__(copy=False)
    tensor = _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED))
    ctypes.c_int64.from_address(tensor.data).value = value
    return capsule


@pytest.mark.parametrize("names", ["one", "two", "view", "expression"])
def test_consumers_that_refuse_a_copy_write_to_the_array_only(names):
    a = mtl.arange(3) + 0
    mtl.eval(a)
    others = {"one": [], "two": [mtl.asarray(a, copy=True)], "view": [a[:2]],
              "expression": [a * 1]}[names]  # fmt: skip
    shown = np.asarray(a)
    before, others = a * 2, [*others, shown]
    capsule = write_to(a, 77)
    assert a.tolist() == [77, 1, 2]
    assert [int(other[0]) for other in others] == [0] * len(others)
    assert before.tolist() == [0, 2, 4]
    doubled = a * 2  # evaluated at once
    write_to(a, 5)
    assert (doubled.tolist(), a.tolist()) == ([154, 2, 4], [5, 1, 2])
    a[1] = 9  # memory of its own from here on
    tensor = _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED))
    assert (ctypes.c_int64 * 3).from_address(tensor.data)[:] == [5, 1, 2]
    assert a.tolist() == [5, 9, 2]


def test_memory_of_a_consumer_is_not_reused():
    a = mtl.arange(1000) + 0
    mtl.eval(a)
    address = np.asarray(a).ctypes.data
    capsule = write_to(a, 77)
    assert _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED)).data == address  # in place
    a += 1
    del a
    gc.collect()
    later = [mtl.arange(1000) + k for k in range(9)]
    mtl.eval(later)
    assert ctypes.c_int64.from_address(address).value == 77
    del capsule


def test_transposed_arrays_are_written_to_by_rows():
    a = mtl.arange(6).reshape(2, 3).T
    capsule = write_to(a, 77)
    assert a.tolist() == [[77, 3], [1, 4], [2, 5]]
    del capsule


def test_numpy_before_2_1_makes_unversioned_capsules_only(monkeypatch):
    monkeypatch.setattr(np, "__version__", "2.0.2")
    assert not can_say_read_only((1, 0))
    a = mtl.arange(3) + 0
    assert _is_capsule(a.__dlpack__(max_version=(1, 0)), _UNVERSIONED)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex128"])
def test_types_go_there_and_back(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = mtl.asarray(np.array([[0, 1, 1]]).astype(dtype))
    for x in (a, a.T, a[:, ::-1], mtl.Buffer(np.asarray(a))):
        got = from_dlpack(x)
        assert got.dtype == dtype
        assert got.tolist() == np.asarray(x).view(dtype).tolist()


def test_a_capsule_retains_the_memory_of_the_host():
    a = mtl.arange(1000) + 1
    capsule = a.__dlpack__(max_version=(1, 0))
    memory = weakref.ref(a._node.memory)
    address = told(capsule)[1]
    del a
    gc.collect()
    mtl.eval([mtl.arange(1000) * k for k in range(5)])
    assert ctypes.c_int64.from_address(address + 8 * 999).value == 1000
    del capsule
    gc.collect()
    assert memory() is None


def test_torch_takes_arrays_and_gives_them():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = mtl.arange(6).reshape(2, 3) * 2
    assert torch.from_dlpack(a).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert torch.from_dlpack(a.astype("bfloat16")).dtype is torch.bfloat16
    tensor = torch.from_dlpack(mtl.asarray([1.0, 2.0]).__dlpack__())  # a copy: it may write
    tensor[0] = 5
    assert mtl.from_dlpack(tensor).tolist() == [5, 2]
    with pytest.raises(mtl.ArgumentError, match="read-only"):
        mtl.library(TEXT).add(a.astype("float32").__array__(), floats(), threads=6)
