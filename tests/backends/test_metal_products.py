"""Products by Metal Performance Shaders, and LAPACK on the GPU's memory, over the software device.

The binding's data: as in tests/compat/test_metal_binding.py, of the framework
pyobjc-framework-MetalPerformanceShaders, by METALLOID_PYOBJC_MPS.
"""

import contextlib
import os
import types
from pathlib import Path

import numpy as np
import pytest
from metal_binding import Checked, CheckedModule, metadata

import metalloid as mtl
from metalloid.arrays.ir import primitives
from metalloid.arrays.ir.primitives import Implementation
from metalloid.backends.metal.pyobjc import binding
from metalloid.backends.metal.runtime.device import MetalDevice
from metalloid.compat import Metal, MetalPerformanceShaders
from metalloid.linalg.primitives import by_host

#: Of ordinary classes, of which the binding's data say nothing: from Apple's MPSMatrix.h and
#: MPSMatrixMultiplication.h.
OF_CLASSES = {
    "alloc", "batchSize", "batchStart", "columns", "data", "dataType",
    "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:",
    "init", "initWithBuffer:descriptor:", "initWithBuffer:offset:descriptor:",
    "initWithDevice:resultRows:resultColumns:interiorColumns:", "matrices", "matrixBytes",
    "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:",
    "matrixDescriptorWithRows:columns:rowBytes:dataType:", "new", "offset", "rowBytes", "rows",
    "setBatchSize:", "setBatchStart:", "setColumns:", "setDataType:", "setRowBytes:", "setRows:",
}  # fmt: skip
OWN_NAMES = {"array", "dtype", "multiply"}


@pytest.fixture(autouse=True)
def _by_mps():
    with mtl.config.scope(products="mps"):
        yield


@pytest.fixture
def encoded(monkeypatch):
    """Shapes that were multiplied, and which factors were read transposed."""
    products, product = [], MetalPerformanceShaders.MPSMatrixMultiplication
    encode = product.encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_

    def note(self, *matrices):
        products.append((self._shape, self.batchSize(), self._transposed))
        encode(self, *matrices)

    monkeypatch.setattr(product, "encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_", note)
    return products


def agrees(actual, a, b):
    """Within the error of sums in float32, and of the result's type."""
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    magnitude = np.matmul(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    error = (a.shape[-1] + 2) * 2.0**-24 * magnitude + np.finfo(actual.dtype).eps * np.abs(expected)
    assert actual.shape == expected.shape
    assert (np.abs(actual - expected) <= error).all()


SHAPES = [
    ((5, 7), (7, 3), [((5, 3, 7), 1)]),
    ((4, 5, 7), (7, 3), [((20, 3, 7), 1)]),  # one matrix: one product
    ((4, 5, 7), (4, 7, 3), [((5, 3, 7), 4)]),
    ((2, 1, 5, 7), (3, 7, 3), [((5, 3, 7), 6)]),
    ((7,), (7, 3), [((1, 3, 7), 1)]),
    ((5, 7), (7,), [((5, 1, 7), 1)]),
    ((5, 0), (0, 3), []),
    ((0, 7), (7, 3), []),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("left", "right", "expected"), SHAPES)
def test_shapes(metal, rng, encoded, dtype, left, right, expected):
    a, b = (rng.normal(size=shape).astype(dtype) for shape in (left, right))
    x, y = (mtl.asarray(value, device=metal) for value in (a, b))
    agrees(np.asarray(x @ y), a, b)
    assert [(shape, count) for shape, count, _ in encoded] == expected


def test_factors_that_lie_otherwise(metal, rng, encoded):
    a = rng.random((6, 8), np.float32)
    x = mtl.asarray(a, device=metal)
    agrees(np.asarray(x.T @ x), a.T, a)
    agrees(np.asarray(x @ x.T), a, a.T)
    agrees(np.asarray(x[1:4, 2:5] @ x[:3]), a[1:4, 2:5], a[:3])
    agrees(np.asarray(x[:, ::2] @ x[:4]), a[:, ::2], a[:4])  # has to be copied
    agrees(np.asarray(x[::-1, :6] @ x), a[::-1, :6], a)
    transposed = [(True, False), (False, True), (False, False), (False, False), (False, False)]
    assert [each[2] for each in encoded] == transposed
    b = rng.random((2, 3, 4, 5), np.float32)
    y = mtl.permute_dims(mtl.asarray(b, device=metal), (2, 0, 1, 3))
    agrees(
        np.asarray(y @ mtl.matrix_transpose(y)), b.transpose(2, 0, 1, 3), b.transpose(2, 0, 3, 1)
    )


def test_products_among_other_kernels(metal, rng):
    """They take their turn in the batch, and nothing else is computed in them."""
    a = rng.random((20, 20), np.float32)
    x = mtl.asarray(a, device=metal)
    y = mtl.exp(x + 1) @ x * 2 - 1
    assert "matmul, a function of its own" in mtl.explain(y)
    for _ in range(3):
        y = y @ x / 20
    expected = np.exp(a.astype(np.float64) + 1) @ a * 2 - 1
    for _ in range(3):
        expected = expected @ a / 20
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5)


def test_other_types_and_devices_are_multiplied_as_before(metal, encoded):
    for dtype in (mtl.int32, mtl.bfloat16, mtl.complex64):
        x = mtl.ones((3, 3), dtype=dtype, device=metal)
        assert (np.asarray(x @ x) == 3).all()
    x = mtl.ones((3, 3), device=mtl.Device("cpu"))
    assert (np.asarray(x @ x) == 3).all()
    assert encoded == []


def test_it_is_not_installed(metal, monkeypatch):
    lonely = types.ModuleType("Metal")
    lonely.__dict__.update({name: getattr(Metal, name) for name in Metal.__all__})
    opened = binding.Binding(lonely, True, contextlib.nullcontext)
    device = MetalDevice(metal.gpu, 0, opened)
    x = mtl.ones((3, 3), device=device)
    with pytest.raises(
        mtl.DeviceUnavailable, match=r"Install pyobjc-framework-MetalPerformanceShaders"
    ):
        _ = x @ x
    monkeypatch.setattr(MetalPerformanceShaders, "MPSSupportsMTLDevice", lambda device: False)
    old = MetalDevice(metal.gpu, 0, binding.Binding(Metal, True, contextlib.nullcontext))
    with pytest.raises(mtl.DeviceUnavailable, match="does not support Metal Performance Shaders"):
        _ = mtl.ones((3, 3), device=old) @ mtl.ones((3, 3), device=old)


# -- the stand-in


def test_it_is_strict(metal):
    gpu, MPS = metal.gpu, MetalPerformanceShaders
    describe = MPS.MPSMatrixDescriptor.matrixDescriptorWithRows_columns_matrices_rowBytes_matrixBytes_dataType_
    for given, what in (
        (
            (2, 4, 1, 12, 24, MPS.MPSDataTypeFloat32),
            r"rowBytes\(12\) must be a multiple of 4, >= 16",
        ),
        ((2, 4, 1, 18, 36, MPS.MPSDataTypeFloat32), r"rowBytes\(18\)"),
        ((2, 4, 3, 16, 16, MPS.MPSDataTypeFloat32), r"matrixBytes\(16\).* >= 32"),
        ((2, 4, 3, 16, 40, MPS.MPSDataTypeFloat32), "must be a multiple of rowBytes"),
        ((2, 0, 1, 16, 32, MPS.MPSDataTypeFloat32), "have no elements"),
        ((2, 4, 1, 16, 32, 7), r"dataType\(7\)"),
    ):
        with pytest.raises(Metal.FailedAssertion, match=what):
            describe(*given)
    shape = describe(2, 4, 2, 16, 32, MPS.MPSDataTypeFloat32)
    buffer = gpu.newBufferWithLength_options_(64, 0)
    init = MPS.MPSMatrix.alloc().initWithBuffer_offset_descriptor_
    with pytest.raises(Metal.FailedAssertion, match="the matrices end at 68"):
        init(buffer, 4, shape)
    small = describe(1, 1, 1, 4, 4, MPS.MPSDataTypeFloat32)
    with pytest.raises(Metal.FailedAssertion, match=r"offset\(2\)"):
        init(buffer, 2, small)
    with pytest.raises(ValueError, match="MTLBuffer"):
        init(None, 0, small)
    x = init(buffer, 0, shape)
    product = (
        MPS.MPSMatrixMultiplication.alloc().initWithDevice_resultRows_resultColumns_interiorColumns_
    )
    commands = metal.queue.commandBuffer()
    encode = "encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_"
    with pytest.raises(
        Metal.FailedAssertion, match=r"a matrix of \(2, 4\) is smaller than \(4, 4\)"
    ):
        getattr(product(gpu, 2, 4, 4), encode)(commands, x, x, x)
    halves = MPS.MPSMatrix.alloc().initWithBuffer_descriptor_(
        buffer, describe(4, 4, 1, 8, 32, MPS.MPSDataTypeFloat16)
    )
    with pytest.raises(Metal.FailedAssertion, match="are of different dataType"):
        getattr(product(gpu, 2, 4, 4), encode)(commands, x, halves, x)
    encoder = commands.computeCommandEncoder()
    with pytest.raises(Metal.FailedAssertion, match="A command encoder is already encoding"):
        getattr(product(gpu, 2, 4, 2), encode)(commands, x, x, x)
    encoder.endEncoding()


def test_parts_and_sums_of_matrices(metal, rng):
    """Operations that our own device does not use."""
    MPS, numbers = MetalPerformanceShaders, rng.random((2, 3, 3), np.float32)
    shape = MPS.MPSMatrixDescriptor.matrixDescriptorWithRows_columns_matrices_rowBytes_matrixBytes_dataType_(
        3, 3, 2, 12, 36, MPS.MPSDataTypeFloat32
    )
    buffers = [metal.gpu.newBufferWithBytes_length_options_(numbers, 72, 0) for _ in range(3)]
    x, y, z = (MPS.MPSMatrix.alloc().initWithBuffer_descriptor_(b, shape) for b in buffers)
    product = MPS.MPSMatrixMultiplication.alloc().initWithDevice_transposeLeft_transposeRight_resultRows_resultColumns_interiorColumns_alpha_beta_(
        metal.gpu, True, False, 2, 3, 3, 2.0, 0.5
    )
    product.setBatchStart_(1)
    commands = metal.queue.commandBuffer()
    product.encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_(commands, x, y, z)
    commands.commit()
    commands.waitUntilCompleted()
    expected = numbers.copy()
    expected[1, :2] = (2 * numbers[1].T @ numbers[1] + 0.5 * numbers[1])[:2]
    got = np.frombuffer(z.data().contents().as_buffer(72), np.float32).reshape(2, 3, 3)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# -- with the data of the real binding


@pytest.fixture(scope="module")
def data():
    path = os.environ.get("METALLOID_PYOBJC_MPS")
    if not path:
        pytest.skip("METALLOID_PYOBJC_MPS is missing: the data of MetalPerformanceShaders")
    return metadata(path), Path(path).read_text()


def test_names_are_the_bindings(data):
    (selectors, enums), text = data
    for name in MetalPerformanceShaders.__all__:
        value = getattr(MetalPerformanceShaders, name)
        if isinstance(value, int):
            assert enums[name] == value
        elif isinstance(value, types.FunctionType):
            assert f'"{name}": (b"Z@",)' in text
        else:
            methods = {
                n.replace("_", ":") for n in vars(value) if not n.startswith("_")
            } - OWN_NAMES
            assert methods <= OF_CLASSES | selectors.keys()
    flags = selectors[
        "initWithDevice:transposeLeft:transposeRight:resultRows:resultColumns:interiorColumns:alpha:beta:"
    ]["arguments"]
    assert flags == {3: {"type": b"Z"}, 4: {"type": b"Z"}}


def test_what_the_device_says_is_what_pyobjc_takes(data):
    module = CheckedModule(Metal, *metadata())
    opened = binding.Binding(module, True, contextlib.nullcontext)
    device = MetalDevice(module.MTLCreateSystemDefaultDevice(), 0, opened)
    shaders = CheckedModule(MetalPerformanceShaders, *data[0])
    object.__setattr__(opened, "sibling", lambda name: shaders)
    x = mtl.asarray(np.float32([[1, 2], [3, 4]]), device=device)
    assert np.asarray(x @ x.T).tolist() == [[5, 11], [11, 25]]
    assert isinstance(device.libraries.products._product(False, True, 2, 2, 2, 1), Checked)
    assert shaders.used <= OF_CLASSES | data[0][0].keys()
    assert len(shaders.used) == 7


# -- the host's libraries


def test_lapack_reads_the_gpus_memory_in_place(metal, rng, monkeypatch):
    a = rng.random((5, 5), np.float32)
    x = mtl.asarray(a, device=metal) + 0.0
    mtl.eval(x)
    seen = []

    def note(left, right):
        seen.extend((left, right))
        return np.linalg.solve(left, right)

    table = (Implementation(by_host("solve", note)),)
    monkeypatch.setitem(primitives._implementations, "solve", table)
    y = mtl.linalg.solve(x, x[:, :2])
    z = np.asarray(y)
    np.testing.assert_allclose(z, np.eye(5)[:, :2], atol=1e-4)
    assert np.shares_memory(seen[0], np.asarray(x))
    assert np.shares_memory(seen[1], np.asarray(x))
    held = [metal.heap.holding(each.__array_interface__["data"][0]) for each in (seen[0], z)]
    assert None not in held  # and so is the result, for the next kernel
