"""metalloid.compat.Metal: a software Metal device by PyObjC's names."""

import ctypes
import gc
import mmap
import struct
import threading
import time

import numpy as np
import pytest

from metalloid.compat import Metal

KERNELS = """
#include <metal_stdlib>
using namespace metal;

constant float factor [[function_constant(0)]];
constant bool doubled [[function_constant(3)]];
constant int3 shift [[function_constant(5)]];
constant bool has_shift = is_function_constant_defined(shift);

kernel void where_am_i(device uint4 *out [[buffer(0)]], uint3 id [[thread_position_in_grid]],
                       uint3 size [[threads_per_grid]], uint lane [[thread_index_in_threadgroup]]) {
    out[(id.z * size.y + id.y) * size.x + id.x] = uint4(id, lane);
}
kernel void saxpy(device float *y [[buffer(4)]], device const float *x [[buffer(1)]],
                  constant float &a [[buffer(30)]], uint id [[thread_position_in_grid]]) {
    y[id] = fma(a, x[id], y[id]);
}
kernel void scale(device float *x [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    x[id] = x[id] * factor * (doubled ? 2 : 1) + (has_shift ? shift.z : 0);
}
kernel void reversed(device int *x [[buffer(0)]], threadgroup int *row [[threadgroup(0)]],
                     threadgroup char *other [[threadgroup(1)]],
                     uint id [[thread_position_in_grid]], uint i [[thread_position_in_threadgroup]],
                     uint n [[threads_per_threadgroup]]) {
    row[i] = x[id];
    other[i] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[id] = row[n - 1 - i] + other[i];
}
kernel void add_one(device float *x [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    x[id] += 1;
}
struct rows { device float *data; uint count; };
kernel void through(constant rows &r [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    if (id < r.count) r.data[id] = id;
}
kernel void astray(device float *x [[buffer(0)]], constant ulong &where [[buffer(1)]]) {
    x[where] = 1;
}
kernel void slow(device uint *out [[buffer(0)]], constant uint &rounds [[buffer(1)]]) {
    uint x = rounds;
    for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u + (x >> 7);
    *out = x | 1;
}
#ifdef __FAST_MATH__
kernel void is_fast() {}
#endif
"""
SHARED = Metal.MTLResourceStorageModeShared
ROUNDS = 100_000_000  # of `slow`: some tenths of a second


@pytest.fixture(scope="module")
def device():
    return Metal.MTLCreateSystemDefaultDevice()


@pytest.fixture(scope="module")
def library(device):
    library, error = device.newLibraryWithSource_options_error_(KERNELS, None, None)
    assert error is None
    return library


@pytest.fixture(scope="module")
def queue(device):
    return device.newCommandQueue()


@pytest.fixture(scope="module")
def pipeline(device, library):
    def made(name):
        function = library.newFunctionWithName_(name)
        state, error = device.newComputePipelineStateWithFunction_error_(function, None)
        assert error is None
        return state

    return made


def buffer_of(device, array):
    return device.newBufferWithBytes_length_options_(array, array.nbytes, SHARED)


def array_of(buffer, dtype=np.float32):
    return np.frombuffer(buffer.contents().as_buffer(buffer.length()), dtype)


def encode(commands, state, buffers, threads, group=(1, 1, 1)):
    """A launch, encoded: buffers by index."""
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(state)
    for index, buffer in enumerate(buffers):
        if isinstance(buffer, bytes):
            encoder.setBytes_length_atIndex_(buffer, len(buffer), index)
        else:
            encoder.setBuffer_offset_atIndex_(buffer, 0, index)
    encoder.dispatchThreads_threadsPerThreadgroup_(threads, group)
    encoder.endEncoding()
    return commands


def run(commands):
    commands.commit()
    commands.waitUntilCompleted()
    return commands


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
    textured, _ = device.newLibraryWithSource_options_error_(
        "kernel void f(texture2d<float> t) {}".replace("texture2d", "metal::texture2d"), None, None
    )
    function = textured.newFunctionWithName_("f")
    state, error = device.newComputePipelineStateWithFunction_error_(function, None)
    assert state is None
    assert "textures" in error.localizedDescription()


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
    found = []
    device.newLibraryWithSource_options_completionHandler_(
        KERNELS, None, lambda *results: found.append(results)
    )
    device.newComputePipelineStateWithFunction_completionHandler_(
        found[0][0].newFunctionWithName_("add_one"), lambda *results: found.append(results)
    )
    assert found[1][0].maxTotalThreadsPerThreadgroup() == 1024
    assert found[0][1] is found[1][1] is None


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


# -- buffers


def test_buffers(device):
    buffer = device.newBufferWithLength_options_(10, SHARED)
    assert buffer.length() == 10
    assert buffer.allocatedSize() >= 10
    view = buffer.contents().as_buffer(10)
    assert (view.format, view.shape, view.readonly) == ("B", (10,), False)
    assert list(view) == [0] * 10
    view[3] = 7
    ctypes.c_uint16.from_buffer(view, 4).value = 513
    assert bytes(buffer.contents().as_buffer(6)) == b"\0\0\0\7\1\2"
    assert buffer.storageMode() == Metal.MTLStorageModeShared
    assert buffer.resourceOptions() == 0
    assert buffer.gpuAddress() == ctypes.addressof(ctypes.c_char.from_buffer(view))
    assert buffer.setPurgeableState_(Metal.MTLPurgeableStateEmpty) == 2
    with pytest.raises(ValueError, match="10 bytes, not 11"):
        buffer.contents().as_buffer(11)


@pytest.mark.parametrize(
    "contents",
    [b"abcd", bytearray(b"abcd"), np.frombuffer(b"abcd", np.uint16), (ctypes.c_char * 4)(*b"abcd")],
)
def test_buffers_of_bytes_are_copies(device, contents):
    buffer = device.newBufferWithBytes_length_options_(contents, 3, SHARED)
    assert bytes(buffer.contents().as_buffer(3)) == b"abc"
    buffer.contents().as_buffer(3)[0] = 0
    assert bytes(memoryview(contents))[:1] == b"a"


def test_buffers_that_cannot_be(device):
    assert device.newBufferWithLength_options_(0, SHARED) is None
    assert device.newBufferWithLength_options_(2**62, SHARED) is None
    with pytest.raises(ValueError, match="8 bytes, got 4"):
        device.newBufferWithBytes_length_options_(b"abcd", 8, SHARED)
    for wrong in ("abcd", [1.0], None, 3):
        with pytest.raises(ValueError, match="pointer"):
            device.newBufferWithBytes_length_options_(wrong, 1, SHARED)
    with pytest.raises(ValueError, match="unsigned long long"):
        device.newBufferWithLength_options_(-1, SHARED)


def test_arrays_with_gaps_are_put_together(device):
    table = np.arange(8, dtype=np.float32).reshape(4, 2)[::2].T
    buffer = device.newBufferWithBytes_length_options_(table, table.nbytes, SHARED)
    assert array_of(buffer).tolist() == table.reshape(-1).tolist()


def test_private_and_managed_buffers(device):
    private = device.newBufferWithLength_options_(16, Metal.MTLResourceStorageModePrivate)
    assert private.contents() is None
    managed = device.newBufferWithLength_options_(16, Metal.MTLResourceStorageModeManaged)
    managed.didModifyRange_((0, 16))
    with pytest.raises(Metal.FailedAssertion, match="16 bytes"):
        managed.didModifyRange_((1, 16))
    with pytest.raises(Metal.FailedAssertion, match="Managed"):
        private.didModifyRange_((0, 1))


def test_memory_is_counted(device):
    gc.collect()
    before = device.currentAllocatedSize()
    buffer = device.newBufferWithLength_options_(2**20, SHARED)
    assert device.currentAllocatedSize() == before + 2**20
    del buffer
    assert device.currentAllocatedSize() == before


def test_views_keep_memory(device):
    view = array_of(buffer_of(device, np.float32([1, 2, 3])))
    others = [buffer_of(device, np.full(3, -1, np.float32)) for _ in range(20)]
    assert view.tolist() == [1, 2, 3]
    del others


def test_memory_of_the_host(device, pipeline, queue):
    memory, released = mmap.mmap(-1, mmap.PAGESIZE), []
    x = device.newBufferWithBytesNoCopy_length_options_deallocator_(
        memory, mmap.PAGESIZE, SHARED, lambda pointer, length: released.append((pointer, length))
    )
    commands = queue.commandBuffer()
    encode(
        commands,
        pipeline("slow"),
        [device.newBufferWithLength_options_(4, SHARED), struct.pack("I", ROUNDS)],
        (1, 1, 1),
    )
    encode(commands, pipeline("add_one"), [x], (1024, 1, 1), (32, 1, 1))
    del x
    commands.commit()
    assert released == []  # not before the launch has ended
    commands.waitUntilCompleted()
    assert released == [(memory, mmap.PAGESIZE)]
    assert (np.frombuffer(memory, np.float32) == 1).all()
    selector = device.newBufferWithBytesNoCopy_length_options_deallocator_
    with pytest.raises(Metal.FailedAssertion, match="length 0x64 is not"):
        selector(memory, 100, SHARED, None)
    with pytest.raises(Metal.FailedAssertion, match="pointer 0x"):
        selector(np.zeros(2 * mmap.PAGESIZE, np.uint8)[1:], mmap.PAGESIZE, SHARED, None)


# -- launches


@pytest.mark.parametrize(
    ("threads", "group"),
    [((100, 1, 1), (32, 1, 1)), ((5, 3, 2), (4, 2, 1)), ((7, 1, 1), (1, 1, 1))],
)
def test_grids_of_threads(device, pipeline, queue, threads, group):
    count = threads[0] * threads[1] * threads[2]
    out = device.newBufferWithLength_options_((count + 1) * 16, SHARED)
    state = pipeline("where_am_i")
    run(
        encode(
            queue.commandBuffer(),
            state,
            [out],
            Metal.MTLSizeMake(*threads),
            Metal.MTLSizeMake(*group),
        )
    )
    rows = array_of(out, np.uint32).reshape(-1, 4)
    z, y, x = np.unravel_index(np.arange(count), threads[::-1])
    assert (rows[:count, :3] == np.stack([x, y, z], 1)).all()
    sizes = [
        np.minimum(g, t - at // g * g) for g, t, at in zip(group, threads, (x, y, z), strict=True)
    ]
    lane = x % group[0] + sizes[0] * (y % group[1] + sizes[1] * (z % group[2]))
    assert (rows[:count, 3] == lane).all()
    assert not rows[count].any()


def test_grids_of_threadgroups(device, pipeline, queue):
    x = device.newBufferWithLength_options_(100 * 4, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("add_one"))
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    encoder.dispatchThreadgroups_threadsPerThreadgroup_(Metal.MTLSizeMake(3, 1, 1), (25, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert array_of(x).tolist() == [1] * 75 + [0] * 25


def test_threads_beyond_small_buffers_do_no_harm(device, pipeline, queue):
    """As on Apple's GPUs: the guide's own load runs 1024 threads for one number."""
    buffers = [device.newBufferWithLength_options_(4, SHARED) for _ in range(20)]
    for x in buffers:
        run(encode(queue.commandBuffer(), pipeline("add_one"), [x], (1024, 1, 1), (32, 1, 1)))
    assert all(array_of(x).tolist() == [1] for x in buffers)


def test_arguments_by_index(device, pipeline, queue, rng):
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    both = buffer_of(device, np.concatenate([x, y]))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoderWithDispatchType_(Metal.MTLDispatchTypeConcurrent)
    assert encoder.dispatchType() == Metal.MTLDispatchTypeConcurrent
    assert encoder.commandBuffer() is commands
    encoder.setComputePipelineState_(pipeline("saxpy"))
    encoder.setBuffers_offsets_withRange_([both, None, None, both], [0, 0, 0, 16], (1, 4))
    encoder.setBufferOffset_atIndex_(4000, 4)
    encoder.setBytes_length_atIndex_((ctypes.c_float * 1)(2.5), 4, 30)
    encoder.dispatchThreads_threadsPerThreadgroup_((1000, 1, 1), (256, 1, 1))
    # What is set later does not reach back, and what is not set again stays.
    encoder.setBytes_length_atIndex_(np.float32([-2.5]), 4, 30)
    encoder.memoryBarrierWithScope_(Metal.MTLBarrierScopeBuffers)
    encoder.dispatchThreads_threadsPerThreadgroup_((500, 1, 1), (256, 1, 1))
    encoder.endEncoding()
    run(commands)
    once = (x.astype(np.float64) * 2.5 + y).astype(np.float32)
    twice = (x.astype(np.float64) * -2.5 + once).astype(np.float32)
    assert (array_of(both)[1000:] == np.where(np.arange(1000) < 500, twice, once)).all()
    assert (array_of(both)[:1000] == x).all()


def test_threadgroup_memory(device, pipeline, queue):
    x = buffer_of(device, np.arange(64, dtype=np.int32))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("reversed"))
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    encoder.setThreadgroupMemoryLength_atIndex_(64, 0)
    dispatch = encoder.dispatchThreads_threadsPerThreadgroup_
    with pytest.raises(
        Metal.FailedAssertion, match=r"missing Threadgroup Memory binding at index 1 for other\[0\]"
    ):
        dispatch((64, 1, 1), (16, 1, 1))
    for length, words in ((20, "multiple of 16"), (32784, "exceeds the limit")):
        with pytest.raises(Metal.FailedAssertion, match=words):
            encoder.setThreadgroupMemoryLength_atIndex_(length, 1)
    encoder.setThreadgroupMemoryLength_atIndex_(16, 1)
    dispatch((64, 1, 1), (16, 1, 1))
    encoder.endEncoding()
    run(commands)
    wanted = np.arange(64).reshape(4, 16)[:, ::-1].reshape(-1) + 1
    assert (array_of(x, np.int32) == wanted).all()


def test_pointers_in_memory(device, pipeline, queue):
    data = device.newBufferWithLength_options_(40, SHARED)
    rows = buffer_of(device, np.array([(data.gpuAddress(), 10, 0)], "u8,u4,u4"))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("through"))
    encoder.setBuffer_offset_atIndex_(rows, 0, 0)
    encoder.useResource_usage_(data, Metal.MTLResourceUsageWrite)
    encoder.useResources_count_usage_([data], 1, Metal.MTLResourceUsageRead)
    encoder.dispatchThreads_threadsPerThreadgroup_((16, 1, 1), (16, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert array_of(data).tolist() == list(range(10))


def test_blits(device, queue):
    source, target = (
        buffer_of(device, np.arange(100, dtype=np.uint8)),
        buffer_of(device, np.zeros(50, np.uint8)),
    )
    commands = queue.commandBuffer()
    encoder = commands.blitCommandEncoder()
    copy = encoder.copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size_
    copy(source, 10, target, 5, 20)
    encoder.fillBuffer_range_value_(target, (40, 10), 255)
    encoder.synchronizeResource_(target)
    for wrong in (
        (source, 90, target, 0, 20),
        (source, 0, target, 40, 20),
        (source, 0, target, 0, 0),
    ):
        with pytest.raises(Metal.FailedAssertion, match="must lie in"):
            copy(*wrong)
    with pytest.raises(ValueError, match="unsigned char"):
        encoder.fillBuffer_range_value_(target, (0, 1), 256)
    encoder.endEncoding()
    run(commands)
    wanted = np.zeros(50, np.uint8)
    wanted[5:25], wanted[40:] = np.arange(10, 30), 255
    assert (array_of(target, np.uint8) == wanted).all()


# -- what an encoder refuses


def test_dispatches_that_cannot_be(device, pipeline, queue):
    x = device.newBufferWithLength_options_(4, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    dispatch = encoder.dispatchThreads_threadsPerThreadgroup_
    one = Metal.MTLSizeMake(1, 1, 1)

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words) as caught:
            call(*arguments)
        assert str(caught.value).startswith("-[MTLComputeCommandEncoder ")

    refuses("pipeline state must be set", dispatch, one, one)
    refuses("must not be nil", encoder.setComputePipelineState_, None)
    encoder.setComputePipelineState_(pipeline("where_am_i"))
    refuses(
        r"Compute Function\(where_am_i\): missing Buffer binding at index 0 for out\[0\]\.",
        dispatch,
        one,
        one,
    )
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    refuses(r"space for 4 bytes, but argument has a length\(16\)", dispatch, one, one)
    refuses(r"2048 threads, which must be <= 1024", dispatch, one, (2048, 1, 1))
    refuses("no threads", dispatch, (0, 1, 1), one)
    refuses("no threads", encoder.dispatchThreadgroups_threadsPerThreadgroup_, one, (1, 0, 1))
    refuses(r"index\(31\) must be < 31", encoder.setBuffer_offset_atIndex_, x, 0, 31)
    refuses(r"index\(31\) must be < 31", encoder.setBytes_length_atIndex_, b"abcd", 4, 31)
    refuses(r"index\(31\) must be < 31", encoder.setThreadgroupMemoryLength_atIndex_, 16, 31)
    refuses(
        r"offset\(4\) must be < \[buffer length\]\(4\)", encoder.setBuffer_offset_atIndex_, x, 4, 0
    )
    refuses(r"no buffer at index\(3\)", encoder.setBufferOffset_atIndex_, 0, 3)
    refuses(
        r"length\(5000\) must be <= 4096", encoder.setBytes_length_atIndex_, bytes(5000), 5000, 0
    )
    refuses(r"length\(0\)", encoder.setBytes_length_atIndex_, b"", 0, 0)
    encoder.setBuffer_offset_atIndex_(None, 0, 0)
    refuses("missing Buffer binding", dispatch, one, one)
    encoder.setComputePipelineState_(pipeline("add_one"))
    encoder.setBuffer_offset_atIndex_(device.newBufferWithLength_options_(16, SHARED), 2, 0)
    refuses(r"offset\(2\) for x\[0\] must be a multiple of 4", dispatch, one, one)
    for call, arguments in (
        (encoder.setComputePipelineState_, ["add_one"]),
        (encoder.setBuffer_offset_atIndex_, [b"abcd", 0, 0]),
        (encoder.setBuffer_offset_atIndex_, [x, "0", 0]),
        (encoder.setBytes_length_atIndex_, [3, 4, 0]),
        (encoder.useResource_usage_, [None, 1]),
        (dispatch, [1, 1]),
        (dispatch, [(1, 1), one]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - several of PyObjC's own
            call(*arguments)
    encoder.endEncoding()
    refuses("endEncoding", dispatch, one, one)
    refuses("endEncoding", encoder.setBuffer_offset_atIndex_, x, 0, 0)
    refuses("endEncoding", encoder.endEncoding)


def test_debug_groups_and_fences(device, queue):
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    fence = device.newFence()
    encoder.pushDebugGroup_("inner")
    encoder.insertDebugSignpost_("here")
    encoder.popDebugGroup()
    encoder.updateFence_(fence)
    encoder.waitForFence_(fence)
    encoder.memoryBarrierWithResources_count_([device.newBufferWithLength_options_(4, SHARED)], 1)
    with pytest.raises(Metal.FailedAssertion, match="without pushDebugGroup"):
        encoder.popDebugGroup()
    with pytest.raises(ValueError, match="MTLFence"):
        encoder.waitForFence_(None)
    encoder.endEncoding()
    commands.pushDebugGroup_("outer")
    commands.popDebugGroup()
    with pytest.raises(Metal.FailedAssertion, match="without pushDebugGroup"):
        commands.popDebugGroup()
    queue.insertDebugCaptureBoundary()


# -- command buffers


def slow_commands(device, pipeline, commands):
    out = device.newBufferWithLength_options_(4, SHARED)
    encode(commands, pipeline("slow"), [out, struct.pack("I", ROUNDS)], (1, 1, 1))
    return out


def test_the_life_of_a_command_buffer(device, pipeline, queue):
    commands = queue.commandBuffer()
    assert commands.commandQueue() is queue
    assert commands.retainedReferences() is True
    assert queue.commandBufferWithUnretainedReferences().retainedReferences() is False
    assert commands.status() == Metal.MTLCommandBufferStatusNotEnqueued
    out = slow_commands(device, pipeline, commands)
    commands.enqueue()
    assert commands.status() == Metal.MTLCommandBufferStatusEnqueued
    assert (commands.GPUStartTime(), commands.GPUEndTime(), commands.error()) == (0, 0, None)
    called = []
    commands.addScheduledHandler_(lambda c: called.append("scheduled"))
    for name in ("first", "second"):
        commands.addCompletedHandler_(lambda c, name=name: called.append((name, c.status())))
    commands.commit()
    commands.waitUntilScheduled()
    assert called == ["scheduled"]
    assert commands.status() == Metal.MTLCommandBufferStatusScheduled
    assert array_of(out, np.uint32)[0] == 0
    commands.waitUntilCompleted()
    done = Metal.MTLCommandBufferStatusCompleted
    assert called[1:] == [("first", done), ("second", done)]
    assert (commands.status(), commands.error()) == (done, None)
    assert array_of(out, np.uint32)[0] & 1
    assert 0 < commands.GPUStartTime() < commands.GPUEndTime() <= time.monotonic() + 0.01
    assert commands.kernelStartTime() <= commands.kernelEndTime()
    commands.waitUntilCompleted()


def test_status_is_known_without_waiting(device, pipeline, queue):
    commands = queue.commandBuffer()
    slow_commands(device, pipeline, commands)
    commands.commit()
    deadline = time.monotonic() + 30
    while commands.status() != Metal.MTLCommandBufferStatusCompleted:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert commands.GPUEndTime() > 0


def test_times_do_not_overlap(device, pipeline, queue):
    all_commands = [queue.commandBuffer() for _ in range(3)]
    for commands in all_commands:
        slow_commands(device, pipeline, commands)
        commands.commit()
    for commands in all_commands:
        commands.waitUntilCompleted()
    times = [t for c in all_commands for t in (c.GPUStartTime(), c.GPUEndTime())]
    assert times == sorted(times)


def test_what_a_command_buffer_refuses(device, pipeline, queue):
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words) as caught:
            call(*arguments)
        assert str(caught.value).startswith("-[MTLCommandBuffer ")

    refuses("already encoding", commands.computeCommandEncoder)
    refuses("already encoding", commands.blitCommandEncoder)
    refuses("already encoding", commands.encodeSignalEvent_value_, device.newEvent(), 1)
    refuses("uncommitted encoder", commands.commit)
    refuses("has not been committed", commands.waitUntilCompleted)
    encoder.endEncoding()
    run(commands)
    refuses("commit an already committed command buffer", commands.commit)
    refuses("place in the queue", commands.enqueue)
    refuses("committed", commands.computeCommandEncoder)
    refuses("after commit", commands.addCompletedHandler_, print)
    refuses("after commit", commands.addScheduledHandler_, print)


def test_command_buffers_run_in_the_order_of_enqueueing(device, queue):
    target = buffer_of(device, np.zeros(1, np.uint8))
    first, second = queue.commandBuffer(), queue.commandBuffer()
    for value, commands in ((1, first), (2, second)):
        encoder = commands.blitCommandEncoder()
        encoder.fillBuffer_range_value_(target, (0, 1), value)
        encoder.endEncoding()
    first.enqueue()
    second.commit()
    time.sleep(0.02)
    assert second.status() == Metal.MTLCommandBufferStatusCommitted
    assert array_of(target, np.uint8)[0] == 0
    first.commit()
    second.waitUntilCompleted()
    assert array_of(target, np.uint8)[0] == 2


def test_many_launches_in_many_command_buffers(device, pipeline, queue):
    x, state = device.newBufferWithLength_options_(4000, SHARED), pipeline("add_one")
    for _ in range(20):
        commands = queue.commandBuffer()
        for _ in range(10):
            encode(commands, state, [x], (1000, 1, 1), (100, 1, 1))
        commands.commit()
    commands.waitUntilCompleted()
    assert (array_of(x) == 200).all()


def test_a_failing_launch(device, pipeline, queue):
    x = device.newBufferWithLength_options_(4, SHARED)
    commands = encode(
        queue.commandBuffer(), pipeline("astray"), [x, struct.pack("Q", 2**60)], (1, 1, 1)
    )
    seen = []
    commands.addCompletedHandler_(lambda c: seen.append(c.error().code()))
    run(commands)
    assert commands.status() == Metal.MTLCommandBufferStatusError
    error = commands.error()
    assert error.domain() == Metal.MTLCommandBufferErrorDomain
    assert error.code() == Metal.MTLCommandBufferErrorPageFault == seen[0]
    assert "astray" in error.localizedDescription()
    run(encode(queue.commandBuffer(), pipeline("add_one"), [x], (1, 1, 1)))
    assert array_of(x)[0] == 1


def test_required_threadgroups(device, queue):
    source = """[[kernel, required_threads_per_threadgroup(8)]] void f(device uint *x,
        uint id [[thread_position_in_grid]]) { x[id] = id; }"""
    library, _ = device.newLibraryWithSource_options_error_(source, None, None)
    state, _ = device.newComputePipelineStateWithFunction_error_(
        library.newFunctionWithName_("f"), None
    )
    x = device.newBufferWithLength_options_(64, SHARED)
    commands = queue.commandBuffer()
    with pytest.raises(Metal.FailedAssertion, match=r"must be \(8, 1, 1\)"):
        encode(commands, state, [x], (16, 1, 1), (16, 1, 1))
    commands = run(encode(queue.commandBuffer(), state, [x], (16, 1, 1), (8, 1, 1)))
    assert array_of(x, np.uint32).tolist() == list(range(16))


def test_forgotten_command_buffers_run(device, pipeline, library):
    gate, x = device.newSharedEvent(), device.newBufferWithLength_options_(4, SHARED)
    queue = device.newCommandQueue()
    commands = queue.commandBuffer()
    commands.encodeWaitForEvent_value_(gate, 1)
    encode(commands, pipeline("add_one"), [x], (1, 1, 1)).commit()
    del commands, queue
    gc.collect()
    gate.setSignaledValue_(1)
    run(device.newCommandQueue().commandBuffer())
    deadline = time.monotonic() + 30
    while array_of(x)[0] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)


# -- events


def filling(queue, target, value):
    commands = queue.commandBuffer()
    encoder = commands.blitCommandEncoder()
    encoder.fillBuffer_range_value_(target, (0, 1), value)
    encoder.endEncoding()
    return commands


def test_queues_wait_for_each_other(device):
    target, event = buffer_of(device, np.zeros(1, np.uint8)), device.newEvent()
    one, other = device.newCommandQueue(), device.newCommandQueueWithMaxCommandBufferCount_(4)
    waiting = other.commandBuffer()
    waiting.encodeWaitForEvent_value_(event, 3)
    encoder = waiting.blitCommandEncoder()
    encoder.fillBuffer_range_value_(target, (0, 1), 2)
    encoder.endEncoding()
    waiting.commit()
    for value in (2, 3):
        assert waiting.status() == Metal.MTLCommandBufferStatusCommitted
        commands = filling(one, target, 1)
        commands.encodeSignalEvent_value_(event, value)
        commands.commit()
    waiting.waitUntilCompleted()
    assert array_of(target, np.uint8)[0] == 2


def test_the_host_and_queues_wait_for_each_other(device, pipeline):
    queue, event = device.newCommandQueue(), device.newSharedEvent()
    assert event.signaledValue() == 0
    commands = queue.commandBuffer()
    commands.encodeWaitForEvent_value_(event, 1)
    out = slow_commands(device, pipeline, commands)
    commands.encodeSignalEvent_value_(event, 2)
    commands.commit()
    told = threading.Event()
    event.notifyListener_atValue_block_(
        Metal.MTLSharedEventListener.alloc().init(), 2, lambda e, value: told.set()
    )
    assert event.waitUntilSignaledValue_timeoutMS_(1, 20) is False
    event.setSignaledValue_(1)
    assert event.signaledValue() == 1  # the queue is at it
    assert array_of(out, np.uint32)[0] == 0
    assert event.waitUntilSignaledValue_timeoutMS_(2, 30_000) is True
    assert array_of(out, np.uint32)[0] & 1
    assert event.signaledValue() == 2
    assert told.wait(30)
    commands.waitUntilCompleted()


def test_events_are_checked(device, queue):
    commands = queue.commandBuffer()
    for wrong in (None, 3, device.newFence()):
        with pytest.raises(ValueError, match="MTLEvent"):
            commands.encodeSignalEvent_value_(wrong, 1)
    with pytest.raises(ValueError, match="unsigned long long"):
        commands.encodeWaitForEvent_value_(device.newEvent(), -1)
    with pytest.raises(Metal.FailedAssertion, match="count"):
        device.newCommandQueueWithMaxCommandBufferCount_(0)
