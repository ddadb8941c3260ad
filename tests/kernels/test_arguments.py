"""Values that may be passed to a kernel, and what arrives there."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl

MSL_TYPES = {
    "bool": np.bool_, "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16,
    "int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "half": np.float16,
    "bfloat": ml_dtypes.bfloat16, "float": np.float32,
}  # fmt: skip
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


def copy_kernel(type_, source="device const {}* x", index="i"):
    parameter = source.format(type_)
    body = "*x" if "&" not in parameter and index == "0" else ("x" if "&" in parameter else "x[i]")
    return mtl.library(
        f"{HEADER}kernel void copy(device {type_}* y, {parameter},"
        f" uint i [[thread_position_in_grid]]) {{ y[i] = {body}; }}"
    ).copy


@pytest.mark.parametrize("type_", MSL_TYPES)
@pytest.mark.sample(2)
def test_arrays_of_every_type(type_, rng):
    x = rng.integers(0, 2 if type_ == "bool" else 100, 100).astype(MSL_TYPES[type_])
    y = np.zeros_like(x)
    copy_kernel(type_)(y, x, threads=100)
    assert y.tobytes() == x.tobytes()


@pytest.mark.parametrize("type_", MSL_TYPES)
@pytest.mark.parametrize("space", ["constant {}& x", "device const {}& x", "const constant {}& x"])
@pytest.mark.sample(6)
def test_numbers_of_every_type(type_, space):
    kernel = copy_kernel(type_, space)
    for value in (1, True, np.float32(1), np.int64(0), MSL_TYPES[type_](1), 1.0):
        y = np.zeros(3, MSL_TYPES[type_])
        kernel(y, value, threads=3)
        assert (y == MSL_TYPES[type_](value)).all()


@pytest.mark.parametrize("type_", [t for t in MSL_TYPES if t != "bool"])
@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("packed", ["", "packed_"])
@pytest.mark.sample(8)
def test_vectors(type_, lanes, packed, rng):
    stride = 4 if lanes == 3 and not packed else lanes
    x = rng.integers(0, 100, (50, stride)).astype(MSL_TYPES[type_])
    y = np.zeros_like(x)
    copy_kernel(f"{packed}{type_}{lanes}")(y, x, threads=50)
    assert (y[:, :lanes] == x[:, :lanes]).all()


def test_a_vector_from_a_tuple():
    for text, stride in (("float2", 2), ("float3", 4), ("int4", 4), ("packed_float3", 3)):
        lanes = int(text[-1])
        y = np.zeros((2, stride), np.int32 if "int" in text else np.float32)
        copy_kernel(text, "constant {}& x")(y, tuple(range(1, lanes + 1)), threads=2)
        assert y[1, :lanes].tolist() == list(range(1, lanes + 1))


def test_a_constant_table_from_a_list():
    y = np.zeros(3, np.float32)
    copy_kernel("float", "constant {}* x")(y, [1.5, 2, 3], threads=3)
    assert y.tolist() == [1.5, 2, 3]


def test_complex_numbers_are_pairs():
    x = np.array([1 + 2j, 3 - 4j], np.complex64)
    y = np.zeros_like(x)
    copy_kernel("float2")(y, x, threads=2)
    assert (x == y).all()


def test_matrices_are_columns():
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    y = np.zeros((2, 3), np.float32)
    mtl.library(
        HEADER + "kernel void second(device packed_float3* y, device const float3x2* x,"
        " uint i [[thread_position_in_grid]])"
        " { y[i] = float3(x[i][0].y, x[i][1].y, x[i][2].y); }"
    ).second(y, x, threads=2)
    assert (y == x[:, :, 1]).all()


STRUCT = """
struct Particle { float3 position; float mass; packed_float3 velocity; ushort kind; };
kernel void momentum(device float* out, device const Particle* p, constant Particle& origin,
                     uint i [[thread_position_in_grid]]) {
    out[i] = p[i].mass * (p[i].position.z - origin.position.z) + p[i].velocity[1] + p[i].kind;
}
"""
PARTICLE = np.dtype(
    {"names": ["position", "mass", "velocity", "kind"],
     "formats": ["3f4", "f4", "3f4", "u2"], "offsets": [0, 16, 20, 32], "itemsize": 48}
)  # fmt: skip


class ParticleStructure(ctypes.Structure):
    _fields_ = (
        ("position", ctypes.c_float * 4), ("mass", ctypes.c_float), ("velocity", ctypes.c_float * 3),
        ("kind", ctypes.c_uint16), ("padding", ctypes.c_uint8 * 14),
    )  # fmt: skip


def test_structs(rng):
    kernel = mtl.library(HEADER + STRUCT).momentum
    p = np.zeros(10, PARTICLE)
    for field in ("position", "velocity", "mass"):
        p[field] = rng.integers(0, 50, p[field].shape)
    p["kind"] = np.arange(10)
    origin = np.zeros((), PARTICLE)
    origin["position"] = (1, 2, 3)
    expected = p["mass"] * (p["position"][:, 2] - 3) + p["velocity"][:, 1] + p["kind"]
    structure = ParticleStructure()
    structure.position[2] = 3
    for one in (origin, origin[()], origin.tobytes(), bytearray(origin.tobytes()), structure):
        out = np.zeros(10, np.float32)
        kernel(out, p, one, threads=10)
        np.testing.assert_array_equal(out, expected)


def test_buffers():
    x = np.arange(6, dtype=np.float32)
    buffer, y = mtl.Buffer(x), mtl.Buffer(24)
    assert np.asarray(buffer).dtype == np.float32
    copy_kernel("float")(y, buffer, threads=6)
    assert (np.asarray(y).view(np.float32) == x).all()
    assert not np.shares_memory(np.asarray(buffer), x)
    np.asarray(buffer)[:] = 7  # the same memory, not a copy
    copy_kernel("float")(y, buffer, threads=6)
    assert (np.asarray(y).view(np.float32) == 7).all()


def test_a_buffer_of_no_bytes_and_of_a_scalar():
    assert np.asarray(mtl.Buffer(0)).shape == (0,)
    assert np.asarray(mtl.Buffer(np.float32(2.5))) == np.float32(2.5)


def test_the_buffer_protocol():
    x = array.array("f", [1, 2, 3])
    y = bytearray(12)
    copy_kernel("float")(y, x, threads=3)
    assert bytes(y) == x.tobytes()
    copy_kernel("float")(memoryview(y), bytes(12), threads=3)
    assert bytes(y) == bytes(12)
    z = (ctypes.c_float * 3)()
    copy_kernel("float")(z, x, threads=3)
    assert list(z) == [1, 2, 3]


def test_dlpack():
    class Exporter:  # a library of which nothing but the protocol is known
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **_):
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    copy_kernel("float")(Exporter(y), Exporter(x), threads=5)
    assert (x == y).all()


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype, type_ in (
        (torch.float32, "float"),
        (torch.bfloat16, "bfloat"),
        (torch.int64, "long"),
    ):
        x, y = torch.arange(10).to(dtype), torch.zeros(10, dtype=dtype)
        copy_kernel(type_)(y, x, threads=10)
        assert torch.equal(x, y)
    matrix = torch.zeros(4, 4)
    with pytest.raises(mtl.ArgumentError, match="not contiguous"):
        copy_kernel("float")(matrix, torch.ones(4, 4).T[1:, :], threads=16)
    with pytest.raises(mtl.ArgumentError, match="not float32"):
        copy_kernel("float")(matrix, torch.ones(16, dtype=torch.float64), threads=16)


def test_arguments_by_name_and_in_the_order_of_their_indices():
    lib = mtl.library(
        HEADER + "kernel void f(constant float& a [[buffer(2)]], device float* y [[buffer(0)]],\n"
        "  device const float* x [[buffer(1)]], uint i [[thread_position_in_grid]])\n"
        " { y[i] = a * x[i]; }"
    )
    x = np.arange(4, dtype=np.float32)
    for positional, named in (((0, x, 3), {}), ((0, x), {"a": 3}), ((0,), {"a": 3, "x": x})):
        y = np.zeros(4, np.float32)
        lib.f(y, *positional[1:], **named, threads=4)
        assert (y == 3 * x).all()
    y = np.zeros(4, np.float32)
    lib.f(a=3, x=x, y=y, threads=4)
    assert (y == 3 * x).all()


def test_implicit_indices_fill_the_gaps():
    kernel = mtl.library(
        HEADER + "kernel void f(device int* a, device int* b [[buffer(0)]], device int* c,"
        " device int* d [[buffer(5)]], uint i [[thread_position_in_grid]])"
        " { a[i] = 1; b[i] = 2; c[i] = 3; d[i] = 4; }"
    ).f
    assert [(p.name, p.index) for p in kernel.signature.buffers] == [
        ("b", 0), ("a", 1), ("c", 2), ("d", 5),
    ]  # fmt: skip
    arrays = [np.zeros(1, np.int32) for _ in range(4)]
    kernel(*arrays, threads=1)
    assert [int(a[0]) for a in arrays] == [2, 1, 3, 4]


THREADGROUP = """
kernel void reverse(device float* x [[buffer(0)]], threadgroup float* tile [[threadgroup(0)]],
                    threadgroup uint* order [[threadgroup(1)]], constant uint& n [[buffer(1)]],
                    uint i [[thread_index_in_threadgroup]]) {
    tile[i] = x[i];
    order[i] = n - 1 - i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = tile[order[i]];
}
"""


def test_threadgroup_memory():
    kernel = mtl.library(HEADER + THREADGROUP).reverse
    size = mtl.threadgroup_memory(64 * 4)
    for args, named in (
        ((64, size, size), {}), ((size, size, 64), {}), ((64,), {"tile": size, "order": size}),
    ):  # fmt: skip
        x = np.arange(64, dtype=np.float32)
        kernel(x, *args, **named, threads=64, group_size=64)
        assert (x == np.arange(64)[::-1]).all()


def test_references_to_arrays_and_pointers_to_void():
    lib = mtl.library(
        HEADER + "kernel void f(device float* y, constant float (&table)[4],"
        " device const void* raw, uint i [[thread_position_in_grid]])"
        " { y[i] = table[i] + ((device const uchar*)raw)[i]; }"
    )
    y = np.zeros(4, np.float32)
    lib.f(y, [1, 2, 3, 4], np.array([0x04030201], np.uint32), threads=4)
    assert y.tolist() == [2, 4, 6, 8]


@given(value=st.integers(-(2**70), 2**70))
def test_integers_fit_or_are_refused(value):
    for type_ in ("uchar", "int", "ulong"):
        dtype = MSL_TYPES[type_]
        limits = np.iinfo(dtype)
        kernel, y = copy_kernel(type_, "constant {}& x"), np.zeros(1, dtype)
        if limits.min <= value <= limits.max:
            kernel(y, value, threads=1)
            assert int(y[0]) == value
        else:
            with pytest.raises(mtl.ArgumentError, match="is outside"):
                kernel(y, value, threads=1)


@given(value=st.floats(allow_nan=True, allow_infinity=True))
def test_floats_round_once(value):
    y = np.zeros(1, np.float32)
    copy_kernel("float", "constant {}& x")(y, value, threads=1)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y[0], np.float32(value))


@pytest.mark.parametrize("empty", [np.zeros(0, np.float32), np.zeros((3, 0), np.float32)])
def test_empty_arrays(empty):
    copy_kernel("float")(empty, empty.copy(), threads=0)


def test_read_only_arrays_may_be_read():
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    y = np.zeros(3, np.float32)
    copy_kernel("float")(y, x, threads=3)
    assert (x == y).all()


def test_a_slice_of_an_array_is_used_in_place():
    x = np.arange(10, dtype=np.float32)
    copy_kernel("float")(x[5:], x[:5], threads=5)
    assert x.tolist() == [0, 1, 2, 3, 4] * 2
