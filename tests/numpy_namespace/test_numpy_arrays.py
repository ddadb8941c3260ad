"""Arrays of `metalloid.numpy`: their type rules, what changes them, and what they are to others."""

import pickle

import numpy
import pytest

import metalloid as mtl
import metalloid.numpy as np

pytestmark = pytest.mark.needs("the CPU")


def test_types_are_numpys_in_this_namespace_only():
    assert np.zeros(2).dtype == np.array([1.5]).dtype == (np.arange(2) / 2).dtype == numpy.float64
    assert (np.array([1], "int32") + np.array([1], "float32")).dtype == numpy.float64
    assert (np.array([1.0], "float32") * 2.5).dtype == numpy.float32
    assert mtl.zeros(2).dtype == mtl.sqrt(mtl.arange(2)).dtype == mtl.float32
    x = mtl.arange(3)
    assert type(numpy.median(x)) is mtl.Array
    assert numpy.median(x).dtype == mtl.float32
    assert type(numpy.median(np.arange(3))) is np.ndarray
    assert isinstance(mtl.exp(np.arange(3)), mtl.Array)


def test_floats_of_32_bits():
    with mtl.config.scope(numpy_floats="float32"):
        assert np.zeros(2).dtype == np.mean(np.arange(3)).dtype == numpy.float32
        assert (np.arange(3) / 2).dtype == numpy.float32
    assert np.zeros(2).dtype == numpy.float64
    with pytest.raises(ValueError, match="float16"):
        mtl.config.numpy_floats = "float16"


def test_an_error_leaves_the_rules_of_the_array_library():
    with pytest.raises(ValueError, match="shape"):
        np.reshape(np.arange(3), (2, 2))
    assert (mtl.arange(2) / 2).dtype == mtl.float32


def test_a_device_that_is_missing_leaves_the_rules_as_well():
    with mtl.config.scope(device="nonsense"), pytest.raises(mtl.MetalloidError, match="nonsense"):
        np.ones(2)
    assert np.ones(2).dtype == numpy.float64


def test_numpys_own_functions_make_this_type_of_array():
    x = np.arange(3)
    assert type(numpy.asarray([1, 2], like=x)) is np.ndarray
    assert type(numpy.concatenate([x, x])) is np.ndarray


def test_changes_of_an_array():
    x = np.arange(6).reshape(2, 3)
    same, copy = x, x.copy()
    x += 1
    x[0, 1:] = 0
    x.flat[-1] = 9
    numpy.testing.assert_array_equal(same, [[1, 0, 0], [4, 5, 9]])
    numpy.testing.assert_array_equal(copy, numpy.arange(6).reshape(2, 3))
    np.put(x, [0, -1], [7, 8])
    np.fill_diagonal(x, 5)
    np.putmask(x, x == 0, -1)
    np.place(x, x == 8, [2])
    np.copyto(x, 3, where=x == 4)
    numpy.testing.assert_array_equal(x, [[5, -1, -1], [3, 5, 2]])
    np.put_along_axis(x, np.array([[0], [2]]), 0, 1)
    x.sort(axis=0)
    numpy.testing.assert_array_equal(x, [[0, -1, -1], [3, 5, 0]])
    x.shape = 6
    x.resize(8)
    assert x.tolist() == [0, -1, -1, 3, 5, 0, 0, 0]
    np.add.at(x, [0, 0], 2)
    assert x[0] == 4
    with pytest.raises(TypeError, match=r"\[divide\] float64 does not convert to int64"):
        x /= 2
    f = np.ones(2, dtype="float32")
    f += np.ones(2)
    assert f.dtype == numpy.float32


def test_results_in_arrays():
    total = np.zeros(3, dtype="float32")
    assert np.sum(np.ones((2, 3)), axis=0, out=total) is total
    assert total.tolist() == [2, 2, 2]
    assert np.add(1, 2, out=total, where=[True, False, True]) is total
    assert total.tolist() == [3, 2, 3]
    quotient = np.empty(2), np.empty(2)
    assert np.divmod([5.0, 7.0], 3, out=quotient)[1] is quotient[1]
    assert quotient[1].tolist() == [2, 1]
    with pytest.raises(TypeError, match="does not convert"):
        np.sqrt(total, out=np.zeros(3, dtype=int))
    host = numpy.zeros(3)
    assert np.cumsum(np.ones(3), out=host) is host
    assert host.tolist() == [1, 2, 3]


def test_random_numbers_in_arrays():
    generator = np.random.default_rng(0)
    for out in (numpy.zeros(5), np.zeros(5)):
        for draw in (generator.random, generator.standard_normal, generator.standard_exponential):
            assert draw(out=out) is out
            assert len(numpy.unique(numpy.asarray(out))) == 5
    with pytest.raises(TypeError, match="float32"):
        generator.random(out=numpy.zeros(3, numpy.float32))
    with pytest.raises(ValueError, match="out of shape"):
        generator.random(4, out=numpy.zeros(3))


def test_numbers():
    x = np.sum(np.arange(3))
    assert repr(x) == "np.int64(3)"
    assert f"{x:03d}" == "003"
    assert {x: 1}[3] == 1
    assert np.isscalar(x)
    assert not np.isscalar(np.arange(2))
    with pytest.raises(TypeError, match="hash"):
        hash(np.arange(2))


def test_protocols():
    x = np.arange(3)
    restored = pickle.loads(pickle.dumps(x))
    assert type(restored) is np.ndarray
    assert restored.tolist() == [0, 1, 2]
    assert x.__array_namespace__() is np
    assert isinstance(numpy.ones(3) @ x, np.ndarray)
    assert isinstance(numpy.add(numpy.ones(3), x), np.ndarray)
    assert isinstance(np.ndarray((2, 3)), np.ndarray)
    y = mtl.grad(lambda v: np.sum(np.square(v)))(mtl.asarray([1.0, 2.0]))
    assert y.tolist() == [2, 4]


def test_ufuncs_describe_themselves():
    assert (np.add.nin, np.add.nout, np.add.identity, np.modf.nout) == (2, 1, 0, 2)
    assert repr(np.true_divide) == "<ufunc 'divide'>"
    assert np.power is np.pow
    with pytest.raises(TypeError, match="expected 2 operands, got 1"):
        np.add(1)
    with pytest.raises(TypeError, match="casting 'same_kind'"):
        np.add([1.5], 1, dtype=int)


def test_missing_names_say_why():
    with pytest.raises(AttributeError, match="no 'recarray': no structured types"):
        _ = np.recarray
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = np.nonsense


DISTRIBUTIONS = {
    "lognormal": ((0, 0.5), 1.1331), "logistic": ((1, 2), 1), "rayleigh": ((2,), 2.5066),
    "weibull": ((2,), 0.8862), "pareto": ((4,), 1 / 3), "power": ((2,), 2 / 3),
    "triangular": ((0, 1, 5), 2), "geometric": ((0.3,), 1 / 0.3), "wald": ((2, 8), 2),
    "gamma": ((2, 3), 6), "binomial": ((10, 0.3), 3), "hypergeometric": ((5, 5, 4), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.sample(2)
def test_distributions(name):
    args, mean = DISTRIBUTIONS[name]
    n = 4000
    values = getattr(np.random.default_rng(0), name)(*args, size=n)
    assert isinstance(values, np.ndarray)
    assert float(abs(values.mean() - mean)) < 5 * float(values.std()) / n**0.5


def test_medians_and_seeds():
    rng = np.random.default_rng(0)
    n = 4000
    assert abs(float(np.median(rng.standard_cauchy(n)))) < 0.15
    np.random.seed(1)
    first = np.random.rand(3)
    np.random.seed(1)
    assert first.tolist() == np.random.rand(3).tolist()
    first, second, other = (
        np.random.RandomState(seed).rand(3) for seed in ([1, 2], (1, 2), [2, 1])
    )
    assert first.tolist() == second.tolist() != other.tolist()


@pytest.mark.parametrize("source", "CF")
@pytest.mark.parametrize("order", "CFAK")
def test_the_order_of_elements_in_memory(order, source):
    x = numpy.arange(24.0).reshape(2, 3, 4, order=source)
    empty = lambda module, v: module.empty_like(v[:, ::2].swapaxes(0, 1), order=order)  # noqa: E731
    functions = (
        empty,
        lambda module, v: module.array(v, order=order), lambda module, v: v.copy(order),
        lambda module, v: module.asarray(v, order=order), lambda module, v: v.astype(int, order=order),
        lambda module, v: module.array(v.transpose(1, 0, 2), order=order),
        lambda module, v: module.zeros((2, 3), order="F" if order == "F" else "C"),
    )  # fmt: skip
    for function in functions:
        expected, result = function(numpy, x), function(np, np.array(x, order=source))
        flags = result.flags.c_contiguous, result.flags.f_contiguous
        assert flags == (expected.flags.c_contiguous, expected.flags.f_contiguous)
        assert result.strides == expected.strides
        if function is not empty:
            numpy.testing.assert_array_equal(numpy.asarray(result), expected)


@pytest.mark.parametrize("module", [numpy, np])
def test_strides_of_a_transpose(module):
    x = module.arange(6).reshape(2, 3).T
    windows = module.lib.stride_tricks.as_strided(x, (2, 2), x.strides)
    assert windows.tolist() == [[0, 3], [1, 4]]
    filled = module.asfortranarray(module.ones((2, 3)))
    filled.fill(3)
    assert filled.strides == (8, 16)
    with pytest.raises(ValueError, match="order"):
        module.zeros((2, 3), order="Q")


@pytest.mark.parametrize("other", ["x", "x[1:]", "x[::-1]", "x[1::2]", "x + 1", "x[:0]"])
def test_shared_memory(other):
    results = []
    for namespace in (np, numpy):
        x = namespace.arange(9.0)
        y, even = eval(other, {"x": x}), x[::2]
        results.append([
            bool(f(a, y)) for f in (namespace.shares_memory, namespace.may_share_memory)
            for a in (x, even)
        ])  # fmt: skip
    assert results[0] == results[1]
    x = np.arange(3)
    assert np.shares_memory(x, x.copy())  # until one of them changes
    assert not np.shares_memory(x, [1, 2])


def test_bit_generators_are_shared_and_spawn():
    bits = np.random.PCG64(3)
    first, second = np.random.Generator(bits), np.random.default_rng(bits)
    alone = np.random.default_rng(3)
    assert first.bit_generator is bits
    assert [first.random(), second.random()] == [alone.random(), alone.random()]
    children = [g.random() for g in np.random.default_rng(numpy.random.SeedSequence(3)).spawn(2)]
    assert children == [np.random.Generator(b).random() for b in np.random.PCG64(3).spawn(2)]
    assert children[0] != children[1]
