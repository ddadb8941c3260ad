"""Programs and calls that are refused, for the tests of messages: by name, what raises the error."""

from pathlib import Path

import numpy as np

import metalloid as mtl

FOLDER = Path("tests/errors")  # messages name files as they were given
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
TENSORS = (
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
    "using namespace mpp::tensor_ops;\n"
)


def kernels(**options):
    return mtl.library(path=FOLDER / "kernels.metal", **options)


def floats(n=4):
    return np.ones(n, np.float32)


def ints(n=4):
    return np.zeros(n, np.int32)


def read_only(x):
    x.flags.writeable = False
    return x


def text(body):
    return lambda: mtl.library(HEADER + body)


def tensors(value):
    """Bind `value` as a tensor of two dimensions that the kernel writes to."""
    text = (
        HEADER
        + TENSORS
        + "kernel void f(tensor<device float, dextents<int, 2>> t) { t[0, 0] = 1; }"
    )
    return mtl.library(text).f(value, threads=1)


def images(*shape, dtype=np.float32):
    return np.zeros(shape or (3, 4, 4), dtype)


def scene(**changes):
    return {
        "out": floats(),
        "image": images(),
        "how": mtl.Sampler(),
        "parts": [floats(), floats()],
        "light": {"position": (1, 2, 3), "power": 1},
        "weights": [1, 2, 3, 4],
    } | changes


PARTICLES = np.zeros(2, [("position", "3f4"), ("mass", "f4")])
ID = "uint i [[thread_position_in_grid]]"

ARGUMENTS = {
    "too few": lambda k: k.saxpy(floats(), floats(), threads=4),
    "too many": lambda k: k.saxpy(floats(), floats(), 1, 2, threads=4),
    "no threads": lambda k: k.saxpy(floats(), floats(), 1),
    "wrong dtype": lambda k: k.saxpy(np.ones(4), floats(), 1, threads=4),
    "wrong sign": lambda k: k.few(ints().view(np.uint32), threads=4),
    "wrong byte order": lambda k: k.few(ints().astype(">i4"), threads=4),
    "read-only output": lambda k: k.saxpy(read_only(floats()), floats(), 1, threads=4),
    "read-only bytes": lambda k: k.saxpy(bytes(16), floats(), 1, threads=4),
    "not contiguous": lambda k: k.saxpy(np.ones((4, 4), np.float32)[:, 0], floats(), 1, threads=4),
    "empty": lambda k: k.saxpy(floats(), floats(), floats(0), threads=4),
    "a word": lambda k: k.saxpy(floats(), floats(), "x", threads=4),
    "None": lambda k: k.saxpy(floats(), floats(), None, threads=4),
    "a list of words": lambda k: k.saxpy(floats(), floats(), ["a"], threads=4),
    "a type": lambda k: k.saxpy(floats(), np.float32, 1, threads=4),
    "a number to write to": lambda k: k.saxpy(3, floats(), 1, threads=4),
    "a list to write to": lambda k: k.saxpy([1, 2], floats(), 1, threads=4),
    "not a whole number": lambda k: k.bytes(ints(), 1.5, threads=4),
    "not a number": lambda k: k.bytes(ints(), float("nan"), threads=4),
    "too large a number": lambda k: k.bytes(ints(), 300, threads=4),
    "not a truth value": lambda k: k.flag(ints(), 2, threads=4),
    "a number for a struct": lambda k: k.particles(3, threads=4),
    "unknown name": lambda k: k.saxpy(floats(), floats(), b=1, threads=4),
    "a name of another library": lambda k: k.saxpy(floats(), floats(), 1, grid=10),
    "a misspelt option": lambda k: k.saxpy(floats(), floats(), 1, threads=4, timout=1),
    "threads as a float": lambda k: (k.few(ints(), threads=4), k.few(ints(), threads=4.0)),
    "missing": lambda k: k.saxpy(floats(), a=1, threads=4),
    "given twice": lambda k: k.saxpy(floats(), floats(), y=floats(), a=1, threads=4),
    "float3 of three": lambda k: k.points(floats(3), threads=1),
    "float3 in rows of three": lambda k: k.points(np.ones((4, 3), np.float32), threads=4),
    "misaligned": lambda k: k.points(floats(9)[1:], threads=2),
    "struct of another size": lambda k: k.particles(PARTICLES, threads=2),
    "struct with members elsewhere": lambda k: k.particles(
        np.zeros(2, [("mass", "f4"), ("position", "3f4"), ("rest", "V16")]), threads=2
    ),
    "struct of another type": lambda k: k.particles(
        np.zeros(2, {"names": ["mass"], "formats": ["i4"], "offsets": [16], "itemsize": 32}), threads=2
    ),
    "no such parameter of a dtype": lambda k: k.particles.dtype("x"),
    "threadgroup memory not given": lambda k: k.scratch(floats(), threads=4),
    "a number for threadgroup memory": lambda k: k.scratch(floats(), 7, threads=4),
    "an array for threadgroup memory": lambda k: k.scratch(floats(), t=floats(), threads=4),
    "threadgroup memory of odd size":
        lambda k: k.scratch(floats(), mtl.threadgroup_memory(7), threads=4),
    "too much threadgroup memory":
        lambda k: k.scratch(floats(), mtl.threadgroup_memory(2**20), threads=4),
    "negative threadgroup memory": lambda k: mtl.threadgroup_memory(-1),
    "threadgroup memory for a buffer":
        lambda k: k.saxpy(floats(), mtl.threadgroup_memory(16), 1, threads=4),
    "another type of a tensor": lambda k: tensors(np.zeros((2, 2))),
    "another rank of a tensor": lambda k: tensors(floats()),
    "a read-only tensor": lambda k: tensors(read_only(np.zeros((2, 2), np.float32))),
    "a number as a tensor": lambda k: tensors(3),
    "negative threads": lambda k: k.saxpy(floats(), floats(), 1, threads=-1),
    "no time at all": lambda k: k.saxpy(floats(), floats(), 1, threads=4, timeout=0),
    "a fraction of threads": lambda k: k.saxpy(floats(), floats(), 1, threads=4.5),
    "four dimensions": lambda k: k.saxpy(floats(), floats(), 1, threads=(1, 2, 3, 4)),
    "too many threads": lambda k: k.saxpy(floats(), floats(), 1, threads=2**32),
    "an empty threadgroup": lambda k: k.saxpy(floats(), floats(), 1, threads=4, group_size=0),
    "too large a threadgroup":
        lambda k: k.saxpy(floats(), floats(), 1, threads=4, group_size=(32, 64)),
    "a threadgroup of another size than required":
        lambda k: k.rows_of_32(ints(), threads=4, group_size=4),
    "a threadgroup over the kernel's own limit": lambda k: k.few(ints(), threads=4, group_size=128),
}  # fmt: skip

TEXTURES = {
    "no image": lambda k: k.filter(floats(4), images(), 3, threads=1),
    "a number": lambda k: k.filter(3, images(), mtl.Sampler(), threads=1),
    "a word": lambda k: k.filter("x.png", images(), mtl.Sampler(), threads=1),
    "three channels": lambda k: k.filter(images(3, 4, 3), images(), mtl.Sampler(), threads=1),
    "five channels": lambda k: k.filter(images(3, 4, 5), images(), mtl.Sampler(), threads=1),
    "wrong dtype": lambda k: k.filter(images(dtype=np.float64), images(), mtl.Sampler(), threads=1),
    "wrong dtype for integers": lambda k: k.count(images(), threads=1),
    "wrong byte order": lambda k: k.filter(images(dtype=">f4"), images(), mtl.Sampler(), threads=1),
    "empty": lambda k: k.filter(images(0, 4), images(), mtl.Sampler(), threads=1),
    "wrong strides": lambda k: k.filter(images(4, 6)[:, ::2], images(), mtl.Sampler(), threads=1),
    "misaligned": lambda k: k.filter(
        np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4), images(), mtl.Sampler(), threads=1),
    "read-only output": lambda k: k.filter(
        images(), read_only(images()), mtl.Sampler(), threads=1),
    "texture of another kind": lambda k: k.filter(
        mtl.Texture((2, 3, 4), "r8unorm", "3d"), images(), mtl.Sampler(), threads=1),
    "texture of another format": lambda k: k.filter(
        mtl.Texture((3, 4), "rgba8uint"), images(), mtl.Sampler(), threads=1),
    "texture for a buffer": lambda k: k.saxpy(mtl.Texture((3, 4), "r8unorm"), floats(), 1, threads=1),
    "no sampler": lambda k: k.filter(images(), images(), "linear", threads=1),
    "a cube of five faces": lambda k: k.sky(images(5, 4, 4), threads=1),
    "a cube of oblong faces": lambda k: k.sky(images(6, 4, 5), threads=1),
    "depth of two channels": lambda k: k.shadow(images(3, 4, 2), threads=1),
    "too few textures": lambda k: k.layers([images()], threads=1),
    "one texture for many": lambda k: k.layers(mtl.Texture((3, 4), "r8unorm"), threads=1),
    "a bad texture among many": lambda k: k.layers([images(), images(3)], threads=1),
}  # fmt: skip

STRUCTS = {
    "member missing": lambda k: k.render({"out": floats()}, threads=1),
    "member unknown": lambda k: k.render(scene(extra=1), threads=1),
    "tuple too short": lambda k: k.render((floats(),), threads=1),
    "no mapping": lambda k: k.render([3], threads=1),
    "two structs for a reference": lambda k: k.render([scene(), scene()], threads=1),
    "member of wrong dtype": lambda k: k.render(scene(out=ints()), threads=1),
    "member read-only": lambda k: k.render(scene(out=read_only(floats())), threads=1),
    "member misaligned": lambda k: k.render(scene(out=np.zeros(17, np.uint8)[1:].view("f4")), threads=1),
    "member no texture": lambda k: k.render(scene(image=None, how=3), threads=1),
    "array too short": lambda k: k.render(scene(parts=[floats()]), threads=1),
    "element of wrong dtype": lambda k: k.render(scene(parts=[floats(), ints()]), threads=1),
    "array of numbers too long": lambda k: k.render(scene(weights=[1, 2, 3, 4, 5]), threads=1),
    "a word for a number": lambda k: k.render(scene(weights="abcd"), threads=1),
    "memory for a value": lambda k: k.render(scene(weights=mtl.Buffer(16)), threads=1),
    "member of a member missing": lambda k: k.render(scene(light={"power": 1}), threads=1),
    "value of a member of a member": lambda k: k.render(
        scene(light={"power": "x", "position": (1, 2, 3)}), threads=1),
    "struct of another kernel": lambda k: k.particle(
        mtl.ArgumentBuffer(k.render, "scene", scene()), threads=1),
    "argument buffer of no parameter": lambda k: mtl.ArgumentBuffer(k.render, "x", scene()),
    "argument buffer of no struct": lambda k: mtl.ArgumentBuffer(k.saxpy, "y", floats()),
    "struct to write to": lambda k: k.particles({"position": (1, 2, 3), "mass": 1}, threads=1),
}  # fmt: skip

FAULTS = {
    "lane out of range": lambda k: k.shuffle(ints(), threads=4),
    "barrier not reached": lambda k: k.early_return(ints(), threads=4),
    "different barriers": lambda k: k.two_barriers(ints(), threads=4),
    "stack overflow": lambda k: k.endless_recursion(ints(), threads=4),
    "division by zero": lambda k: k.divide(ints(), threads=4),
    "index past the end": lambda k: k.wild(ints(), 4, threads=4),
    "address no memory can have": lambda k: k.wild(ints(), 2**61, threads=4),
    "the same unchecked": lambda k: kernels(bounds="unchecked").wild(ints(), 2**61, threads=4),
}


def endless(k):
    """A launch that only its limit or its cancellation ends."""
    return k.endless(mtl.Buffer(ints(1)), threads=1)


def cancelled(k):
    event = endless(k)
    event.cancel()
    event.wait()


#: Launches that are ended.
ENDED = {
    "at its limit": (mtl.LaunchTimeout, lambda k: k.endless(ints(1), threads=1, timeout=0.05)),
    "cancelled": (mtl.LaunchCancelled, cancelled),
}

LIBRARIES = {
    "misspelt kernel": lambda: kernels().saxpi,
    "misspelt item": lambda: kernels()["wide"],
    "no kernel in text": lambda: mtl.library("int x;").anything,
    "a vertex function": lambda: mtl.library(
        HEADER + "vertex float4 v(uint i [[vertex_id]]) { return 0; } kernel void k() {}"
    ).v,
    "vertex functions only": lambda: mtl.library(
        HEADER + "vertex float4 v(uint i [[vertex_id]]) { return 0; }"
    ),
    "mesh functions only": lambda: mtl.library(HEADER + "[[mesh]] void m() {}"),
    "a file as text": lambda: mtl.library("kernels.metal"),
    "folders of no path": lambda: mtl.library("int x;", include_dirs=3),
    "macros as a list": lambda: mtl.library("int x;", defines=["A"]),
    "a macro of several lines": lambda: mtl.library("int x;", defines={"A": "1 +\n2"}),
    "a macro of no value": lambda: mtl.library("int x;", defines={"A": [1]}),
    "a macro of no name": lambda: mtl.library("int x;", defines={"A B": 1}),
    "missing file": lambda: mtl.library(path="missing.metal"),
    "file and text": lambda: mtl.library("int x;", path="missing.metal"),
    "neither file nor text": lambda: mtl.library(),
    "text as bytes": lambda: mtl.library(b"kernel"),
    "unknown math mode": lambda: mtl.library("int x;", math_mode="quick"),
    "unknown constant": lambda: mtl.library(
        "constant int n [[function_constant(3)]];\nkernel void f(device int* x) { x[0] = n; }"
    ).function("f", {"m": 1}),
    "a constant that is no number": lambda: mtl.library(
        "constant int n [[function_constant(3)]];\nkernel void f(device int* x) { x[0] = n; }"
    ).function("f", {"n": "1"}),
    "load of many": lambda: mtl.load(FOLDER / "kernels.metal"),
    "load without array": lambda: mtl.load(FOLDER / "kernels.metal", "bytes")(3),
    "load with missing input": lambda: mtl.load(FOLDER / "kernels.metal", "saxpy")(floats()),
    "negative buffer": lambda: mtl.Buffer(-1),
    "texture without format": lambda: mtl.Texture((3, 4)),
    "texture of unknown format": lambda: mtl.Texture((3, 4), "rgb8unorm"),
    "texture of unknown kind": lambda: mtl.Texture((3, 4), "r8unorm", "4d"),
    "texture of few extents": lambda: mtl.Texture((3,), "r8unorm"),
    "texture of no extent": lambda: mtl.Texture((0, 3), "r8unorm"),
    "cube of great extent": lambda: mtl.Texture((6, 20000, 20000), "r8unorm", "cube"),
    "texture of three channels": lambda: mtl.Texture(np.zeros((3, 4, 3), np.uint8)),
    "texture of a vector": lambda: mtl.Texture(np.zeros(3, np.uint8)),
    "texture of doubles": lambda: mtl.Texture(np.zeros((3, 4))),
    "texture of another dtype": lambda: mtl.Texture(np.zeros((3, 4)), "r32float"),
    "texture of many levels": lambda: mtl.Texture((3, 4), "r8unorm", mipmaps=9),
    "level of a texture": lambda: mtl.Texture((3, 4), "r8unorm").numpy(1),
    "sampler of unknown filter": lambda: mtl.Sampler(filter="cubic"),
    "sampler of odd levels": lambda: mtl.Sampler(lod_clamp=(3, 1)),
    "sampler of one level": lambda: mtl.Sampler(lod_clamp=3),
    "sampler of a bias in words": lambda: mtl.Sampler(lod_bias="much"),
    "sampler of great anisotropy": lambda: mtl.Sampler(max_anisotropy=17),
    "huge buffer": lambda: mtl.Buffer(2**60),
    "buffer of words": lambda: mtl.Buffer(["a"]),
    "unknown device": lambda: mtl.Device("cpx"),
}  # fmt: skip

TEXTS = {
    "undeclared name": text(f"kernel void f(device float* x, {ID}) {{\n    x[i] = 2.0 * undefined;\n}}"),
    "a function without its namespace": lambda: mtl.library("kernel void f(device float* x) { x[0] = sin(x[0]); }"),
    "printf": text('kernel void f(device float* x) { printf("%f", x[0]); }'),
    "missing semicolon": text(f"kernel void f(device float* x, {ID}) {{\n    x[i] = 1.0\n}}"),
    "several errors": text(f"kernel void f(device float* x, constant float4& y, {ID}) {{\n"
                           "    device half* h = x;\n    x[i] = y;\n    y.x = 3;\n}"),
    "inside a macro": text("#define SQUARE(v) ((v) * (v) * wrong)\n"
                           f"kernel void f(device float* x, {ID}) {{\n    x[i] = 1 + SQUARE(x[i]);\n}}"),
    "after a long literal": text(f"kernel void f(device half* x, {ID}) {{\n"
                                 "    x[i] = 1.0h + 2.0h + 3.0h + wrong;\n}"),
    "wrong arguments of a builtin": text(f"kernel void f(device float* x, {ID}) {{\n"
                                         "    x[i] = min(x[i], x);\n}"),
    "no such member": text(f"kernel void f(device float4* x, {ID}) {{\n    x[i].q = 1;\n}}"),
    "missing include": text('#include "nowhere.h"'),
    "error directive": text("#if __METAL_VERSION__ < 999\n#error expects a newer Metal\n#endif"),
    "unbalanced": text("kernel void f(device float* x) {"),
    "inside a template": text("template <typename T> kernel void f(device T* x) { x->go(); }\n"
                              'template [[host_name("g")]] kernel void f<float>(device float*);'),
    "a texture to sample only": text(
        "kernel void f(texture2d<float> t) {\n    t.write(float4(0), uint2(0));\n}"),
    "a texture to write only": text(
        "kernel void f(texture2d<float, access::write> t) {\n    t.read(uint2(0));\n}"),
    "a texture to read only": text(
        "kernel void f(texture2d<float, access::read> t, sampler s) {\n    t.sample(s, float2(0));\n}"),
    "a texture of bool": text("kernel void f(texture2d<bool> t) {}"),
    "atomics on floats": text("kernel void f(texture1d<float, access::read_write> t) {\n"
                              "    t.atomic_fetch_add(0, float4(1));\n}"),
    "an option sample() has not": text(
        "kernel void f(texture2d<float> t, sampler s) {\n    t.sample(s, float2(0), 2.5);\n}"),
    "ray tracing": text("#include <metal_raytracing>\nusing namespace metal::raytracing;\n"
                        "kernel void f(instance_acceleration_structure s, device float* y) {\n"
                        "    intersector<triangle_data, instancing> i;\n"
                        "    y[0] = i.intersect(ray(), s).distance;\n}"),
    "a function table": text("kernel void f(visible_function_table<float(float)> t, device float* y)"
                             " {\n    y[0] = t[0](1);\n}"),
    "data of intersections": text(
        "kernel void f(device float* o, intersection_function_table<triangle_data> t) {}"),
    "a mesh": text("struct V { float4 p [[position]]; };\n"
                   "using M = metal::mesh<V, void, 3, 1, topology::triangle>;\n"
                   "[[mesh]] void m(M out) { out.set_primitive_count(1); }"),
    "an imageblock": text("struct P { half4 c; };\nkernel void f(imageblock<P> b, "
                          "ushort2 p [[thread_position_in_threadgroup]]) { b.data(p)->c = 0; }"),
    "a derivative": text("fragment float4 f(float4 p [[position]]) { return dfdx(p); }"),
    "an interpolant": text(
        "struct F { interpolant<float2, interpolation::perspective> t; };"),
    "tessellation": text("kernel void f(device MTLQuadTessellationFactorsHalf* y) {}"),
    "tensors without their header": text(
        "kernel void f(tensor<device half, dextents<int, 2>> t) {}"),
    "Metal Performance Primitives without their header": text(
        "kernel void f() { constexpr auto d = mpp::tensor_ops::matmul2d_descriptor(64, 32); }"),
    "a convolution of tensors": text(
        TENSORS + "kernel void f() { constexpr auto d = convolution2d_descriptor(1, 2); }"),
    "a reduction of a cooperative tensor": text(
        TENSORS + "kernel void f(device int* x) { reduce_rows(x[0], x[1]); }"),
    "a tensor of int4": text(
        TENSORS + "kernel void f(device uchar* x) { tensor<device int4b_format, dextents<int, 2>, "
                  "tensor_inline> t; }"),
    "a product of int": text(
        TENSORS + "kernel void f(device int* x) {\n"
                  "    auto t = tensor(x, dextents<int, 2>(16, 16));\n"
                  "    matmul2d<matmul2d_descriptor(16, 16), execution_simdgroup> op;\n"
                  "    op.run(t, t, t);\n}"),
    "a tensor of static extents": lambda: mtl.library(
        HEADER + TENSORS + "kernel void f(tensor<device half, extents<int, 4, 4>> t) {}").f,
    "an undefined function": lambda: mtl.library(
        "float g(float);\nkernel void f(device float* x) {\n    x[0] = 1 + g(x[0]);\n}").f,
    "a function of the C library": lambda: mtl.library(
        'extern "C" int system(constant const char*);\n'
        "int run(constant const char* text) { return system(text); }\n"
        'kernel void f(device int* x) {\n    x[0] = run("true");\n}').f,
    "a function of a namespace": lambda: mtl.library(
        "namespace m { template <typename T> T solve(T); }\n"
        "#define SOLVE(x) m::solve(x)\n"
        "kernel void f(device float* x) {\n    x[0] = SOLVE(x[0]);\n}").f,
    "a variable of the process": lambda: mtl.library(
        "extern int environ;\nkernel void f(device int* x) {\n    x[0] = environ;\n}").f,
    "bicubic filtering": text("constexpr sampler s(filter::bicubic);"),
    "a stage input": lambda: mtl.library(
        HEADER + "struct In { float4 p [[attribute(0)]]; };\n"
        "kernel void f(In in [[stage_in]], device float4* y) { *y = in.p; }").f,
    "a value parameter": lambda: mtl.library("kernel void f(float x) {}").f,
    "a result": lambda: mtl.library("kernel int f(device int* x) { return x[0]; }").f,
    "an index used twice": lambda: mtl.library(
        "kernel void f(device int* x [[buffer(1)]], device int* y [[buffer(1)]]) {}").f,
}  # fmt: skip

#: What some of these need of a device, in addition to their names.
NEEDS = {
    "another type of a tensor": "tensors",
    "another rank of a tensor": "tensors",
    "a read-only tensor": "tensors",
    "a number as a tensor": "tensors",
    "a tensor of static extents": "tensors",
    "huge buffer": "the CPU",  # the message is the device's
}

#: Calls that are refused, by kind.
CALLS = {"argument": ARGUMENTS, "texture": TEXTURES, "struct": STRUCTS}
