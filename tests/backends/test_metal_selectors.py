"""The Metal device and the data of the real binding (see tests/compat/test_metal_binding.py)."""

import ast
import contextlib
import re
import types
from pathlib import Path

import numpy as np
import pytest
from metal_binding import CheckedModule, metadata

import metalloid as mtl
from metalloid.backends.metal.compile import limits
from metalloid.backends.metal.pyobjc import binding, ownership
from metalloid.backends.metal.runtime import samplers, textures
from metalloid.backends.metal.runtime.device import MetalDevice
from metalloid.backends.metal.runtime.textures import format_name
from metalloid.compat import Metal
from metalloid.runtime.textures.pixel_formats import FORMATS
from metalloid.runtime.textures.sampler import _FIELDS

FOLDER = Path(binding.__file__).parents[1]
#: Of ordinary classes: PyObjC asks the Objective-C runtime, its data say nothing.
OF_CLASSES = {
    "alloc", "code", "fileURLWithPath:", "init", "localizedDescription",
    "setBinaryArchives:", "setCaptureObject:", "setComputeFunction:", "setDestination:",
    "setConstantValue:type:atIndex:", "setFastMathEnabled:", "setLanguageVersion:", "setMathFloatingPointFunctions:", "setMathMode:",
    "setOutputURL:", "setPreprocessorMacros:", "setShaderValidation:", "setUrl:", "sharedCaptureManager", "stopCapture",
    "type", "index",
    # MTLLogStateDescriptor, MTLCommandBufferDescriptor
    "setBufferSize:", "setLevel:", "setLogState:",
    # MTLSamplerDescriptor
    "setLodMaxClamp:", "setLodMinClamp:", "setMaxAnisotropy:", "setNormalizedCoordinates:",
    "setSupportArgumentBuffers:",
    # MTLTextureDescriptor
    "setArrayLength:", "setDepth:", "setHeight:", "setMipmapLevelCount:", "setPixelFormat:",
    "setStorageMode:", "setTextureType:", "setUsage:", "setWidth:",
    # Metal Performance Shaders: see test_metal_products.py
    "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:",
    "initWithBuffer:offset:descriptor:",
    "initWithDevice:transposeLeft:transposeRight:resultRows:resultColumns:interiorColumns:alpha:beta:",
    "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:",
    "setBatchSize:", "setBatchStart:",
}  # fmt: skip
_SELECTOR = re.compile(r"[a-zA-Z]+_(?:[a-zA-Z]+_)*|[a-z]+[A-Z]\w*[a-z]")
_OF_PYTHON = {"getLogger", "registerMetaDataForSelector"}


@pytest.fixture(scope="module")
def data():
    return metadata()


def attributes():
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                yield path.name, node


def test_every_selector_is_the_bindings(data):
    known = data[0].keys() | OF_CLASSES
    selectors = {
        node.attr.replace("_", ":")
        for _, node in attributes()
        if _SELECTOR.fullmatch(node.attr) and node.attr not in _OF_PYTHON
    }
    assert len(selectors) > 40
    assert selectors <= known


def test_every_constant_is_the_bindings(data):
    names = {node.attr for _, node in attributes() if node.attr.startswith("MTL")}
    classes = {name for name in names if name not in data[1]}
    assert len(names - classes) > 10
    assert classes == {
        "MTLBinaryArchiveDescriptor", "MTLCaptureDescriptor", "MTLCaptureManager",
        "MTLCommandBufferDescriptor", "MTLLogStateDescriptor",
        "MTLCompileOptions", "MTLComputePipelineDescriptor", "MTLCopyAllDevices",
        "MTLCreateSystemDefaultDevice", "MTLFunctionConstantValues", "MTLSamplerDescriptor",
        "MTLTextureDescriptor",
    }  # fmt: skip
    for family in ("Apple4", "Mac2", "Common3", "Metal3"):
        assert f"MTLGPUFamily{family}" in data[1]


def test_calls_have_as_many_arguments_as_their_names_say():
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                if _SELECTOR.fullmatch(name) and name not in _OF_PYTHON:
                    assert len(node.args) == name.count("_"), f"{path.name}: {name}"


def test_ownership_says_arguments_as_the_binding_does(data):
    for selector, arguments in ownership.OWNED.items():
        known = data[0][selector.decode()]
        assert arguments == known.get("arguments", {}), selector


def test_every_new_object_is_registered():
    """The methods named new... whose objects are theirs to release."""
    methods = {node.attr for _, node in attributes() if re.match(r"new[A-Z]", node.attr)}
    assert {name.replace("_", ":").encode() for name in methods} == set(ownership.OWNED)


def test_registering_does_not_merge():
    """PyObjC replaces what it knew, so each says its arguments and its result again."""

    calls = {}

    def register(owner, selector, data):
        calls[selector] = owner, data

    ownership.register(types.SimpleNamespace(registerMetaDataForSelector=register))
    assert calls.keys() == ownership.OWNED.keys()
    for owner, data in calls.values():
        assert owner == b"NSObject"
        assert data["retval"] == {"type": b"@", "already_retained": True}


@pytest.fixture(scope="module")
def checked(data):
    module = CheckedModule(Metal, *data)
    opened = binding.Binding(module, True, contextlib.nullcontext)
    return module, MetalDevice(module.MTLCreateSystemDefaultDevice(), 0, opened)


def test_what_the_device_says_is_what_pyobjc_takes(checked):
    module, device = checked
    lib = mtl.library(
        """
        constant float2 scale [[function_constant(1)]];
        struct Pair { device float* x; constant float* y; };
        kernel void add(device float* x, constant Pair& pair, constant float& a,
                        threadgroup float* room [[threadgroup(0)]],
                        uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]])
        { room[t] = pair.y[i]; x[i] += room[t] * scale.y + a; pair.x[i] = 1; }
        """,
        device=device,
    )
    x, y = np.arange(100, dtype=np.float32), mtl.Buffer(np.ones(100, np.float32), device)
    z = mtl.Buffer(400, device)
    event = lib.function("add", {"scale": (1, 2)})(
        x, {"x": z, "y": y}, 0.5, mtl.threadgroup_memory(32 * 4), threads=100, group_size=32
    )
    assert event.seconds >= 0
    assert x.tolist() == (np.arange(100) + 2.5).tolist()
    assert np.asarray(z).view(np.float32).tolist() == [1.0] * 100
    assert {
        "setBytes:length:atIndex:", "setBuffer:offset:atIndex:", "useResource:usage:",
        "setThreadgroupMemoryLength:atIndex:", "dispatchThreads:threadsPerThreadgroup:",
        "newLibraryWithSource:options:error:", "setConstantValue:type:atIndex:",
    } <= module.used  # fmt: skip


def test_textures_are_created_as_pyobjc_takes_it(checked):
    module, device = checked
    lib = mtl.library(
        """
        #include <metal_stdlib>
        using namespace metal;
        struct Two { texture2d<float> t; sampler s; };
        kernel void read(texture2d_array<float, access::read_write> a, constant Two& two,
                         sampler s [[sampler(0)]], uint2 p [[thread_position_in_grid]])
        { a.write(a.read(p, 1) + two.t.sample(two.s, float2(0.5)) + two.t.sample(s, float2(0)), p, 0); }
        """,
        device=device,
    )
    a, t = np.ones((2, 3, 4), np.float32), np.uint8([[0, 255]])
    lib.read(a, {"t": t, "s": mtl.Sampler(filter="linear")}, mtl.Sampler(), threads=(4, 3))
    assert (a == [[[1.5]], [[1]]]).all()
    assert {
        "newTextureWithDescriptor:", "newSamplerStateWithDescriptor:", "gpuResourceID",
        "setTexture:atIndex:", "setSamplerState:atIndex:", "setUsage:", "setMagFilter:",
    } <= module.used  # fmt: skip
    assert len([name for name in module.used if name.startswith("copyFrom")]) == 2


def test_words_of_samplers_and_textures_are_the_bindings(data):
    """Check the names that the code composes."""
    names = {format_name(pixel_format.code, False) for pixel_format in FORMATS.values()}
    names |= {f"MTLPixelFormat{name}" for name in textures._DEPTH_FORMATS.values()}
    names |= {f"MTLTextureType{name}" for name in limits.TEXTURE_KINDS.values()}
    for name, (prefix, _) in samplers._CHOICES.items():
        values = _FIELDS[name][1]
        names |= {
            prefix + samplers._metals_word(name, v)
            for v in values
            if v != samplers._DEFAULTS.get(name)
        }
    assert names <= data[1].keys()


def test_the_checks_find_what_pyobjc_would_refuse(checked):
    _, device = checked
    with pytest.raises(AssertionError, match="for b'Q'"):
        device.gpu.newBufferWithLength_options_(-1, 0)
    with pytest.raises(AssertionError, match="takes 2 arguments"):
        device.gpu.newBufferWithLength_options_(16)
    with pytest.raises(AttributeError):
        device.gpu.newBufferOfMyOwn_(16)
    encoder = device.queue.commandBuffer().computeCommandEncoder()
    with pytest.raises(AssertionError, match="setBytes"):
        encoder.setBytes_length_atIndex_(b"abc", 8, 0)
    encoder.endEncoding()
