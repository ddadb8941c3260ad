"""`metal_kernel`: values, layouts, templates, grids, new outputs, what is compiled when."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.dtypes import SCALARS

DTYPES = {
    "bool": np.bool_, "int8_t": np.int8, "int16_t": np.int16, "int32_t": np.int32,
    "int64_t": np.int64, "uint8_t": np.uint8, "uint16_t": np.uint16, "uint32_t": np.uint32,
    "uint64_t": np.uint64, "float16_t": np.float16, "bfloat16_t": ml_dtypes.bfloat16,
    "float": np.float32, "double": np.float64, "complex64_t": np.complex64,
}  # fmt: skip

#: One type of each width and kind; the others are slow.
FAST = ("bool", "int8_t", "int64_t", "uint16_t", "float16_t", "bfloat16_t", "float", "complex64_t")
EACH_TYPE = pytest.mark.parametrize(
    "type_", [pytest.param(t, marks=[pytest.mark.slow] * (t not in FAST)) for t in DTYPES]
)

COPY = "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];"
COPY_STRIDED = """
    uint i = thread_position_in_grid.x;
    uint location = elem_to_loc(i, x_shape, x_strides, x_ndim);
    y[i] = x[location];
"""


def one_output(source, inputs, *, grid=1, shape=(), dtype=np.float32, **options):
    """The output `y` of a kernel with these inputs."""
    of_the_call = {
        k: options.pop(k) for k in ("template", "threadgroup", "init_value") if k in options
    }
    kernel = mtl.metal_kernel("one", [*inputs], ["y"], source, **options)
    (y,) = kernel(
        inputs=[*inputs.values()], grid=grid, output_shapes=[shape], output_dtypes=[dtype], **of_the_call
    )  # fmt: skip
    assert (y.shape, y.dtype, y.flags.c_contiguous) == (shape, dtype, True)
    return y


def copied(x, source=COPY, **options):
    return one_output(source, {"x": x}, grid=x.size, shape=x.shape, dtype=x.dtype, **options)


# -- values


@EACH_TYPE
@pytest.mark.sample(2)
def test_arrays_of_every_type(type_, rng):
    x = rng.integers(0, 2, (3, 5)).astype(DTYPES[type_])
    assert (copied(x) == x).all()
    every_second = x[:, ::2]
    y = copied(every_second, COPY_STRIDED, ensure_row_contiguous=False)
    assert (y == every_second).all()


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (True, np.bool_), (-3, np.int32), (2**31 - 1, np.int32), (2**31, np.int64),
        (-(2**63), np.int64), (2**64 - 1, np.uint64), (0.1, np.float32), (1e300, np.float32),
        (1 + 2j, np.complex64), (np.float16(0.1), np.float16), (np.float64(0.1), np.float64),
        (np.int8(-3), np.int8), (np.array(7, np.uint16), np.uint16),
        (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16), (mtl.Buffer(np.float32(2)), np.float32),
    ],
)  # fmt: skip
@pytest.mark.sample(3)
def test_numbers_are_references(value, type_):
    y = one_output("y[0] = x; static_assert(sizeof(x) == N);", {"x": value}, dtype=type_,
                   template=[("N", np.dtype(type_).itemsize)])  # fmt: skip
    with np.errstate(over="ignore"):
        assert y == np.asarray(value).astype(type_)


class OffersArray:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


class OffersDlpack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **_):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize(
    "kind",
    [np.asarray, mtl.Buffer, memoryview, OffersArray, OffersDlpack,
     lambda x: array.array("f", x), lambda x: (ctypes.c_float * x.size)(*x)],
)  # fmt: skip
def test_memory_of_every_kind(kind):
    x = np.arange(12, dtype=np.float32)
    y = one_output(COPY, {"x": kind(x)}, grid=12, shape=(12,))
    assert y.tolist() == x.tolist()


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    for tensor in (x, x.T, x[::2, 1:]):
        for options in ({}, {"source": COPY_STRIDED, "ensure_row_contiguous": False}):
            y = one_output(options.pop("source", COPY), {"x": tensor}, grid=tensor.numel(),
                           shape=tuple(tensor.shape), dtype=ml_dtypes.bfloat16, **options)  # fmt: skip
            assert y.astype(np.float32).tolist() == tensor.tolist()


def test_inputs_are_not_changed_and_outputs_are_new():
    x = np.arange(9, dtype=np.int32)
    x.flags.writeable = False
    y = copied(x)
    assert not np.shares_memory(x, y)
    assert y.flags.writeable


def test_a_subclass_is_its_memory():
    x = np.arange(9, dtype=np.float32).view(np.recarray)
    assert type(copied(x)) is np.ndarray
    assert copied(x).tolist() == x.tolist()


def test_the_same_array_twice():
    x = np.arange(9, dtype=np.int32)
    y = one_output("uint i = thread_position_in_grid.x; y[i] = x[i] + z[8 - i];",
                   {"x": x, "z": x}, grid=9, shape=(9,), dtype=np.int32)  # fmt: skip
    assert (y == 8).all()


# -- layouts


@st.composite
def views(draw):
    """Arrays of all layouts: sliced forwards and backwards, permuted, broadcast, empty, 0-d."""
    shape = draw(st.lists(st.integers(0 if draw(st.booleans()) else 1, 5), max_size=4))
    x = np.arange(np.prod(shape, dtype=int), dtype=draw(st.sampled_from([np.int16, np.float32])))
    x = x.reshape(shape)
    for _ in range(draw(st.integers(0, 3))):
        change = draw(st.sampled_from(["slice", "permute", "broadcast", "new axis", "byte order"]))
        if change == "slice" and x.ndim:
            step = st.sampled_from([-3, -2, -1, 1, 2, 3])
            start = st.one_of(st.none(), st.integers(-4, 4))
            x = x[tuple(slice(draw(start), draw(start), draw(step)) for _ in x.shape)]
        elif change == "permute":
            x = x.transpose(draw(st.permutations(range(x.ndim))))
        elif change == "broadcast":
            x = np.broadcast_to(x, (draw(st.integers(1, 3)), *x.shape))
        elif change == "new axis":
            x = np.expand_dims(x, draw(st.integers(0, x.ndim)))
        elif change == "byte order":
            x = x.astype(x.dtype.newbyteorder())
    return x


@settings(max_examples=50)
@given(x=views(), row_contiguous=st.booleans())
def test_every_layout(x, row_contiguous):
    source = COPY_STRIDED if x.ndim else "y[thread_position_in_grid.x] = x;"
    y = one_output(source, {"x": x}, grid=x.size, shape=x.shape, dtype=x.dtype.newbyteorder("="),
                   ensure_row_contiguous=row_contiguous)  # fmt: skip
    np.testing.assert_array_equal(y, x)


DESCRIBE = """
    for (int axis = 0; axis < x_ndim; ++axis) {
        y[axis] = x_shape[axis];
        y[axis + x_ndim] = x_strides[axis];
    }
"""


@pytest.mark.parametrize(
    ("view", "strides"),
    [
        (lambda x: x, (20, 5, 1)),
        (lambda x: x.T, (1, 5, 20)),
        (lambda x: x[:, 1:, ::2], (20, 5, 2)),
        (lambda x: np.broadcast_to(x[:1], (7, 4, 5)), (0, 5, 1)),
        (lambda x: np.broadcast_to(x[0, 0], (2, 2, 5)), (0, 0, 1)),
        # These would be walked backwards or by half elements: they are copied.
        (lambda x: x[::-1], (20, 5, 1)),
        (lambda x: x.view([("a", np.int16), ("b", np.int32), ("c", np.int16)])["b"], (20, 5, 1)),
    ],
)
def test_strides_are_those_of_the_memory_passed(view, strides):
    x = view(np.arange(60, dtype=np.int64).reshape(3, 4, 5))
    described = [
        one_output(DESCRIBE, {"x": x}, shape=(6,), dtype=np.int32, ensure_row_contiguous=contiguous)
        for contiguous in (False, True)
    ]
    assert described[0].tolist() == [*x.shape, *strides]
    assert described[1].tolist() == [*x.shape, x.shape[1] * x.shape[2], x.shape[2], 1]


def test_without_copies_the_memory_is_the_callers():
    """Elements between those of a view are there, too: nothing was gathered."""
    x = np.arange(20, dtype=np.float32)
    y = one_output("y[0] = x[1];", {"x": x[::2]}, ensure_row_contiguous=False)
    assert y == 1


# -- templates


def test_template_parameters():
    y = one_output(
        "y[0] = B ? N : M; y[1] = sizeof(T) * 100 + sizeof(U); y[2] = C;", {}, shape=(3,), dtype=np.int64,
        template=[("T", np.float16), ("N", -(2**31)), ("M", 2**31 - 1), ("B", True), ("C", False),
                  ("U", np.complex64)],
    )  # fmt: skip
    assert y.tolist() == [-(2**31), 208, 0]


@pytest.mark.parametrize("value", [np.int64(5), np.uint8(5), 5])
def test_numpy_integers_are_integers(value):
    assert one_output("y[0] = N;", {}, template=[("N", value)]) == 5


@pytest.mark.parametrize("value", [np.bool_(True), True])
def test_numpy_booleans_are_booleans(value):
    assert (
        one_output("y[0] = is_same_v<decltype(B), const bool> || B;", {}, template=[("B", value)])
        == 1
    )


@EACH_TYPE
@pytest.mark.sample(2)
def test_every_form_of_a_dtype(type_):
    dtype = np.dtype(DTYPES[type_])
    scalars = [scalar for scalar in SCALARS if scalar.dtype == dtype]
    for form in (dtype, dtype.type, dtype.name, *scalars):
        source = f"static_assert(is_same_v<T, {type_}>); y[0] = T(1);"
        assert (
            one_output(source, {}, dtype=form if form is dtype else dtype, template=[("T", form)])
            == 1
        )
    kernel = mtl.metal_kernel("k", [], ["y"], "y[0] = 1;")
    for form in (dtype, dtype.type, dtype.name, *scalars):
        (y,) = kernel(inputs=[], grid=1, output_shapes=[[1]], output_dtypes=[form])
        assert y.dtype == dtype


def test_one_kernel_with_many_types_and_sizes():
    kernel = mtl.metal_kernel("any", ["x"], ["y"], COPY)
    for _ in range(2):
        for dtype in (np.float32, np.int8):
            for n in (0, 1, 7, 8, 100):
                x = np.arange(n).astype(dtype)
                (y,) = kernel(inputs=[x], grid=n, output_shapes=[[n]], output_dtypes=[dtype])
                assert (y == x).all()


# -- grids

SIZES = """
    uint3 at = thread_position_in_grid;
    uint i = at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z);
    y[8 * i] = i;
    y[8 * i + 1] = threads_per_grid.x * 10000 + threads_per_grid.y * 100 + threads_per_grid.z;
    y[8 * i + 2] = dispatch_threads_per_threadgroup.x * 10000
                 + dispatch_threads_per_threadgroup.y * 100 + dispatch_threads_per_threadgroup.z;
    y[8 * i + 3] = threadgroups_per_grid.x * 10000
                 + threadgroups_per_grid.y * 100 + threadgroups_per_grid.z;
"""


@pytest.mark.parametrize(
    ("grid", "group", "seen_group", "groups"),
    [
        ((7, 3, 2), (4, 2, 1), 40201, 20202),
        ((7, 3, 2), (256, 1, 1), 70101, 10302),  # cut down to the grid
        ([7, 3], [7, 1024 // 7], 70301, 10101),
        (np.array([5, 1, 1]), np.int64(2), 20101, 30101),
        (5, (2, 1), 20101, 30101),
    ],
)
def test_the_grid_counts_threads(grid, group, seen_group, groups):
    full = (*np.atleast_1d(grid), 1, 1)[:3]
    n = int(np.prod(full))
    y = one_output(
        SIZES, {}, grid=grid, threadgroup=group, shape=(n, 8), dtype=np.uint32, init_value=0
    )
    assert y[:, 0].tolist() == list(range(n))
    assert (y[:, 1] == full[0] * 10000 + full[1] * 100 + full[2]).all()
    assert (y[:, 2] == seen_group).all()
    assert (y[:, 3] == groups).all()


@pytest.mark.parametrize("grid", [0, (0, 4, 4), (3, 0)])
def test_no_threads(grid):
    y = one_output("y[0] = 1;", {}, grid=grid, threadgroup=(8, 8, 8), init_value=7)
    assert y == 7


def test_empty_inputs_and_outputs():
    y = copied(np.empty((0, 3), np.float32))
    assert y.shape == (0, 3)


# -- new outputs


@EACH_TYPE
@pytest.mark.parametrize("value", [1, 0, True, np.float32(1), np.int8(0), 1.0])
@pytest.mark.sample(5)
def test_initial_values(type_, value):
    y = one_output("", {}, grid=0, shape=(2, 3), dtype=np.dtype(DTYPES[type_]), init_value=value)
    assert (y == DTYPES[type_](value)).all()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(np.inf, np.float16), (-np.inf, ml_dtypes.bfloat16), (0.1, np.float16), (1j, np.complex64),
     (2**64 - 1, np.uint64), (-128, np.int8), (1e300, np.float32)],
)  # fmt: skip
def test_initial_values_at_the_edges(value, dtype):
    y = one_output("", {}, grid=0, shape=(2,), dtype=dtype, init_value=value)
    with np.errstate(over="ignore"):
        assert (y == np.array(value).astype(dtype)).all()


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32])
def test_atomic_outputs(dtype, rng):
    x = rng.integers(0, 10, 5000).astype(np.int32)
    y = one_output(
        "atomic_fetch_add_explicit(&y[x[thread_position_in_grid.x]], 1, memory_order_relaxed);", {"x": x},
        grid=x.size, shape=(10,), dtype=dtype, init_value=0, atomic_outputs=True,
    )  # fmt: skip
    np.testing.assert_array_equal(y, np.bincount(x, minlength=10))


def test_multiple_outputs():
    kernel = mtl.metal_kernel(
        "two",
        ["x"],
        ["b", "a"],
        "uint i = thread_position_in_grid.x; a[i] = x[i]; b[i] = x[i] > 1;",
    )
    b, a = kernel(inputs=[np.arange(3, dtype=np.int8)], grid=3, output_shapes=[(3, 1), [3]],
                  output_dtypes=[bool, np.float32])  # fmt: skip
    assert b.tolist() == [[False], [False], [True]]
    assert a.tolist() == [0, 1, 2]


# -- one text, one kernel


def test_equal_names_are_not_confused():
    for value in (1, 2, 1):
        for header in ("", "#define ONE 1\n"):
            assert one_output(f"y[0] = {value};", {}, header=header) == value
    first = mtl.metal_kernel("same", [], ["y"], "y[0] = VALUE;", header="#define VALUE 1")
    second = mtl.metal_kernel("same", [], ["y"], "y[0] = VALUE;", header="#define VALUE 2")
    call = {"inputs": [], "grid": 1, "output_shapes": [()], "output_dtypes": [np.float32]}
    assert [k(**call)[0] for k in (first, second, first)] == [1, 2, 1]


def test_a_text_is_compiled_once(monkeypatch):
    from metalloid.kernels import generated_kernel

    libraries = []
    original = generated_kernel.compiled_library
    monkeypatch.setattr(
        generated_kernel, "compiled_library", lambda *a: libraries.append(a) or original(*a)
    )
    for n in (10, 20, 30):
        for dtype in (np.float32, np.int8):
            copied(np.zeros(n, dtype), "y[thread_position_in_grid.x] = x[0]; // once only")
    assert len(libraries) == 2


def test_math_modes():
    source = "y[0] = FAST;"
    header = "#ifdef __FAST_MATH__\n#define FAST 1\n#else\n#define FAST 0\n#endif"
    for mode in ("safe", "relaxed", "fast"):
        assert one_output(source, {}, header=header, math_mode=mode) == (mode == "fast")
    assert one_output("y[0] = metal::exp(-x);", {"x": np.inf}) == 0


def test_verbose_prints_the_text(capsys):
    kernel = mtl.metal_kernel("shown", [], ["y"], "y[0] = 1;")
    call = {"inputs": [], "grid": 1, "output_shapes": [(1,)], "output_dtypes": [np.float32]}
    for _ in range(2):
        kernel(**call, verbose=True)
        assert capsys.readouterr().out == (
            "Generated source code for `shown`:\n```\n"
            "[[kernel]] void custom_kernel_shown_float(\n  device float* y [[buffer(0)]]) {\n"
            "y[0] = 1;\n}\n\n```\n"
        )
    kernel(**call)
    assert capsys.readouterr().out == ""


def test_repr():
    kernel = mtl.metal_kernel("shown", ["a", "b"], ["b", "y"], "")
    assert repr(kernel) == "<MetalKernel shown(a, b) -> b, y>"


def test_repeated_calls_follow_their_arguments(monkeypatch):
    kernel = mtl.metal_kernel(
        "scaled", ["x", "y"], ["z"],
        "uint i = thread_position_in_grid.x; z[i] = T(x[i] * K + y[i % y_shape[0]] + y_ndim);",
    )  # fmt: skip
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.full(3, 5, np.float32)
    inputs = [(x, y), (x.T, y), (x[::-1], y), (x.astype(np.int32), y), (x, np.full(9, 2, np.int16)),
              (mtl.asarray(x), y), (x.astype(">f4"), y)]  # fmt: skip

    def check(a, b, count, dtype, factor):
        (result,) = kernel(
            inputs=[a, b], grid=(count, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(count,)],
            output_dtypes=[dtype], template=[("T", dtype), ("K", factor)],
        )  # fmt: skip
        values = np.asarray(a).reshape(-1)[:count] * factor + np.asarray(b)[0] + 1
        assert np.asarray(result).dtype == dtype
        np.testing.assert_array_equal(np.asarray(result), values.astype(dtype))

    for _ in range(2):
        for a, b in inputs:
            check(a, b, 12, np.float32, 2)
        for changed in ((8, np.float32, 2), (12, np.int16, 2), (12, np.float32, 3)):
            check(x, y, *changed)
        for grid in (12.0, (12.0, 1, 1), -1):  # equal to, or like, the one that is known
            with pytest.raises(mtl.ArgumentError, match="grid expects"):
                kernel(
                    inputs=[x, y], grid=grid, threadgroup=(4, 1, 1), output_shapes=[(12,)],
                    output_dtypes=[np.float32], template=[("T", np.float32), ("K", 2)],
                )  # fmt: skip
    monkeypatch.setattr(kernel, "_inputs", None)  # of the general path
    check(x, y, 12, np.float32, 2)
