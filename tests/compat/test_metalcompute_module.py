"""metalloid.compat.metalcompute: the module, its devices and what they compile."""

import re

import pytest

import metalloid as mtl
import metalloid.compat.metalcompute as mc


def test_public_names():
    # pytest adds names with @ to the modules of plugins' packages, whose assertions it rewrites.
    own = [name for name in dir(mc) if not name.startswith(("_", "@"))]
    names = {name for name in own if not hasattr(getattr(mc, name), "__path__")}
    modules = {"buffer", "device", "failure", "function", "metalize", "one_kernel"}
    expected = {"Device", "error", "get_devices", "init", "release", "compile", "run", "rerun"}
    assert names - modules == expected
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
    names = [device.deviceName for device in mc.get_devices()]
    default = names[mtl.devices().index(mtl.default_device())]
    for arguments, name in (((), default), ((-1,), default), ((0,), names[0])):
        assert str(mc.Device(*arguments)) == f"metalcompute.Device({name})"
    with pytest.raises(mc.error, match=r"^Cannot create device$"):
        mc.Device(len(mc.get_devices()))
    with pytest.raises(SystemError):
        mc.Device("0")


def test_without_a_device(monkeypatch):
    monkeypatch.setattr(mtl, "devices", lambda: ())
    assert mc.get_devices() == ()
    for open_device in (mc.Device, mc.init):
        with pytest.raises(mc.error, match=r"^Cannot create device$"):
            open_device()


@pytest.mark.parametrize("call", ["kernel", "buffer"])
def test_no_keywords(dev, call):
    with pytest.raises(TypeError):
        getattr(dev, call)(source="x")
    with pytest.raises(TypeError):
        getattr(dev, call)()


def test_compile_errors_come_at_once_and_as_the_compiler_says_them(dev):
    with pytest.raises(mc.error) as caught:
        dev.kernel("\ninvalid_program\n")
    first = str(caught.value).splitlines()[0]
    match = re.match(r"^(.*):(\d+):(\d+):\s+(warning|error):\s+(.*)$", first)
    assert match
    assert match.groups()[:4] == ("program_source", "2", "1", "error")


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
    run = function(1, buffer)
    assert str(run) == "metalcompute.Run"
    methods = {dev: ["buffer", "kernel"], kernel: ["function"], function: [], run: []}
    for value, names in methods.items():
        assert [name for name in dir(value) if not name.startswith("_")] == names
        assert repr(value).startswith("<metalloid.compat.metalcompute.")


def test_arithmetic_is_fast(dev):
    source = "kernel void f(device int *x) {\n#ifdef __FAST_MATH__\n*x = 1;\n#endif\n}"
    out = dev.buffer(4)
    dev.kernel(source).function("f")(1, out)
    assert memoryview(out).cast("i")[0] == 1
