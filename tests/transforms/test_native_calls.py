"""Calls of compiled functions through native/program_call.c, compared with the same ones in Python."""

import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution.repeated_plan import RepeatedPlan
from metalloid.arrays.ir import memory
from metalloid.arrays.ir.memory import pool_of
from metalloid.arrays.ir.native import library
from metalloid.transforms.variants import CheckedCall

pytestmark = pytest.mark.needs("the CPU")


def affine(x, rate):
    return x * rate + 1, x - rate


def warmed_up(function=affine, *args):
    """A compiled function that has been called."""
    compiled = mtl.compile(function)
    for _ in range(2):
        compiled(*args)
    return compiled


def evaluated(values):
    x = mtl.asarray(values) + 0
    mtl.eval(x)
    return x


@pytest.fixture
def no_python(monkeypatch):
    """Fails calls that Python runs."""
    if library() is None:
        pytest.skip("native functions are not available")

    def refuse(self, args):
        raise AssertionError("Python runs the call")

    monkeypatch.setattr(CheckedCall, "__call__", refuse)


def repeat(compiled, x):
    while True:
        compiled(x)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_plain_arguments_do_not_need_python(no_python):
    x = evaluated(X)
    compiled = warmed_up(affine, x, 2.0)
    for rate in (2.0, 0.5, -3.0):
        a, b = compiled(x, rate)
        np.testing.assert_array_equal(np.asarray(a), X * np.float32(rate) + 1)
        np.testing.assert_array_equal(np.asarray(b), X - np.float32(rate))
    assert compiled.traces == 1


#: Calls after one with X and 2.0; Python runs those that differ in a check.
ARGUMENTS = {
    "pending": lambda: (mtl.asarray(X) * 2, 2.0),
    "imported": lambda: (mtl.asarray(X, copy=False), 2.0),
    "transposed": lambda: (evaluated(X.T.copy()).T, 2.0),
    "another shape": lambda: (evaluated(X.reshape(4, 3)), 2.0),
    "another type": lambda: (evaluated(X.astype(np.int32)), 2.0),
    "an offset": lambda: (evaluated(np.concatenate([X[:1], X]))[1:], 2.0),
    "an int": lambda: (evaluated(X), 2),
    "too large": lambda: (evaluated(X), 1e300),
    "an array of no axes": lambda: (evaluated(X), mtl.asarray(np.float32(2))),
    "a NumPy scalar": lambda: (evaluated(X), np.float32(2)),
    "nothing": lambda: (evaluated(X[:0]), 2.0),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_other_arguments(name):
    compiled = warmed_up(affine, evaluated(X), 2.0)
    for _ in range(3):
        x, rate = ARGUMENTS[name]()
        expected = affine(x, rate)
        for result, own in zip(compiled(x, rate), expected, strict=True):
            assert (result.dtype, result.shape) == (own.dtype, own.shape)
            np.testing.assert_array_equal(np.asarray(result), np.asarray(own))


def test_a_known_call_enters_no_function_of_python(no_python):
    x, names = evaluated(X), []
    compiled = warmed_up(lambda x, y: (x @ y.T, x + y), x, x)
    sys.setprofile(lambda frame, event, _: event == "call" and names.append(frame.f_code.co_name))
    try:
        product, total = compiled(x, x)
    finally:
        sys.setprofile(None)
    assert not names
    np.testing.assert_array_equal(np.asarray(product), X @ X.T)
    np.testing.assert_array_equal(np.asarray(total), X + X)


def test_captured_arrays_do_not_need_python(no_python, monkeypatch):
    weights = {"w": evaluated(X), "rest": [evaluated(X + 1), 2.0]}

    def step(x, *, rate):
        weights["w"] = weights["w"] - rate * (x + weights["rest"][0])
        return weights["w"].sum(), weights["rest"][1] * x

    compiled = mtl.compile(step, inputs=weights, outputs=weights)
    expected, x = X, evaluated(X)
    for k in range(6):
        total, doubled = compiled(x, rate=0.5)
        expected = expected - np.float32(0.5) * (2 * X + 1)
        np.testing.assert_array_equal(np.asarray(weights["w"]), expected)
        np.testing.assert_array_equal(np.asarray(doubled), 2 * X)
        assert float(total) == expected.sum()
        if k == 2:
            monkeypatch.setattr(RepeatedPlan, "__call__", None)
    assert compiled.traces == 1


@pytest.mark.parametrize("captured", [False, True])
def test_programs_are_freed_with_their_function(captured):
    x, rates = evaluated(X), [evaluated(X)]
    compiled = mtl.compile(lambda x, k: x * k + rates[0], inputs=rates if captured else None)
    for k in range(4):
        compiled(x, float(k))
    ((variant,),) = compiled._variants.values()
    program = weakref.ref(variant.program)
    del compiled, variant
    gc.collect()
    assert program() is None


def test_calls_of_other_forms():
    class Named(type(mtl.compile(affine))):
        def __call__(self, *args):
            return ("named", *super().__call__(*args))

    class Holder:
        @mtl.compile
        def apply(self, x):
            return affine(x, 3.0)

    x = evaluated(X)
    compiled, exact = warmed_up(affine, x, 2.0), X * np.float32(3) + 1
    holder, named, nothing = Holder(), Named(affine, None, None, False), {}
    results = [
        compiled(x, 3.0), compiled(x, rate=3.0), compiled(x=x, rate=3.0),
        compiled(x, 3.0, **nothing), compiled.__call__(x, 3.0), *(holder.apply(x) for _ in range(3)),
        *(named(x, 3.0)[1:] for _ in range(3)),
    ]  # fmt: skip
    for result, _ in results:
        np.testing.assert_array_equal(np.asarray(result), exact)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rate'"):
        compiled(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        compiled(x, speed=2.0)
    assert named(x, 3.0)[0] == "named"


def test_an_error_of_a_call_is_at_the_line_of_its_caller(no_python):
    x = evaluated(X)
    compiled = warmed_up(lambda x: x + 1, x)
    x._node.memory._address = 64
    with pytest.raises(mtl.KernelFault) as caught:
        compiled(x)
    assert caught.traceback[0].path.name == "test_native_calls.py"
    assert "compiled(x)" in str(caught.traceback[0].statement)
    assert {entry.path.name for entry in caught.traceback[1:]} == {"repeater.py"}


def test_a_function_whose_programs_are_replaced_during_a_call():
    arrays = [evaluated(X), evaluated(X.astype(np.int32))]
    compiled = warmed_up(lambda x: x @ x.T, arrays[0])
    wrong, ended = [], threading.Event()

    def replace():
        while not ended.wait(1e-5):
            compiled._plain_calls = {}
            compiled._calls = ()

    def work(k):
        for _ in range(200):
            if not (np.asarray(compiled(arrays[k])) == X @ X.T).all():
                wrong.append(k)

    replacing = threading.Thread(target=replace)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    replacing.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    replacing.join()
    assert not wrong


def outcome_of(function, *args):
    """The values of a result, or the error."""
    try:
        result = function(*args)
        return result.dtype, np.asarray(result).tobytes()
    except (OverflowError, TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "name", ["float32", "bfloat16", "float64", "complex64", "bool", "int8", "uint32", "int64", "uint64"],
)  # fmt: skip
def test_numbers_are_those_of_eager_functions(name):
    def function(x, a, b):
        return (x + a) * 3 - b

    x = evaluated(np.arange(5)).astype(name)
    mtl.eval(x)
    compiled = mtl.compile(function)
    for first, second in ((1, 2), (1.5, 2), (1, True)):
        for _ in range(2):
            outcome_of(compiled, x, first, second)
        of_type, large = type(first), 10**400 if type(first) is int else float("inf")
        for value in (3, 0, -1, 2**7, 2**15, 2**31, 2**32 + 1, 2**63, 2**64, 1e39, 1e300, -0.0):
            args = of_type(value), type(second)(1)
            assert outcome_of(compiled, x, *args) == outcome_of(function, x, *args), args
        assert outcome_of(compiled, x, large, second) == outcome_of(function, x, large, second)


def test_numbers_that_a_function_computes_or_does_not_use(no_python):
    x = evaluated(X)
    compiled = warmed_up(lambda x, a, b, c: x * (a + 1) + c, x, 1.0, 2.0, 3.0)
    for a, c in ((2.0, 5.0), (0.25, -1.0)):
        np.testing.assert_array_equal(np.asarray(compiled(x, a, 7.0, c)), X * np.float32(a + 1) + c)
    compiled = warmed_up(lambda x, a, b, c: x * c - a, x, 1, 2, 3)
    for a, c in ((2, 5), (-7, 1)):
        np.testing.assert_array_equal(np.asarray(compiled(x, a, 9, c)), X * c - a)
    assert compiled.traces == 1


def test_results_that_are_views_of_arguments(no_python):
    x = evaluated(X)
    compiled = warmed_up(lambda x: (x.T, x + 1, x), x)
    transposed, _, same = compiled(x)
    np.testing.assert_array_equal(np.asarray(transposed), X.T)
    x[0, 0] = 100  # a copy: others refer to the memory
    np.testing.assert_array_equal(np.asarray(same), X)


def test_results_retain_their_values(no_python):
    x = evaluated(X)
    compiled = warmed_up(lambda x: x * 2, x)
    shown = np.asarray(compiled(x))
    for k in range(3):
        compiled(evaluated(X + k))
    np.testing.assert_array_equal(shown, X * 2)
    with pytest.raises(ValueError, match="WRITEABLE"):
        shown.flags.writeable = True


def test_a_change_of_settings_retraces():
    x = evaluated(X)
    compiled = warmed_up(lambda x: x + 1, x)
    with mtl.config.scope(tf32=True):
        compiled(x), compiled(x)
    assert compiled.traces == 2


def test_a_graph_records_the_launches():
    x = evaluated(X)
    compiled = warmed_up(lambda x: x + 1, x)
    with mtl.Graph() as graph:
        y = compiled(x)
    graph.launch(wait=True)
    np.testing.assert_array_equal(np.asarray(y), X + 1)


def test_a_fault_is_raised_and_the_next_call_runs():
    x = evaluated(X)
    compiled = warmed_up(lambda x: x + 1, x)
    address, own = x._node.memory.address, x._node.memory
    own._address = 64
    for _ in range(2):
        with pytest.raises(mtl.KernelFault, match="address 0x40"):
            compiled(x)
    own._address = address
    np.testing.assert_array_equal(np.asarray(compiled(x)), X + 1)


def test_an_interruption_is_raised_and_the_next_call_runs():
    x = evaluated(X)
    compiled = warmed_up(lambda x: x + 1, x)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(KeyboardInterrupt):
                repeat(compiled, x)
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(np.asarray(compiled(x)), X + 1)


def test_evaluations_like_an_earlier_one(monkeypatch):
    x = evaluated(X)
    for k in range(3, 200):
        result = (x * k + 1) / 2
        mtl.eval(result)
        if k == 3:
            monkeypatch.setattr("metalloid.arrays.execution.evaluate.run", None)
            monkeypatch.setattr(RepeatedPlan, "__call__", None)
        np.testing.assert_array_equal(np.asarray(result), (X * k + 1) / 2)


def test_threads_call_one_function():
    arrays = [evaluated(X + k) for k in range(4)]
    compiled = warmed_up(affine, arrays[0], 2.0)
    wrong = []

    def work(k):
        for n in range(500):
            a, b = compiled(arrays[k], float(n))
            if not (np.asarray(a) == (X + k) * np.float32(n) + 1).all() or float(b[0, 0]) != k - n:
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("calls", [30_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_calls_leak_nothing(no_python, calls):
    x, pool = evaluated(X), pool_of(mtl.default_device())
    compiled = warmed_up(affine, x, 2.0)
    node, counted = (
        x._node,
        [x._node, x._node.memory, x.dtype, mtl.Array, mtl.default_device(), None],
    )
    for _ in range(3):  # results of one call live until those of the next
        a, _ = compiled(x, 2.0)
        np.asarray(a)
    del a, _
    gc.collect()

    def counts():
        return [sys.getrefcount(each) for each in counted]

    before, live, blocks = counts(), (pool.live_bytes, pool.free_bytes), sys.getallocatedblocks()
    for _ in range(calls):
        a, _ = compiled(x, 2.0)
        np.asarray(a)
    del a, _
    gc.collect()
    assert all(abs(after - old) < 50 for after, old in zip(counts(), before, strict=True))
    assert (pool.live_bytes, pool.free_bytes) == live
    assert sys.getallocatedblocks() < blocks + 1000
    assert node is x._node


def test_memory_of_a_pool_without_native_functions_is_read_by_python(monkeypatch):
    device = mtl.default_device()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "library", lambda: None)
        array = mtl.asarray(np.ones(5, np.float32)) + 1
        patch.setitem(memory._pools, device, memory.Pool(device))
        mtl.eval(array)
    assert np.asarray(array).tolist() == memoryview(array).tolist() == [2.0] * 5


def test_a_pool_without_native_functions(monkeypatch):
    monkeypatch.setattr(memory, "library", lambda: None)
    pool = memory.Pool(mtl.default_device())
    assert pool.address == 0
    buffer, lease = pool.acquire(100)
    assert (pool.live_bytes, pool.live_buffers, pool.free_bytes) == (128, 1, 0)
    del lease
    assert (pool.live_bytes, pool.peak_bytes, pool.free_bytes) == (0, 128, 128)
    repeated, lease = pool.acquire(128)
    assert repeated is buffer
    pool.clear()
    del lease
    pool.clear()
    assert pool.free_bytes == 0


def test_without_native_functions(monkeypatch):
    monkeypatch.setattr("metalloid.transforms.program.library", lambda: None)
    x = evaluated(X)
    compiled = warmed_up(affine, x, 2.0)
    a, b = compiled(x, 3.0)
    np.testing.assert_array_equal(np.asarray(a), X * 3 + 1)
    np.testing.assert_array_equal(np.asarray(b), X - 3)
    assert compiled.traces == 1
