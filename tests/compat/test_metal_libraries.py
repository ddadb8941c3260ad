"""metalloid.compat.Metal: the module, the device, libraries, functions and pipelines."""

import ctypes
import struct

import numpy as np
import pytest
from metal_programs import KERNELS, SHARED, array_of, buffer_of, encode, run

from metalloid.compat import Metal

# -- the module and the device


def test_star_import():
    names = {}
    exec("from metalloid.compat.Metal import *", names)
    assert names["MTLCreateSystemDefaultDevice"]().name()
    assert names["MTLResourceStorageModeShared"] == 0
    assert "constants" not in names
    assert "MTLDevice" not in names


def test_device(device):
    assert device is Metal.MTLCreateSystemDefaultDevice()
    assert device in Metal.MTLCopyAllDevices()
    assert device.name() in repr(device)
    assert device.hasUnifiedMemory() is True
    assert (device.isLowPower(), device.isHeadless(), device.isRemovable()) == (False, True, False)
    assert device.location() == Metal.MTLDeviceLocationBuiltIn
    assert device.registryID() > 0
    assert device.maxTransferRate() == 0
    assert device.recommendedMaxWorkingSetSize() == device.maxBufferLength() > 2**20
    assert device.maxThreadgroupMemoryLength() == 32768
    assert tuple(device.maxThreadsPerThreadgroup()) == (1024, 1024, 1024)
    families = (Metal.MTLGPUFamilyApple7, Metal.MTLGPUFamilyCommon3, Metal.MTLGPUFamilyMetal3)
    assert all(map(device.supportsFamily_, families))
    assert not device.supportsFamily_(Metal.MTLGPUFamilyMac2)


def test_sizes():
    size = Metal.MTLSizeMake(4, 2, 1)
    assert (size.width, size.height, size.depth) == tuple(size) == (4, 2, 1)
    assert size[1] == 2
    assert size == Metal.MTLSize(4, 2, 1)
    assert Metal.MTLSize().width == 0
    for wrong in (("4", 1, 1), (4.0, 1, 1), (-1, 1, 1), (2**64, 1, 1)):
        with pytest.raises(ValueError, match="depythonifying"):
            Metal.MTLSizeMake(*wrong)
    with pytest.raises(TypeError):
        Metal.MTLSizeMake(1, 1)


def test_names_are_metals_own(device, library, queue, pipeline):
    for thing in (device, library, queue, queue.commandBuffer(), pipeline("add_one")):
        for wrong in ("newLibraryWithSource", "setBuffer", "commit_", "nonsense"):
            with pytest.raises(AttributeError):
                getattr(thing, wrong)
    with pytest.raises(TypeError):
        device.newLibraryWithSource_options_error_(KERNELS, None)


def test_labels(device, library, queue, pipeline):
    function = library.newFunctionWithName_("add_one")
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    buffer = device.newBufferWithLength_options_(4, SHARED)
    for thing in (library, function, queue, commands, encoder, buffer):
        assert thing.label() is None
        thing.setLabel_("mine")
        assert thing.label() == "mine"
        assert thing.device() is device
        thing.setLabel_(None)
        with pytest.raises(ValueError, match="NSString"):
            thing.setLabel_(3)
    encoder.endEncoding()


# -- libraries, functions, pipelines


def test_texts_that_do_not_compile(device):
    library, error = device.newLibraryWithSource_options_error_("\nkernel void f( {}", None, None)
    assert library is None
    assert error.domain() == Metal.MTLLibraryErrorDomain
    assert error.code() == Metal.MTLLibraryErrorCompileFailure
    assert error.localizedDescription().startswith("program_source:2:")
    assert error.userInfo() == {"NSLocalizedDescription": error.localizedDescription()}
    assert error.localizedFailureReason() is None
    assert str(error).startswith('Error Domain=MTLLibraryErrorDomain Code=3 "program_source:2:')
    with pytest.raises(ValueError, match="NSString"):
        device.newLibraryWithSource_options_error_(b"", None, None)
    with pytest.raises(ValueError, match="MTLCompileOptions"):
        device.newLibraryWithSource_options_error_("", {}, None)


def test_compile_options(device):
    options = Metal.MTLCompileOptions.alloc().init()
    assert options.fastMathEnabled() is True
    assert options.mathMode() == Metal.MTLMathModeFast
    options.setPreprocessorMacros_({"COUNT": 3, "NAME": "f"})
    assert options.preprocessorMacros() == {"COUNT": 3, "NAME": "f"}
    source = "kernel void NAME(device int *x) { *x = COUNT; }"
    library, _ = device.newLibraryWithSource_options_error_(source, options, None)
    assert library.functionNames() == ("f",)
    for set_mode, fast in (
        (lambda o: o.setFastMathEnabled_(True), True),
        (lambda o: o.setFastMathEnabled_(False), False),
        (lambda o: o.setMathMode_(Metal.MTLMathModeSafe), False),
        (lambda o: o.setMathMode_(Metal.MTLMathModeFast), True),
    ):
        options = Metal.MTLCompileOptions.new()
        set_mode(options)
        assert options.fastMathEnabled() is fast
        library, _ = device.newLibraryWithSource_options_error_(KERNELS, options, None)
        assert ("is_fast" in library.functionNames()) is fast
    with pytest.raises(ValueError, match="MTLMathMode"):
        options.setMathMode_(7)
    for name, value in (
        ("languageVersion", Metal.MTLLanguageVersion2_3),
        ("libraryType", Metal.MTLLibraryTypeDynamic),
        ("optimizationLevel", Metal.MTLLibraryOptimizationLevelSize),
        ("mathFloatingPointFunctions", Metal.MTLMathFloatingPointFunctionsPrecise),
        ("preserveInvariance", True),
    ):
        getattr(options, f"set{name[0].upper()}{name[1:]}_")(value)
        assert getattr(options, name)() == value


def test_functions(device, library):
    assert library.newFunctionWithName_("nonsense") is None
    function = library.newFunctionWithName_("scale")
    assert function.name() == "scale"
    assert function.functionType() == Metal.MTLFunctionTypeKernel
    assert library.type() == Metal.MTLLibraryTypeExecutable
    assert {"where_am_i", "is_fast"} <= set(library.functionNames())
    constants = function.functionConstantsDictionary()
    assert {n: (c.name(), c.index(), c.type()) for n, c in constants.items()} == {
        "factor": ("factor", 0, Metal.MTLDataTypeFloat),
        "doubled": ("doubled", 3, Metal.MTLDataTypeBool),
        "shift": ("shift", 5, Metal.MTLDataTypeInt3),
    }


def test_pipelines(device, library, pipeline):
    state = pipeline("add_one")
    assert state.maxTotalThreadsPerThreadgroup() == 1024
    assert state.threadExecutionWidth() == 32
    with pytest.raises(Metal.FailedAssertion, match="must not be nil"):
        device.newComputePipelineStateWithFunction_error_(None, None)
    with pytest.raises(ValueError, match="MTLFunction"):
        device.newComputePipelineStateWithFunction_error_(library, None)
    text = "float nowhere(float); kernel void f(device float *x) { x[0] = nowhere(x[0]); }"
    unfinished, _ = device.newLibraryWithSource_options_error_(text, None, None)
    function = unfinished.newFunctionWithName_("f")
    state, error = device.newComputePipelineStateWithFunction_error_(function, None)
    assert state is None
    assert "error: undefined: 'nowhere' is declared and used" in error.localizedDescription()


def test_pipelines_by_descriptor_and_by_handler(device, library):
    descriptor = Metal.MTLComputePipelineDescriptor.alloc().init()
    descriptor.setComputeFunction_(library.newFunctionWithName_("add_one"))
    descriptor.setLabel_("adds")
    descriptor.setMaxTotalThreadsPerThreadgroup_(64)
    descriptor.setThreadGroupSizeIsMultipleOfThreadExecutionWidth_(True)
    assert descriptor.computeFunction().name() == "add_one"
    assert descriptor.maxTotalThreadsPerThreadgroup() == 64
    assert descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth() is True
    state, error = device.newComputePipelineStateWithDescriptor_options_reflection_error_(
        descriptor, Metal.MTLPipelineOptionNone, None, None
    )
    assert (state.label(), error) == ("adds", None)
    received = []
    device.newLibraryWithSource_options_completionHandler_(
        KERNELS, None, lambda *results: received.append(results)
    )
    device.newComputePipelineStateWithFunction_completionHandler_(
        received[0][0].newFunctionWithName_("add_one"), lambda *results: received.append(results)
    )
    assert received[1][0].maxTotalThreadsPerThreadgroup() == 1024
    assert received[0][1] is received[1][1] is None


def test_files(device, tmp_path, monkeypatch):
    text = "kernel void f(device int *x) { *x = 1; }"
    (tmp_path / "kernels.metal").write_text(text)
    (tmp_path / "apple.metallib").write_bytes(b"MTLB\1\0\2\0")
    (tmp_path / "bad.metal").write_text("kernel")
    for name in ("kernels.metal", "kernels.metallib"):
        library, error = device.newLibraryWithFile_error_(str(tmp_path / name), None)
        assert (library.functionNames(), error) == (("f",), None)
    for name, code, words in (
        ("apple.metallib", Metal.MTLLibraryErrorInternal, "Invalid library file"),
        ("nowhere.metallib", Metal.MTLLibraryErrorFileNotFound, "library not found"),
        ("bad.metal", Metal.MTLLibraryErrorCompileFailure, "bad.metal:1:"),
    ):
        library, error = device.newLibraryWithFile_error_(str(tmp_path / name), None)
        assert (library, error.code()) == (None, code)
        assert words in error.localizedDescription()

    class Url:
        def path(self):
            return str(tmp_path / "kernels.metallib")

    assert device.newLibraryWithURL_error_(Url(), None)[0].functionNames() == ("f",)
    monkeypatch.chdir(tmp_path)
    assert device.newDefaultLibrary() is None
    (tmp_path / "default.metal").write_text(text)
    assert device.newDefaultLibrary().functionNames() == ("f",)


def test_function_constants(device, library, queue):
    values = Metal.MTLFunctionConstantValues.alloc().init()
    values.setConstantValue_type_atIndex_(struct.pack("f", 1.5), Metal.MTLDataTypeFloat, 0)
    values.setConstantValue_type_withName_(ctypes.c_bool(True), Metal.MTLDataTypeBool, "doubled")
    values.setConstantValue_type_atIndex_(np.int32([1, 2, 3]), Metal.MTLDataTypeInt3, 5)
    values.setConstantValue_type_atIndex_(b"\1", Metal.MTLDataTypeBool, 77)  # of no one here
    x = buffer_of(device, np.float32([1, 2]))
    for _ in range(2):
        function, error = library.newFunctionWithName_constantValues_error_("scale", values, None)
        assert error is None
        state, _ = device.newComputePipelineStateWithFunction_error_(function, None)
        run(encode(queue.commandBuffer(), state, [x], (2, 1, 1)))
        values.reset()
        values.setConstantValues_type_withRange_(np.float32([2]), Metal.MTLDataTypeFloat, (0, 1))
        values.setConstantValue_type_atIndex_(b"\0", Metal.MTLDataTypeBool, 3)
    assert array_of(x).tolist() == [(1 * 3 + 3) * 2, (2 * 3 + 3) * 2]
    function, error = library.newFunctionWithName_constantValues_error_("none", values, None)
    assert function is None
    assert error.code() == Metal.MTLLibraryErrorFunctionNotFound
    with pytest.raises(Metal.FailedAssertion, match="not a valid type"):
        values.setConstantValue_type_atIndex_(b"\0" * 16, 1, 0)
    with pytest.raises(ValueError, match="4 bytes, got 2"):
        values.setConstantValue_type_atIndex_(b"\0\0", Metal.MTLDataTypeInt, 0)
