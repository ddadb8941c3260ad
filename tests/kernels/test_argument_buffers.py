"""Structs bound by their members: argument buffers, nested structs, arrays of resources."""

import functools
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"


def library(text):
    return mtl.library(HEADER + text)


@functools.cache
def kernels():
    return library(f"""
struct Light {{ float3 position; packed_float3 colour; half power; }};
struct Scene {{
  device float* out [[id(0)]];
  constant int* table [[id(3)]];
  const device half *weights;
  texture2d<float> image [[id(5)]];
  sampler how;
  device float* parts[2];
  array<device float*, 3> more;
  array<texture2d<float, access::read>, 2> layers;
  Light lights[2];
  float3x3 turn;
  uint count; bool flag;
}};
kernel void render(constant Scene& scene [[buffer(2)]], device float* sum [[buffer(0)]], {ID}) {{
  scene.out[i] = scene.table[i] + scene.weights[i];
  scene.out[i] += scene.image.sample(scene.how, float2(0.5)).x;
  scene.parts[0][i] = scene.more[2][i] + scene.more[0][i];
  scene.parts[1][i] = scene.layers[1].read(uint2(i, 0)).x;
  sum[i] = scene.lights[1].position.z + scene.lights[0].colour[1] + scene.lights[1].power
         + (scene.turn * float3(1, 10, 100)).y + scene.count + scene.flag;
}}
struct Inner {{ device float* x; float scale; }};
struct Outer {{ device Inner* inner; constant Inner& other; int n; }};
kernel void nested(device Outer* outer, {ID})
{{ outer->inner->x[i] *= outer->inner->scale * outer->other.x[i]; outer[1].inner[1].x[i] += outer->n; }}
struct Node {{ int value; device Node* next; }};
kernel void walk(device Node* node, device int* sum)
{{ int all = 0; for (; node; node = node->next) all += node->value; *sum = all; }}
kernel void buffers(array<device float*, 3> in [[buffer(0)]], const array<device const float*, 2> out,
                    {ID}) {{ in[2][i] = in[0][i] + in[1][i] + out[1][i]; }}
kernel void behind(constant array<device float*, 2>& both, device float* constant* any, {ID})
{{ both[0][i] = both[1][i] + any[2][i]; }}
kernel void decayed(device float* all[3] [[buffer(0)]], {ID}) {{ all[2][i] = all[0][i] + all[1][i]; }}
""")


def scene_values(rng):
    return {
        "out": np.zeros(4, np.float32),
        "table": rng.integers(0, 9, 4).astype(np.int32),
        "weights": rng.integers(0, 9, 4).astype(np.float16),
        "image": np.full((2, 2), 0.25, np.float32),
        "how": mtl.Sampler(filter="linear"),
        "parts": [np.zeros(4, np.float32), np.zeros(4, np.float32)],
        "more": [rng.random(4, np.float32) for _ in range(3)],
        "layers": [mtl.Texture((1, 4), "r32float"), rng.random((1, 4), np.float32)],
        "lights": [
            {"position": (1, 2, 3), "colour": (4, 5, 6), "power": 7},
            ((10, 20, 30), np.float32([40, 50, 60]), np.float16(70)),
        ],
        "turn": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
        "count": 1000,
        "flag": True,
    }


@pytest.mark.parametrize("form", ["mapping", "tuple", "argument buffer", "by name"])
def test_every_kind_of_member(form, rng):
    values, total = scene_values(rng), np.zeros(4, np.float32)
    render = kernels().render
    if form == "mapping":
        render(total, values, threads=4)
    elif form == "tuple":
        render(total, tuple(values.values()), threads=4)
    elif form == "by name":
        render(scene=dict(reversed(values.items())), sum=total, threads=4)
    else:
        render(total, mtl.ArgumentBuffer(render, "scene", values), threads=4)
    expected = values["table"] + values["weights"] + np.float32(0.25)
    np.testing.assert_array_equal(values["out"], expected)
    np.testing.assert_array_equal(values["parts"][0], values["more"][2] + values["more"][0])
    np.testing.assert_array_equal(values["parts"][1], values["layers"][1][0])
    product = np.float32([1, 10, 100]) @ np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert (total == 30 + 5 + 70 + product[1] + 1000 + 1).all()


def test_pointers_in_structs_to_structs(rng):
    x, y, z = (rng.random(5, np.float32) for _ in range(3))
    expected = x * 3 * y, z + 7
    outer = [
        {"inner": {"x": x, "scale": 3}, "other": (y, 0), "n": 7},
        {"inner": [(None, 1), (z, 1)], "other": {"x": None, "scale": 0}, "n": 0},
    ]
    kernels().nested(outer, threads=5)
    np.testing.assert_array_equal(x, expected[0])
    np.testing.assert_array_equal(z, expected[1])


def test_structs_that_point_to_themselves():
    """The struct is opened once; what it points to comes as memory, or is null."""
    total = np.zeros(1, np.int32)
    tail = np.zeros(1, [("value", "i4"), ("pad", "i4"), ("next", "u8")])
    tail["value"] = 5
    kernels().walk({"value": 3, "next": tail}, total, threads=1)
    assert total[0] == 8


@pytest.mark.needs("arrays of pointers")
def test_arrays_of_buffers(rng):
    a, b, c, d = (rng.random(4, np.float32) for _ in range(4))
    expected = a + b + d
    kernels().buffers([a, b, c], (a, d), threads=4)
    np.testing.assert_array_equal(c, expected)
    assert [p.layout.count for p in kernels().buffers.signature.buffers] == [3, 2]


def test_pointers_to_arrays_of_buffers(rng):
    a, b, c, d = (rng.random(4, np.float32) for _ in range(4))
    expected = b + c
    kernels().behind([a, b], [d, d, c], threads=4)
    np.testing.assert_array_equal(a, expected)
    expected = b + d
    for sequence in (list, tuple):
        kernels().decayed(sequence((b, d, c)), threads=4)
        np.testing.assert_array_equal(c, expected)
    with pytest.raises(mtl.ArgumentError, match="it expects 3 elements, the list has 2"):
        kernels().decayed([a, b], threads=4)


def test_what_an_argument_buffer_refers_to_stays_alive():
    lib = library(f"""
struct Args {{ device float* x; texture2d<float> t; }};
kernel void f(constant Args& a, {ID}) {{ a.x[i] += a.t.read(uint2(0)).x; }}
""")
    texels = np.ones((1, 1), np.float32)
    alive = weakref.ref(texels)
    x = mtl.Buffer(np.zeros(100_000, np.float32))
    args = mtl.ArgumentBuffer(lib.f, "a", {"x": x, "t": texels})
    del texels
    gc.collect()
    assert alive() is not None
    events = [lib.f(args, threads=100_000, wait=False) for _ in range(20)]
    del args
    gc.collect()
    assert alive() is not None or all(event.done for event in events)
    assert (np.asarray(x) == 20).all()
    del events
    lib.device.synchronize()
    gc.collect()
    assert alive() is None


def test_a_launch_waits_if_a_member_is_memory_python_can_see():
    lib = library(f"""
struct Args {{ device float* x; }};
kernel void f(constant Args& a, {ID}) {{ for (int k = 0; k < 1000; ++k) a.x[i] += 1; }}
""")
    x = np.zeros(2000, np.float32)
    assert lib.f({"x": x}, threads=2000).done
    assert (x == 1000).all()
    buffer = mtl.Buffer(np.zeros(2000, np.float32))
    lib.f({"x": buffer}, threads=2000)
    assert (np.asarray(buffer) == 1000).all()  # reading it waits


def test_what_a_kernel_may_write_to_is_checked_in_members():
    lib = library("""
struct Args { device float* x; device const float* y; texture2d<float, access::write> t; };
kernel void f(constant Args& a) { a.x[0] = a.y[0]; a.t.write(float4(1), uint2(0)); }
""")
    frozen = np.zeros((1, 1), np.float32)
    frozen.flags.writeable = False
    x = np.zeros((1, 1), np.float32)
    lib.f({"x": x, "y": frozen, "t": x.copy()}, threads=1)
    for bad in ({"x": frozen, "y": x, "t": x}, {"x": x, "y": x, "t": frozen}):
        with pytest.raises(mtl.ArgumentError, match=r"'a\.[xt]' .*read-only"):
            lib.f(bad, threads=1)


PLAIN = """
namespace shapes {
template <typename T, int N>
struct Grid { T cells[N]; uchar3 tag; };
class Box {
 public:
  Box() = default;
  float area() const { return size.x * size.y; }
  float2 size;
  static constexpr constant int sides = 4;
  enum Kind { flat, deep } kind;
  struct Inner { short a, b; } inner;
 private:
  char secret [[maybe_unused]] = 3;
};
}
typedef struct { float x, *unused; bfloat b; long4 wide; } Old;
struct Half { half2x4 m; packed_half3 p; bool3 q; metal::array<uchar, 3> bytes; };
struct Derived : Half { int own; };
struct Bits { uint low : 4; uint high : 28; };
union Either { float f; int i; };
struct With { union { float f; int i; }; int n; };
kernel void grid(constant shapes::Grid<float3, 2>& g, device float* y)
{ y[0] = g.cells[1].z; y[1] = g.tag.z; }
kernel void box(constant shapes::Box& b, device float* y)
{ y[0] = b.area(); y[1] = b.kind; y[2] = b.inner.b; }
kernel void old(constant Old& o, device float* y) { y[0] = o.x; y[1] = o.b; y[2] = o.wide.w; }
kernel void halves(constant Half* h, device float* y)
{ y[0] = h[1].m[1].w; y[1] = h[1].p.z; y[2] = h[1].q.y; y[3] = h[1].bytes[2]; }
kernel void derived(constant Derived& d, device int* y) { *y = d.own; }
kernel void bits(constant Bits& b, device int* y) { *y = b.high; }
kernel void either(constant Either& e, device int* y) { *y = e.i; }
kernel void with(constant With& w, device int* y) { *y = w.n; }
"""


@functools.cache
def plain():
    return library(PLAIN)


def test_plain_structs():
    y = np.zeros(4, np.float32)
    assert plain().warnings == ()
    plain().grid({"cells": [(1, 2, 3), (4, 5, 6)], "tag": (7, 8, 9)}, y, threads=1)
    assert y[:2].tolist() == [6, 9]
    box = {"size": (2, 3), "kind": 1, "inner": (5, -6), "secret": 1}
    plain().box(box, y, threads=1)
    assert y[:3].tolist() == [6, 1, -6]
    plain().old((2.5, None, ml_dtypes.bfloat16(3.5), (1, 2, 3, -4)), y, threads=1)
    assert y[:3].tolist() == [2.5, 3.5, -4]
    blank = {"m": np.zeros((2, 4), np.float16), "p": (0, 0, 0), "q": (0, 0, 0), "bytes": [0, 0, 0]}
    full = {"m": [[0, 1, 2, 3], [4, 5, 6, 7]], "p": (1, 2, 3), "q": (0, 1, 0), "bytes": b"\1\2\3"}
    plain().halves([blank, full], y, threads=1)
    assert y.tolist() == [7, 3, 1, 3]


@pytest.mark.parametrize("name", ["derived", "bits", "either", "with"])
def test_structs_whose_members_are_not_known_come_as_bytes(name):
    kernel = getattr(plain(), name)
    layout = kernel.signature.buffers[0].layout
    assert layout.members == ()
    y = np.zeros(1, np.int32)
    raw = np.zeros(layout.bytes, np.uint8)
    raw[:] = 1
    kernel(raw, y, threads=1)
    assert y[0] != 0
    with pytest.raises(mtl.ArgumentError):
        kernel({"n": 1}, y, threads=1)


def test_structs_still_come_as_arrays():
    grid = np.zeros((), [("cells", "f4", (2, 4)), ("tag", "u1", 4), ("pad", "u1", 12)])
    grid["cells"][1, 2], grid["tag"][2] = 5, 6
    y = np.zeros(4, np.float32)
    for value in (grid, grid[()], grid.tobytes(), mtl.Buffer(grid)):
        plain().grid(value, y, threads=1)
        assert y[:2].tolist() == [5, 6]


def test_the_signature_tells_members():
    (scene,) = (p for p in kernels().render.signature.buffers if p.name == "scene")
    members = {m.name: m for m in scene.layout.members}
    assert list(members)[:4] == ["out", "table", "weights", "image"]
    assert str(members["layers"]) == "texture2d<float, access::read>[2]"
    assert str(members["weights"]) == "const device half*"
    assert str(members["turn"]) == "float3x3"
    assert members["lights"].count == 2
    assert [m.offset for m in members["lights"].members] == [0, 16, 28]
    assert scene.layout.holds_resources
    assert kernels().render.signature.buffers[0].layout.members == ()
