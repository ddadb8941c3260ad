"""metalloid.compat.metalcompute: what metalcompute 0.2.9 promises, by its own surface."""

import re
import runpy
import sys
from array import array
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
import metalloid.compat.metalcompute as mc

SEEDS = Path(__file__).parent / "seeds" / "metalcompute"
KERNELS = """
#include <metal_stdlib>
using namespace metal;

kernel void combine(const device float *in [[buffer(0)]], const device float *in2 [[buffer(1)]],
                    device float *out [[buffer(2)]], uint id [[thread_position_in_grid]]) {
    out[id] = sin(in[id]) + in2[0];
}
kernel void where_am_i(device uint2 *out, uint id [[thread_position_in_grid]],
                       uint count [[threads_per_grid]]) {
    out[id] = uint2(id, count);
}
kernel void add_one(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                    uint id [[thread_position_in_grid]]) {
    out[id] += in[id] + 1.0;
}
struct triple { float x, y, z; };
kernel void shift(device triple *rows [[buffer(0)]], constant float3 &by [[buffer(2)]],
                  uint id [[thread_position_in_grid]]) {
    rows[id].x += by.x; rows[id].y += by.y; rows[id].z += by.z;
}
kernel void gather(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                   device const ulong *where [[buffer(2)]], uint id [[thread_position_in_grid]]) {
    out[id] = in[where[id]];
}
"""


@pytest.fixture(scope="module")
def dev():
    return mc.Device()


@pytest.fixture(scope="module")
def kernel(dev):
    return dev.kernel(KERNELS)


# -- the module


def test_public_names():
    names = {
        n for n in dir(mc) if not n.startswith("_") and not hasattr(getattr(mc, n), "__path__")
    }
    modules = {"buffer", "device", "failure", "function", "one_kernel"}
    wanted = {"Device", "error", "get_devices", "init", "release", "compile", "run", "rerun"}
    assert names - modules == wanted
    with pytest.raises(AttributeError):
        _ = mc.Buffer


def test_error_is_an_exception_of_its_own():
    assert mc.error.__bases__ == (Exception,)
    assert str(mc.error("text")) == "text"


def test_get_devices():
    devices = mc.get_devices()
    assert isinstance(devices, tuple)
    assert devices
    for device in devices:
        assert isinstance(device, tuple)
        name, size, rate, unified = device
        assert (device.deviceName, device.recommendedWorkingSetSize) == (name, size)
        assert (device.maxTransferRate, device.hasUnifiedMemory) == (rate, unified)
        assert unified is True
        assert size > 2**20
        assert repr(device).startswith("metalcompute_device(deviceName=")


def test_devices_by_index(dev):
    name = mc.get_devices()[0].deviceName
    for arguments in ((), (-1,), (0,)):
        assert str(mc.Device(*arguments)) == f"metalcompute.Device({name})"
    with pytest.raises(mc.error, match=r"^Cannot create device$"):
        mc.Device(len(mc.get_devices()))
    with pytest.raises(SystemError):
        mc.Device("0")


@pytest.mark.parametrize("call", ["kernel", "buffer"])
def test_no_keywords(dev, call):
    with pytest.raises(TypeError):
        getattr(dev, call)(source="x")
    with pytest.raises(TypeError):
        getattr(dev, call)()


# -- kernels


def test_compile_errors_come_at_once_and_as_the_compiler_says_them(dev):
    with pytest.raises(mc.error) as caught:
        dev.kernel("\ninvalid_program\n")
    first = str(caught.value).splitlines()[0]
    found = re.match(r"^(.*):(\d+):(\d+):\s+(warning|error):\s+(.*)$", first)
    assert found
    assert found.groups()[:4] == ("program_source", "2", "1", "error")


def test_wrong_texts(dev, kernel):
    with pytest.raises(TypeError, match="argument 2 must be str, not int"):
        dev.kernel(3)
    with pytest.raises(TypeError, match="argument 2 must be str, not bytes"):
        dev.kernel(b"")
    with pytest.raises(ValueError, match="embedded null character"):
        dev.kernel("\0")
    with pytest.raises(TypeError):
        kernel.function(None)
    with pytest.raises(mc.error, match=r"^Function not found$"):
        kernel.function("unknown")


def test_names_of_objects(dev, kernel):
    function, buffer = kernel.function("where_am_i"), dev.buffer(16)
    assert str(kernel) == "metalcompute.Kernel"
    assert str(function) == "metalcompute.Function"
    assert str(buffer) == "metalcompute.Buffer(length=16)"
    assert str(function(1, buffer)) == "metalcompute.Run"


def test_arithmetic_is_fast(dev):
    source = "kernel void f(device int *x) {\n#ifdef __FAST_MATH__\n*x = 1;\n#endif\n}"
    out = dev.buffer(4)
    dev.kernel(source).function("f")(1, out)
    assert memoryview(out).cast("i")[0] == 1


# -- buffers


@pytest.mark.parametrize(
    ("source", "contents"),
    [
        (7, bytes(7)),
        (3.7, bytes(3)),
        ("16", bytes(16)),
        (True, bytes(1)),
        (b"ab", b"ab"),
        (bytearray(b"ab"), b"ab"),
        (array("f", [1, 2]), np.float32([1, 2]).tobytes()),
        (np.arange(6, dtype=np.int16).reshape(2, 3), np.arange(6, dtype=np.int16).tobytes()),
        (
            np.int64(16),
            np.int64(16).tobytes(),
        ),  # 8 bytes with the value: NumPy's scalars are memory
        (np.float32(4), np.float32(4).tobytes()),
        (np.array(5.0), np.array(5.0).tobytes()),
        (memoryview(b"xyz"), b"xyz"),
    ],
)
def test_what_becomes_a_buffer(dev, source, contents):
    assert bytes(dev.buffer(source)) == contents


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, "Unsupported input format"),
        ([1.0], "Unsupported input format"),
        ("many", "Unsupported input format"),
        (1j, "Unsupported input format"),
        (float("nan"), "Unsupported input format"),
        (np.zeros((4, 4))[:, :2], "Unsupported input format"),
        (np.zeros((4, 4), order="F"), "Unsupported input format"),
        (0, "Could not make buffer"),
        (-1, "Could not make buffer"),
        (b"", "Could not make buffer"),
        (np.zeros(0), "Could not make buffer"),
        (2**62, "Could not make buffer"),
        (2**80, "Could not make buffer"),
    ],
)
def test_what_does_not(dev, source, text):
    with pytest.raises(mc.error) as caught:
        dev.buffer(source)
    assert str(caught.value) == text


def test_buffers_are_memory_and_nothing_else(dev):
    buffer = dev.buffer(16)
    view = memoryview(buffer)
    assert (view.format, view.shape, view.itemsize) == ("B", (16,), 1)
    assert view.contiguous
    assert not view.readonly
    view.cast("f", (2, 2))[1, 1] = 2.5
    assert np.frombuffer(buffer, "f").tolist() == [0, 0, 0, 2.5]
    assert np.asarray(buffer).dtype == np.uint8
    assert bytes(buffer) == bytearray(buffer) == view.tobytes()
    for use in (len, iter, lambda b: b[0], lambda b: b + b):
        with pytest.raises(TypeError):
            use(buffer)


def test_buffers_are_files_and_pictures(dev, tmp_path):
    from PIL import Image

    pixels = np.arange(16, dtype=np.uint8)
    buffer = dev.buffer(pixels)
    (tmp_path / "raw").write_bytes(buffer)
    assert (tmp_path / "raw").read_bytes() == pixels.tobytes()
    image = Image.frombuffer("RGBA", (2, 2), buffer, "raw", "RGBA", 0, 1)
    assert np.asarray(image).tolist() == pixels.reshape(2, 2, 4).tolist()


def test_views_keep_the_memory(dev, kernel):
    view = np.frombuffer(dev.buffer(array("f", [1, 2])), "f")
    again = dev.buffer(view)
    assert view.tolist() == np.frombuffer(again, "f").tolist() == [1, 2]


# -- calls


def test_many_values(dev, kernel):
    count = 1_234_567
    values = np.linspace(-np.pi, np.pi, count, dtype=np.float32)
    out = dev.buffer(count * 4)
    kernel.function("combine")(count, values, array("f", [1.0]), out)
    wanted = np.sin(values.astype(np.float64)) + 1
    # What the specification promises of fast sin on this interval.
    assert abs(np.frombuffer(out, "f") - wanted).max() <= 2**-13


def test_exactly_as_many_threads_as_asked_for(dev, kernel):
    out = dev.buffer(np.full((1100, 2), 7, np.uint32))
    kernel.function("where_am_i")(1000, out)
    rows = np.frombuffer(out, np.uint32).reshape(-1, 2)
    assert rows[:1000].tolist() == [[i, 1000] for i in range(1000)]
    assert (rows[1000:] == 7).all()


def test_temporaries_lose_what_is_written_to_them(dev, kernel):
    out = array("f", [5.0])
    kernel.function("add_one")(1, array("f", [1.0]), out)
    assert out[0] == 5.0
    # And a number is not a number, but so many bytes.
    out = dev.buffer(4)
    kernel.function("add_one")(1, 4, out)
    assert memoryview(out).cast("f")[0] == 1.0


def test_counts(dev, kernel):
    function, out = kernel.function("where_am_i"), dev.buffer(80)
    for count, threads in ((4.9, 4), (True, 1), (np.int32(3), 3), (np.float32(2.5), 2), (0, 0)):
        memoryview(out)[:] = bytes(80)
        function(count, out)
        assert (np.frombuffer(out, np.uint32)[1::2] > 0).sum() == threads
    for count in ("4", None, [4], -1, 2**32):
        with pytest.raises(mc.error):
            function(count, out)
    with pytest.raises(mc.error, match=r"^First argument should be an integer kernel count$"):
        function("4", out)
    for arguments in ((), (4,), ("4",)):
        with pytest.raises(mc.error, match=r"^Buffer not found$"):
            function(*arguments)


def test_keywords_are_ignored(dev, kernel):
    out = dev.buffer(8)
    kernel.function("where_am_i")(1, out, nonsense=3)
    assert memoryview(out).cast("I").tolist() == [0, 1]


def test_buffers_beyond_the_parameters_are_ignored(dev, kernel):
    out = dev.buffer(8)
    kernel.function("where_am_i")(1, out, dev.buffer(4), 12)  # 12: of so many bytes
    assert memoryview(out).cast("I")[1] == 1
    with pytest.raises(mc.error, match=r"^Unsupported input format$"):
        kernel.function("where_am_i")(1, out, None)


def test_missing_buffers(dev, kernel):
    with pytest.raises(mc.error, match="Buffer not found: combine has 3, got 1"):
        kernel.function("combine")(1, dev.buffer(4))


def test_sizes_and_gaps_are_not_checked(dev, kernel):
    """Rows of 12 bytes; 12 bytes for a float3, which takes 16; nothing uses buffer 1."""
    rows = dev.buffer(np.arange(30, dtype=np.float32))
    by = array("f", [1, 2, 3])
    kernel.function("shift")(10, rows, 4, by)
    wanted = np.arange(30, dtype=np.float32).reshape(10, 3) + np.array(by)
    assert np.frombuffer(rows, "f").reshape(10, 3).tolist() == wanted.tolist()


def test_runs_of_a_device_keep_their_order(dev, kernel):
    add_one = kernel.function("add_one")
    ones, total = dev.buffer(np.zeros(5000, "f")), dev.buffer(5000 * 4)
    handles = [add_one(5000, ones, total) for _ in range(100)]
    del handles
    assert (np.frombuffer(total, "f") == 100).all()
    [add_one(5000, ones, total) for _ in range(10)][-1]
    assert (np.frombuffer(total, "f") == 110).all()


def test_a_handle_waits_when_it_goes(dev):
    slow = dev.kernel("""
    kernel void slow(device uint *out, device const uint *rounds, uint id [[thread_position_in_grid]]) {
        uint x = id;
        for (uint i = 0; i < rounds[0]; i++) x = x * 1664525u + 1013904223u + (x >> 7);
        out[id] = x | 1;
    }""").function("slow")
    out = dev.buffer(4)
    handle = slow(1, out, array("I", [20_000_000]))
    running = memoryview(out).cast("I")[0] == 0
    del handle
    assert running
    assert memoryview(out).cast("I")[0] != 0


def test_a_failing_kernel_is_told(dev, kernel, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))
    where = dev.buffer(np.array([2**60], np.uint64))
    kernel.function("gather")(1, dev.buffer(4), dev.buffer(4), where)
    assert [type(failure) for failure in told] == [mtl.KernelFault]


# -- the functions of version 0.1


@pytest.fixture
def one_kernel():
    mc.init()
    yield
    mc.release()


def test_run_copies_in_and_out(one_kernel):
    assert mc.compile(KERNELS, "add_one") is None
    values, out = np.arange(1000, dtype="f"), np.full(1000, 9, "f")
    assert mc.run(values, out, 1000) is None
    assert out.tolist() == (values + 1).tolist()
    assert mc.rerun(1000) is None
    assert out.tolist() == (values + 1).tolist()


def test_run_takes_bytes(one_kernel):
    source = "kernel void f(device uchar *i, device uchar *o, uint id [[thread_position_in_grid]]) { o[id] = i[id] + 1; }"
    mc.compile(source, "f")
    out = bytearray(3)
    mc.run(b"HAL", out, 3)
    assert out == b"IBM"


def test_a_run_that_fails(one_kernel):
    source = "kernel void f(device const ulong *where, device float *x) { x[where[0]] = 1; }"
    mc.compile(source, "f")
    with pytest.raises(mc.error, match="access to memory"):
        mc.run(np.uint64([2**60]).view(np.uint8), np.zeros(1, "f"), 1)


def test_states():
    mc.release()
    with pytest.raises(mc.error, match=r"^Not ready to compile$"):
        mc.compile(KERNELS, "add_one")
    with pytest.raises(mc.error, match=r"^Cannot create device$"):
        mc.init(99)
    mc.init(-1)
    floats = array("f", [0, 1])
    with pytest.raises(mc.error, match=r"^Not ready to compute$"):
        mc.run(floats, floats, 1)
    with pytest.raises(mc.error, match=r"program_source:1:1: error: "):
        mc.compile("invalid_kernel", "unknown_function")
    with pytest.raises(mc.error, match=r"^Failed to find function$"):
        mc.compile(KERNELS, "unknown")
    mc.compile(KERNELS, "add_one")
    with pytest.raises(mc.error):
        mc.rerun(1)
    for wrong, text in (([1.0], "input"), (array("d", [1]), "input"), (None, "input")):
        with pytest.raises(mc.error, match=rf"^Unsupported {text} format$"):
            mc.run(wrong, floats, 1)
    for wrong in (b"12345678", array("i", [1]), 3, np.zeros((4, 4), "f")[:, :2]):
        with pytest.raises(mc.error, match=r"^Unsupported output format$"):
            mc.run(floats, wrong, 1)
    for wrong in (1.5, "1"):
        with pytest.raises(TypeError):
            mc.run(floats, floats, wrong)
    assert mc.release() is None
    assert mc.release() is None
    with pytest.raises(mc.error):
        mc.rerun(1)


# -- the seed document


def test_seed_hello(capsys):
    assert runpy.run_path(str(SEEDS / "hello.py"))["C_view"].tolist() == [
        i * (i + 10.0) for i in range(10)
    ]
    assert capsys.readouterr().out == "11.0\n"


def test_seed_flops(dev):
    source = runpy.run_path(str(SEEDS / "flops.py"))["kernel"]
    count = 1_000_000
    a, b = np.random.default_rng(1).uniform(-0.05, 0.05, (2, count)).astype("f")
    out = dev.buffer(count * 4)
    dev.kernel(source).function("helloABC")(count, a, b, out)
    sample = slice(None, None, 50)
    x, y = a[sample].astype(np.float64), b[sample].astype(np.float64)
    d, e, f, g = x, y, x + y, x - y
    scale = abs(d) + abs(e) + abs(f) + abs(g)
    for _ in range(400):
        d = d + x * g
        e = e + y * f
        f = f + x * e
        g = g + y * d
        scale = np.maximum(scale, abs(d) + abs(e) + abs(f) + abs(g))
    # 1600 roundings, each of at most half an ULP of what was the largest sum
    error = abs(np.frombuffer(out, "f")[sample] - (d + e + f + g))
    assert (error <= 1600 * 2.0**-24 * scale).all()


GLSL = """
#include <metal_stdlib>
using namespace metal;
#define vec2 float2
#define vec3 float3
#define vec4 float4
#define main() julia(constant float &time [[buffer(0)]], device float4 *image [[buffer(1)]], \\
                     uint id [[thread_position_in_grid]])
#define gl_FragCoord float4(id % 256 + 0.5, id / 256 + 0.5, 0, 1)
#define gl_FragColor image[id]
kernel
"""


ROUNDING = 8 * 2.0**-24  # of a few operations in float


def julia():
    """The same in NumPy, at time 0: colours, and what roundings in float may change about them."""
    place = (np.arange(256) + 0.5 - 128) / 256
    c, z = 0.8j, (place + 1j * place[:, None]) * 4
    error = np.zeros(z.shape)
    rounds, inside = np.zeros(z.shape), np.ones(z.shape, bool)
    for _ in range(100):
        roundings = ROUNDING * (abs(z) ** 2 + abs(c))
        grown = np.minimum(2 * abs(z) * error + error**2 + roundings, 1e30)
        error = np.where(inside, grown, error)
        z = np.where(inside, z * z + c, z)
        inside = inside & (abs(z) <= 100)
        rounds += inside
    away = abs(abs(z) - 100) > error
    with np.errstate(invalid="ignore", divide="ignore"):
        smooth = rounds - (np.log2(np.log(abs(z)) / np.log(100.0)) - 1)
        doubt = error / abs(z) / np.log(abs(z)) / smooth * 8 * 0.4 * 0.71 / np.log(2) ** 2
        hue = 8 * np.log2(smooth)
        colours = [0.5 + 0.4 * np.sin(k * hue) for k in (0.31, 0.53, 0.71)]
    outside = (rounds < 100) & away
    return np.stack([*colours, np.ones(z.shape)], axis=-1), np.where(outside, doubt, np.inf)


def test_seed_julia(dev):
    image = dev.buffer(256 * 256 * 16)
    source = f"{GLSL}{(SEEDS / 'julia.glsl').read_text()}"
    dev.kernel(source).function("julia")(256 * 256, array("f", [0]), image)
    pixels = np.frombuffer(image, "f").reshape(256, 256, 4)
    wanted, doubt = julia()
    sure = doubt < 1e-3
    assert sure.mean() > 0.9
    difference = abs(pixels - wanted).max(axis=-1)
    assert (difference[sure] <= doubt[sure] + 2**-13).all()
