"""`compile`: what it traces again for, what it captures, and that results equal those of calls."""

import gc
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import metalloid as mtl
from metalloid import TraceError
from metalloid.transforms import state as states

X = mtl.asarray([1.0, 2.0, 3.0])


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def chain(x):
    for k in range(4):
        x = mtl.sin(x) * 2 + x / (k + 1)
    return x, x.sum(), (x @ x)[None]


def test_results_are_those_of_the_function():
    x = mtl.asarray(np.random.default_rng(0).standard_normal(1000), dtype="float32")
    for a, b in zip(mtl.compile(chain)(x), chain(x), strict=True):
        same(a, b)


def test_structures_types_and_constants():
    @mtl.compile
    def function(x, word, more=None):
        return {"x": x + 1, word: [x, 2, None, more["y"] if more else word]}

    result = function(X, "a")
    same(result["x"], [2, 3, 4])
    assert result["a"][1:] == [2, None, "a"]
    assert result["a"][0] is not None
    same(function(X, "b", more={"y": X * 2})["b"][3], [2, 4, 6])
    same(function(mtl.arange(3), "a")["x"], [1, 2, 3])
    assert function.traces == 3
    function(X, "a")
    assert function.traces == 3


def test_numbers_are_inputs():
    step = mtl.compile(lambda x, rate, k: x - rate / (1 - rate**k) * x)
    for rate, k in ((0.1, 2), (0.3, 3), (0.5, 7)):
        np.testing.assert_allclose(
            np.asarray(step(X, rate, k)), np.asarray(X) * (1 - rate / (1 - rate**k)), rtol=1e-6
        )
    assert step.traces == 1
    step(X, 3, 2.0)  # of other types
    assert step.traces == 2


def test_an_array_and_a_number_are_swapped():
    function = mtl.compile(lambda d: d["a"] - d["b"])
    for a, b in ((X, 2.0), (2.0, X), (mtl.asarray(2.0), X), (X, mtl.asarray(2.0)), (X, 2.0)):
        same(function({"a": a, "b": b}), np.asarray(a) - np.asarray(b))
    assert function.traces == 4


def test_numbers_as_results():
    function = mtl.compile(lambda x, k: (x * k, k + 1, [k]))
    for k in (2.0, 5.0):
        product, more, (own,) = function(X, k)
        same(product, np.asarray(X) * k)
        assert (more, own) == (k + 1, k)
    assert function.traces == 1


def test_the_number_of_programs_is_bounded(monkeypatch):
    from metalloid.transforms import compiling

    monkeypatch.setattr(compiling, "MAX_PROGRAMS", 4)
    function = mtl.compile(lambda x, n: x * 2 if n > 100 else x + n)
    for n in range(10):
        same(function(X, n), np.asarray(X) + n)
    assert sum(map(len, function._variants.values())) <= 4


def test_numbers_adopt_types_as_in_calls():
    x = mtl.asarray([1, 2], dtype="float16")
    add = mtl.compile(lambda x, k: x + k)
    assert add(x, 0.1).dtype == mtl.float16
    same(add(x, 0.1), x + 0.1)
    same(add(x, 0.7), x + 0.7)
    assert add(mtl.arange(2), 0.5).dtype == (mtl.arange(2) + 0.5).dtype
    with pytest.raises(OverflowError):
        mtl.compile(lambda x, k: x + k)(mtl.zeros(2, dtype="int8"), 1000)


def test_numbers_that_are_read_are_fixed():
    @mtl.compile
    def function(x, n, scale):
        for _ in range(n):
            x = x * 2
        return x * scale if scale > 1 else x + scale

    same(function(X, 2, 3.0), np.asarray(X) * 12)
    same(function(X, 2, 3.0), np.asarray(X) * 12)
    assert function.traces == 1
    same(function(X, 1, 0.5), np.asarray(X) * 2 + 0.5)
    same(function(X, 2, 3.0), np.asarray(X) * 12)
    assert function.traces == 2


def test_arrays_without_axes_are_inputs():
    scaled = mtl.compile(lambda x, k: x * k)
    same(scaled(X, mtl.asarray(2.0)), [2, 4, 6])
    same(scaled(X, mtl.asarray(3.0)), [3, 6, 9])
    assert scaled.traces == 1


def test_views_of_arguments():
    x = mtl.arange(24.0).reshape(4, 6)
    total = mtl.compile(lambda x: (x.T, x[1:, ::2], x.sum(axis=0)))
    for view in (x, x[1:], x[:, ::-1], x.T, x[1:]):
        for a, b in zip(total(view), (view.T, view[1:, ::2], view.sum(axis=0)), strict=True):
            same(a, b)


def test_expressions_as_arguments():
    add = mtl.compile(lambda x, y: x + y)
    same(add(X * 2, mtl.arange(3.0)), [2, 5, 8])


def test_arrays_outside_are_constants():
    y = mtl.asarray([1.0, 2.0, 3.0]) * 2
    add = mtl.compile(lambda x: x + y)
    same(add(X), [3, 6, 9])
    y = mtl.zeros(3)
    same(add(X), [3, 6, 9])


def test_captured_inputs_and_outputs():
    state = {"y": mtl.asarray([2.0, 2.0, 2.0]), "deep": [mtl.zeros(3)]}

    @partial(mtl.compile, inputs=state, outputs=state)
    def step(x):
        state["y"] = state["y"] + x
        state["deep"][0] = state["y"] * 2
        return state["y"].sum()

    assert float(step(X)) == 12
    same(state["y"], [3, 4, 5])
    assert float(step(X)) == 18
    same(state["deep"][0], [8, 12, 16])
    state["y"] = mtl.zeros(3)
    assert float(step(X)) == 6
    assert step.traces == 1


def test_outputs_that_the_function_adds():
    state = {}

    @partial(mtl.compile, inputs=state, outputs=state)
    def step(x):
        y = state.get("y", mtl.asarray(0.0))
        state["y"] = x + y
        return x + 2 * y

    one = mtl.asarray(1.0)
    assert float(step(one)) == 1
    assert float(step(one)) == 3
    assert float(step(one)) == 5
    assert float(state["y"]) == 3


def test_writes_to_containers_that_are_no_outputs_are_undone():
    state = {"y": X}

    @partial(mtl.compile, inputs=state)
    def function(x):
        state["y"] = x + state["y"]
        state["new"] = x
        return state["y"] * 2

    for _ in range(2):
        same(function(X), [4, 8, 12])
        assert state["y"] is X
        assert list(state) == ["y"]
    assert function.traces == 1


def test_inputs_are_as_before_when_the_function_fails():
    state = [X]

    @partial(mtl.compile, inputs=state)
    def fails(x):
        raise KeyError(state[0].shape)

    with pytest.raises(KeyError):
        fails(X)
    assert state[0] is X


def test_transforms_in_and_around():
    loss = lambda w, x: (mtl.tanh(x @ w) ** 2).sum()  # noqa: E731
    w, x = mtl.ones((3, 2)), mtl.arange(12.0).reshape(4, 3) / 10
    expected = mtl.grad(loss)(w, x)
    same(mtl.compile(mtl.grad(loss))(w, x), expected)
    same(mtl.grad(mtl.compile(loss))(w, x), expected)
    same(mtl.vmap(mtl.compile(mtl.sin))(x), mtl.sin(x))
    same(mtl.compile(mtl.compile(mtl.sin))(x), mtl.sin(x))
    second = mtl.grad(mtl.compile(mtl.grad(lambda t: t**3)))
    assert float(second(mtl.asarray(2.0))) == 12


@pytest.mark.parametrize("name", ["take", "update", "gradient", "several", "keyword"])
def test_indices_are_checked_in_each_call(name):
    use = {
        "take": lambda x, i: x[i] * 2,
        "update": lambda x, i: x.at[i].add(1),
        "gradient": mtl.grad(lambda x, i: (x[i] ** 2).sum()),
        "several": lambda x, i: (x + 1, x[i], x[i * 0]),
        "keyword": lambda x, i: x[i] * 2,
    }[name]
    compiled = mtl.compile(use)
    call = (lambda x, i: compiled(x, i=i)) if name == "keyword" else compiled
    right = mtl.asarray([0, -1, 2])
    for _ in range(3):
        same(call(X, right), use(X, right))
        for wrong, index in (([3, 0, 0], 3), ([1, -4, 1], -4), ([2**40, 1, 1], 2**40)):
            with pytest.raises(
                IndexError, match=f" {index} is out of range for axis 0 of extent 3"
            ) as caught:
                same(call(X, mtl.asarray(wrong)), use(X, right))  # GPUs raise when it is read
            assert "test_compile.py" in caught.value.__notes__[0]


def test_indices_of_other_transforms_are_checked_when_they_are_read():
    rows = mtl.vmap(lambda row, i: row[i] + 0)(
        mtl.arange(6.0).reshape(2, 3), mtl.asarray([[0], [3]])
    )
    shown = rows * 2
    for _ in range(2):
        with pytest.raises(IndexError, match="3 is out of range for axis 0 of extent 3"):
            np.asarray(shown)
    with pytest.raises(IndexError, match="3 is out of range for axis 0 of extent 3"):
        np.asarray(rows)  # part of what failed


def test_random_numbers_go_on():
    draw = mtl.compile(lambda: (mtl.random.uniform(shape=3), mtl.random.normal(shape=(2,))))
    mtl.random.seed(7)
    eager = [mtl.random.uniform(shape=3), mtl.random.normal(shape=(2,)), mtl.random.normal(shape=4),
             mtl.random.uniform(shape=3)]  # fmt: skip
    mtl.eval(*eager)
    mtl.random.seed(7)
    first, second = draw()
    same(first, eager[0])
    same(second, eager[1])
    same(mtl.random.normal(shape=4), eager[2])
    same(draw()[0], eager[3])
    assert draw.traces == 1


def test_a_state_that_is_first_used_in_a_trace(monkeypatch):
    monkeypatch.setattr(states, "STATES", list(states.STATES))

    class Count(states.State):
        value = mtl.asarray([0.0])

        def read(self):
            return self.value

        def write(self, value):
            self.value = value

    counts = []

    @mtl.compile
    def function(x):
        if not counts:  # as by the import of a module
            counts.append(Count())
        counts[0].traced = counts[0].traced + 1
        return x + counts[0].traced

    for k in range(1, 4):
        same(function(X), np.asarray(X) + k)
    assert function.traces == 1


def test_a_method():
    class Model:
        weight = mtl.asarray(2.0)

        @mtl.compile
        def __call__(self, x):
            return self.weight * x

    same(Model()(X), [2, 4, 6])


def test_threads():
    function, results = mtl.compile(chain), {}
    inputs = [X + k for k in range(4)]

    def work(k):
        for _ in range(20):
            results[k] = function(inputs[k])[1].item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: chain(inputs[k])[1].item() for k in range(4)}


def test_nothing_leaks():
    function = mtl.compile(lambda x, k: (mtl.sin(x) * k, x[1:]))
    function(X, 1.0)
    gc.collect()
    objects = len(gc.get_objects())
    for k in range(300):
        function(X, float(k))
    mtl.default_device().synchronize()  # which forgets the launches in flight
    gc.collect()
    assert len(gc.get_objects()) < objects + 150  # a leak would be one of each call
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


def test_explain():
    def scaled(x, k, n):
        return x * k if n > 1 else x

    function = mtl.compile(scaled)
    function(X, 2.0, 2)
    function(X, 3.0, 2)
    function(X, 3.0, 1)
    function(X[1:], 3.0, 1)
    function(mtl.ones((4, 2)).T, 3.0, 1)
    function(X, 3.0, n=1)
    assert mtl.explain(function) == (
        "scaled: traced 5 times\n"
        "1. the first call: float32[3], float, int; it has read 2\n"
        "2. another value of a number that it reads: float32[3], float, int; it has read 1\n"
        "3. float32[2] after float32[3]: float32[2], float, int; it has read 1\n"
        "4. float32[2, 4] with strides [1, 2] after float32[2]: "
        "float32[2, 4] with strides [1, 2], float, int; it has read 1\n"
        "5. another structure of the arguments: float32[3], float, int; it has read 1"
    )


MISUSE = {
    "a branch": (TraceError, r"\[compile\] the function reads", lambda: mtl.compile(lambda x: x if x.sum() > 0 else -x)(X)),
    "a value": (TraceError, "reads the values", lambda: mtl.compile(lambda x: float(x.sum()))(X)),
    "a shape that depends on values": (TraceError, "nonzero", lambda: mtl.compile(mtl.nonzero)(X)),
    "a captured array": (TypeError, "inputs must be a list", lambda: mtl.compile(mtl.sin, inputs=X)),
    "an argument": (TypeError, "set is neither", lambda: mtl.compile(lambda s: X)({1})),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name):
    kind, text, call = MISUSE[name]
    with pytest.raises(kind, match=text):
        call()
