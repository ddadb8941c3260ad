"""Arrays are values, also in memory of others: they never write to that, and what has
been computed from it, or is pending, keeps the values of that time."""

import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

SIZE = 6
KERNELS = "kernel void add_one(device long *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


#: How an array comes to its memory, and whether it then shows what the owner writes.
SOURCES = {
    "copied": (mtl.asarray, False),
    "shared": (mtl.from_dlpack, True),
    "shared by asarray": (lambda a: mtl.asarray(a, copy=False), True),
    "own": (lambda a: mtl.asarray(a) + 0, False),
    "own, evaluated": (lambda a: _evaluated(mtl.asarray(a) + 0), False),
    "frozen": (lambda a: mtl.from_dlpack(frozen(a)), False),
    "a result of the host": (lambda a: mtl.sort(mtl.asarray(a)), False),
}


def _evaluated(x):
    mtl.eval(x)
    return x


def computed(kind, x):
    """Something made of an array, alike for NumPy's and ours."""
    if kind == "double":
        return x * 2
    if kind == "sum":
        return x.sum()
    if kind == "gather":
        index = [1, 3, 1]
        return x[mtl.asarray(index) if isinstance(x, mtl.Array) else np.array(index)]
    if kind == "mask":
        return x[x > 2]
    if kind == "reverse and add":
        return x[::-1] + x
    if kind == "sorted":
        return mtl.sort(x) if isinstance(x, mtl.Array) else np.sort(x)
    return x.astype(np.int64)  # the same type: a copy all the same


COMPUTED = ("double", "sum", "gather", "mask", "reverse and add", "sorted", "astype")
VIEWS = (slice(None), slice(1, 4), slice(None, None, -2))


def written(kind, x, value):
    """An array with some elements changed in place; of NumPy's a copy, which is what values mean."""
    is_ours = isinstance(x, mtl.Array)
    if not is_ours:
        x = x.copy()
    if kind == "element":
        x[0] = value
    elif kind == "slice":
        x[1:3] = value
    elif kind == "everything":
        x[...] = value
    elif kind == "mask":
        x[x > 2] = value
    elif kind == "indices":
        x[mtl.asarray([0, -1]) if is_ours else [0, -1]] = value
    elif kind == "nothing":
        x[:0] = value
    elif kind == "add":
        x += value
    elif is_ours:
        mtl.library(KERNELS).add_one(x, threads=SIZE)
    else:
        x += 1
    return x


WRITTEN = ("element", "slice", "everything", "mask", "indices", "nothing", "add", "launch")
STEPS = st.one_of(
    st.tuples(st.just("owner"), st.integers(0, SIZE - 1), st.integers(-9, 9)),
    st.tuples(st.just("compute"), st.sampled_from(COMPUTED)),
    st.tuples(st.just("view"), st.sampled_from(VIEWS)),
    st.tuples(st.just("write"), st.sampled_from(WRITTEN), st.integers(-9, 9)),
    st.tuples(st.just("alias")),
    st.tuples(st.just("evaluate")),
)


@settings(max_examples=75)
@given(source=st.sampled_from(sorted(SOURCES)), steps=st.lists(STEPS, max_size=10))
@pytest.mark.needs("the process's memory")
def test_any_steps_give_what_numpy_gives(source, steps):
    make, shows = SOURCES[source]
    theirs = np.arange(SIZE)
    expected_theirs = theirs.copy()
    ours = make(theirs)
    model = theirs if shows else theirs.copy()  # never written to, but by the owner
    values = []
    for what, *more in steps:
        if what == "owner":
            theirs[more[0]] = expected_theirs[more[0]] = more[1]
        elif what == "compute":
            values.append((computed(more[0], ours), np.array(computed(more[0], model))))
        elif what == "view":
            values.append((ours[more[0]], model[more[0]]))
        elif what == "alias":
            values.append((mtl.Array(ours._node), model))
        elif what == "evaluate":
            mtl.eval(ours, *(array for array, _ in values))
        else:
            ours, model = written(more[0], ours, more[1]), written(more[0], model, more[1])
    for array, expected in [*values, (ours, model)]:
        np.testing.assert_array_equal(np.asarray(array), expected)
    np.testing.assert_array_equal(theirs, expected_theirs)


@pytest.mark.needs("the process's memory")
@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("is_pending", [False, True])
def test_every_write_on_every_memory(source, kind, is_pending):
    theirs = np.arange(SIZE)
    x = SOURCES[source][0](theirs)
    later = x * 10 if is_pending else None
    assert written(kind, x, 5).tolist() == written(kind, np.arange(SIZE), 5).tolist()
    assert theirs.tolist() == list(range(SIZE))
    if later is not None:
        assert later.tolist() == [10 * k for k in range(SIZE)]


@pytest.mark.needs("the process's memory")
def test_a_pending_expression_does_not_see_later_writes():
    a = np.arange(5.0)
    x = mtl.from_dlpack(a)
    y, total, best = x * 2, x.sum(), mtl.max(x)
    a[:] = 7
    assert y.tolist() == [0, 2, 4, 6, 8]
    assert (float(total), float(best)) == (10, 4)
    assert x.tolist() == [7] * 5


@pytest.mark.needs("the process's memory")
@pytest.mark.parametrize(
    "copied",
    [
        lambda x: x.copy(),
        lambda x: x.astype(x.dtype),
        lambda x: mtl.asarray(x, copy=True),
        lambda x: mtl.concat([x]),
        lambda x: mtl.stack([x])[0],
        lambda x: mtl.roll(x, 0),
        lambda x: mtl.tile(x, (1,)),
        lambda x: mtl.repeat(x, 1),
        lambda x: mtl.clip(x),
        lambda x: mtl.diff(x, n=0),
        lambda x: mtl.take(mtl.expand_dims(x, axis=0), mtl.asarray(0), axis=0),
        lambda x: mtl.meshgrid(x)[0],
        lambda x: x.at[:0].set(1),
        lambda x: x.max(axis=()),
        lambda x: mtl.fft.fftshift(x[:1]),
        lambda x: mtl.pad(x, 0),
        lambda x: mtl.floor(x),
        lambda x: +x,
        lambda x: x**1,
    ],
)
def test_what_has_nothing_to_do_copies_all_the_same(copied):
    a = np.arange(5)
    y = copied(mtl.from_dlpack(a))
    before = y.tolist()
    a[:] = 7
    assert y.tolist() == before


@pytest.mark.needs("the process's memory")
def test_views_of_shared_memory_show_what_is_there():
    a = np.arange(6)
    x = mtl.from_dlpack(a)
    views = [x[1:], x.T, x.reshape(2, 3), mtl.flip(x), mtl.expand_dims(x, axis=0), x.real]
    results = [a[1:], a.T, a.reshape(2, 3), a[::-1], a[None], a.real]
    a[:] = a * a
    for view, expected in zip(views, results, strict=True):
        np.testing.assert_array_equal(np.asarray(view), expected)


@pytest.mark.needs("the process's memory")
def test_read_only_memory_is_shared_and_expressions_stay_lazy():
    a = frozen(np.arange(1000.0))
    x = mtl.from_dlpack(a)
    assert np.shares_memory(np.asarray(x), a)
    y = x * 2 + 1
    assert y._node.kind == "elementwise"
    np.testing.assert_array_equal(np.asarray(y), a * 2 + 1)


@pytest.mark.needs("the process's memory")
@pytest.mark.parametrize(
    "make",
    [
        lambda: (lambda a: (a, a.view()))(np.arange(5)),
        lambda: (lambda a: (a, np.broadcast_to(a, (5,))))(np.arange(5)),
        lambda: (lambda a: (a, memoryview(a).toreadonly()))(np.arange(5)),
        lambda: (lambda b: (np.frombuffer(b, np.int64), memoryview(b).toreadonly()))(bytearray(40)),
    ],
)
def test_a_read_only_view_of_memory_that_can_be_written_is_no_value(make):
    a, view = make()
    if isinstance(view, np.ndarray):
        view.flags.writeable = False
    x = mtl.asarray(view, copy=False)
    before = x.tolist()
    y = x + 1
    a[:] = 9
    assert y.tolist() == [n + 1 for n in before]


@pytest.mark.needs("the process's memory")
def test_what_takes_a_copy_says_so():
    a = np.arange(12, dtype=np.int32)
    odd = np.frombuffer(bytes(17), np.uint8)[1:].view(np.int32)
    for array in (a[::2], a.reshape(3, 4).T, a.astype(">i4"), odd):
        for function in (mtl.from_dlpack, mtl.asarray):
            assert function(array).tolist() == array.tolist()
            with pytest.raises(ValueError, match="requires a copy: only contiguous, aligned"):
                function(array, copy=False)
    with pytest.raises(BufferError, match=r"arrays do not support dtype\('<U1'\)"):
        mtl.from_dlpack(np.array(["a"]))


@pytest.mark.needs("the process's memory")
def test_a_function_of_the_host_that_returns_its_argument_shares_nothing():
    x = mtl.from_dlpack(np.eye(3))
    for result in (mtl.linalg.matrix_power(x, 1), mtl.sort(x), mtl.linalg.inv(x)):
        before = result.tolist()
        result[0, 0] = 100.0
        assert x.tolist() == np.eye(3).tolist()
        assert result.tolist() != before


@pytest.mark.needs("the process's memory")
def test_maps_of_files(tmp_path):
    (tmp_path / "x").write_bytes(np.arange(5).tobytes())
    with (tmp_path / "x").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        x = mtl.asarray(np.frombuffer(mapped, np.int64), copy=False)
        x[0] = 9
        assert x.tolist() == [9, 1, 2, 3, 4]
        assert (x + 1).tolist() == [10, 2, 3, 4, 5]
    assert (tmp_path / "x").read_bytes() == np.arange(5).tobytes()


@pytest.mark.needs("the process's memory")
def test_torch_and_its_memory():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.arange(5)
    x = mtl.from_dlpack(tensor)
    y = x * 2
    x[0] = 100
    x += 1
    tensor[:] = 7
    assert y.tolist() == [0, 2, 4, 6, 8]
    assert x.tolist() == [101, 2, 3, 4, 5]
    assert tensor.tolist() == [7] * 5
