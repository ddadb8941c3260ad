"""The `mlx.core` of metalloid: arrays, random numbers, transforms and files."""

import numpy as np
import pytest

from metalloid.arrays.execution.known_evaluations import plans
from metalloid.compat.mlx import core as mx


@pytest.fixture
def mlx():
    return pytest.importorskip("mlx.core", reason="the package mlx is not installed")


def test_arrays_are_updated_in_place_for_all_their_names():
    x = mx.array([1.0, 2.0, 3.0])
    y, z = x, mx.array(x)
    x += 1
    x[0] = 7
    assert y is x
    assert x.tolist() == [7, 3, 4]
    assert z.tolist() == [1, 2, 3]


class Symbol:
    """A value that is added to arrays by its own operator."""

    def __radd__(self, other):
        return "sum"


def test_values_with_operators_of_their_own_use_them():
    assert mx.array(1.0) + Symbol() == "sum"
    total = mx.array(1.0)
    total += Symbol()
    assert total == "sum"
    for value in ([1], "1", object()):
        with pytest.raises(ValueError, match="Cannot perform addition"):
            mx.array(1.0) + value


@pytest.mark.parametrize("evaluate", [mx.eval, mx.async_eval])
def test_evaluation_ignores_leaves_that_are_no_arrays(evaluate):
    x = mx.array(1.0) + 2
    assert evaluate({"state": [object(), x]}, b"text", None) is None
    assert x.item() == 3


def test_quantised_matrices_are_not_dequantised_to_integers():
    quantised = mx.quantize(mx.ones((2, 32)), mode="mxfp4")
    with pytest.raises(ValueError, match="must be a floating type, got int32"):
        mx.dequantize(*quantised, mode="mxfp4", dtype=mx.int32)


def test_arguments_of_fourier_transforms_are_checked():
    assert mx.fft.fft(mx.ones(4), n=np.int64(6)).shape == (6,)
    with pytest.raises(ValueError, match="`n` must be greater than 0"):
        mx.fft.fftfreq(0)
    with pytest.raises(ValueError, match="`d` must be non-zero"):
        mx.fft.rfftfreq(4, d=0.0)


@pytest.mark.parametrize("key", [
    1, slice(None, None, -2), (Ellipsis, 0), (None, 1), ([0, 2],), (slice(1, 3), [1, 0]),
], ids=str)  # fmt: skip
def test_indices_are_numpys(key):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = mx.array(values)
    assert x[key].tolist() == values[key].tolist()
    changed = values.copy()
    changed[key] = 5
    x[key] = 5
    assert x.tolist() == changed.tolist()


def test_masks_select_only_for_assignment():
    x = mx.array([1, 2, 3, 4])
    with pytest.raises(ValueError, match="boolean indices are not yet supported"):
        x[x > 2]
    x[x > 2] = mx.array([9, 8])
    assert x.tolist() == [1, 2, 9, 8]


def test_random_numbers_have_the_bits_of_mlx(mlx):
    for m in (mx, mlx):
        m.random.seed(7)
    for name, options in (
        ("uniform", {"shape": (3, 5)}), ("uniform", {"shape": (4,), "dtype": "float16"}),
        ("randint", {"low": -3, "high": 9, "shape": (7,)}), ("bernoulli", {"p": 0.3, "shape": (9,)}),
        ("permutation", {"x": 11}), ("normal", {"shape": (5,)}), ("gumbel", {"shape": (5,)}),
        ("categorical", {"logits": [[0.1, 0.5, 0.2], [1.0, 2.0, 3.0]], "num_samples": 4}),
    ):  # fmt: skip
        ours, theirs = (
            getattr(m.random, name)(**{
                key: getattr(m, value) if key == "dtype" else
                m.array(value) if key == "logits" else value
                for key, value in options.items()
            })
            for m in (mx, mlx)
        )  # fmt: skip
        assert repr(ours.dtype) == repr(theirs.dtype)
        a, b = np.array(ours), np.array(theirs)
        if name in ("normal", "gumbel"):  # logarithms and erfinv differ in the last bits
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        else:
            assert a.tolist() == b.tolist(), name
    assert mx.random.split(mx.random.key(3), 5).tolist() == mlx.random.split(
        mlx.random.key(3), 5
    ).tolist()  # fmt: skip


def test_gradients_of_trees_and_writes():
    def loss(params, scale):
        params["seen"] = mx.array(1.0)
        return (params["w"] * params["w"]).sum() * scale, "auxiliary"

    params = {"w": mx.array([1.0, 2.0])}
    (value, text), gradient = mx.value_and_grad(loss)(params, 3)
    assert (value.item(), text) == (15, "auxiliary")
    assert gradient["w"].tolist() == [6, 12]
    assert params["seen"].item() == 1
    with pytest.raises(ValueError, match="should contain only arrays"):
        mx.grad(lambda x: x)(3.0)


def test_custom_functions_state_their_derivatives():
    @mx.custom_function
    def clipped(x):
        return mx.minimum(x, 1.0)

    @clipped.vjp
    def clipped_vjp(primals, cotangent, output):
        return cotangent * 2

    assert mx.grad(lambda x: clipped(x).sum())(mx.array([0.5, 2.0])).tolist() == [2, 2]
    assert mx.vmap(lambda x: clipped(x) + 1)(mx.array([0.5, 2.0])).tolist() == [1.5, 2]


def test_programs_read_and_replace_captured_state():
    state = {"n": mx.array(1.0)}

    def step(x, name="n"):
        state[name] = state[name] + x
        return [state[name] * 2]

    compiled = mx.compile(step, inputs=state, outputs=state)
    assert [compiled(mx.array(2.0))[0].item() for _ in range(3)] == [6, 10, 14]
    assert state["n"].item() == 7
    with pytest.raises(ValueError, match="trees of arrays or constants"):
        compiled(object())


def test_shapeless_programs_run_recorded_operations():
    calls = []

    @lambda f: mx.compile(f, shapeless=True)
    def fun(x):
        calls.append(x.shape)
        return x.reshape(x.shape[0], -1) + 1

    assert fun(mx.zeros((2, 3, 2))).shape == (2, 6)
    assert fun(mx.zeros((2, 5, 2))).shape == (2, 10)
    assert calls == [(2, 3, 2)]
    with pytest.raises(ValueError, match="Cannot reshape"):
        fun(mx.zeros((3, 3, 3)))


def test_functions_survive_a_file(tmp_path):
    weight = mx.array([[1.0, 2.0], [3.0, 4.0]])
    file = str(tmp_path / "fn.mlxfn")

    def fun(x, *, bias):
        x = mx.maximum(x @ weight, 0) + bias
        x[0] = x[1] * 2
        return x, x.T.sum(axis=0)

    given = mx.array([[1.0, -1.0], [0.5, 2.0]]), mx.array(1.5)
    mx.export_function(file, fun, given[0], bias=given[1], metadata="text")
    imported, metadata = mx.import_function(file, return_metadata=True)
    assert metadata == "text"
    for ours, expected in zip(imported(given[0], bias=given[1]), fun(given[0], bias=given[1]),
                              strict=True):  # fmt: skip
        assert ours.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="No imported function found"):
        imported(given[0])
    with pytest.raises(ValueError, match="results cannot be recorded"):
        mx.export_function(file, mx.grad(lambda x: (x * x).sum()), given[0])


def test_files_survive_a_round_trip(tmp_path):
    arrays = {"a": mx.array([[1.0, 2.0]]), "b.c": mx.arange(5, dtype=mx.int8)}
    mx.save_gguf(str(tmp_path / "x.gguf"), arrays, {"name": "text", "n": mx.array([1, 2])})
    loaded, metadata = mx.load(str(tmp_path / "x.gguf"), return_metadata=True)
    assert {k: v.tolist() for k, v in loaded.items()} == {"a": [[1, 2]], "b.c": [0, 1, 2, 3, 4]}
    assert metadata["name"] == "text"
    assert metadata["n"].tolist() == [1, 2]
    mx.savez(str(tmp_path / "y"), **arrays)
    mx.save_safetensors(str(tmp_path / "z"), arrays, {"k": "v"})
    for name in ("y.npz", "z.safetensors"):
        assert mx.load(str(tmp_path / name))["b.c"].dtype == mx.int8
    with pytest.raises(RuntimeError, match="Failed to open file"):
        mx.load(str(tmp_path / "none.npy"))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes([3]) * 40)
    with pytest.raises(RuntimeError, match="version"):
        mx.load(str(tmp_path / "bad.gguf"))


def test_gguf_of_others_has_the_same_elements(mlx, tmp_path):
    file = str(tmp_path / "x.gguf")
    mlx.save_gguf(file, {"w": mlx.array([[1.5, 2.5]], mlx.float16)}, {"k": "v"})
    loaded, metadata = mx.load(file, return_metadata=True)
    assert (loaded["w"].tolist(), metadata["k"]) == ([[1.5, 2.5]], "v")
    mx.save_gguf(file, {"w": mx.array([[1, 2], [3, 4]])}, {"k": ["a", "b"]})
    theirs, metadata = mlx.load(file, return_metadata=True)
    assert (theirs["w"].tolist(), metadata["k"]) == ([[1, 2], [3, 4]], ["a", "b"])


def test_kernels_of_the_user_run():
    kernel = mx.fast.metal_kernel("twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = T(2) * x[i];")  # fmt: skip
    (y,) = kernel(
        inputs=[mx.array([1.0, 2.0])], output_shapes=[(2,)], output_dtypes=[mx.float32],
        grid=(2, 1, 1), threadgroup=(2, 1, 1), template=[("T", mx.float32)],
    )  # fmt: skip
    assert y.tolist() == [2, 4]
    gradient = mx.grad(lambda x: kernel(
        inputs=[x], output_shapes=[(2,)], output_dtypes=[mx.float32], grid=(2, 1, 1),
        threadgroup=(2, 1, 1), template=[("T", mx.float32)],
    )[0].sum())  # fmt: skip
    assert gradient(mx.array([1.0, 2.0])).tolist() == [2, 2]


@pytest.mark.parametrize("size", [12, 20, 28])
def test_hadamard_matrices_are_those_of_mlx(mlx, size):
    from metalloid.compat.mlx.core.ops.numerics import hadamard_matrix

    matrix = hadamard_matrix(size)
    np.testing.assert_array_equal(matrix @ matrix.T, size * np.eye(size))
    columns = np.array(mlx.hadamard_transform(mlx.eye(size), scale=1.0))
    assert (matrix == columns.T).all()


def test_views_reinterpret_bits():
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    for dtype in ("uint32", "int16", "uint8", "uint64", "complex64"):
        expected = values.view(dtype)
        result = np.array(mx.view(mx.array(values), getattr(mx, dtype)))
        assert result.tolist() == expected.tolist(), dtype


def test_quantised_products_refuse_integers():
    w = mx.arange(64).reshape(1, 64)
    with pytest.raises(ValueError, match=r"\[quantize\] expected floats, got int32"):
        mx.quantize(w)
    packed, scales, biases = mx.quantize(w.astype(mx.float32), bits=8)
    np.testing.assert_allclose(
        np.array(mx.dequantize(packed, scales, biases, bits=8)), np.array(w), atol=0.2
    )


def test_a_token_with_a_cache_is_one_evaluation():
    activate = mx.compile(lambda gate, x: gate * mx.sigmoid(gate) * x)
    rng = np.random.default_rng(2)
    weights = [mx.array(rng.standard_normal((32, 32)).astype(np.float32) / 6) for _ in range(3)]
    cache = mx.zeros((1, 1, 16, 32))
    mx.eval(cache, *weights)
    x, expected = mx.ones((1, 32)), np.ones((1, 32))
    rows = np.zeros((16, 32))
    evaluations = []
    for k in range(6):
        new = activate(x @ weights[0], x @ weights[1])
        assert new._a._node.kind != "buffer"
        cache[..., k : k + 1, :] = new
        seen = cache[..., : k + 1, :]
        met = mx.fast.scaled_dot_product_attention(new[None, None], seen, seen, scale=0.3)
        x = met[0, 0] @ weights[2]
        del seen, met, new
        evaluations.append(len(plans))
        mx.async_eval(x)
        a, b, c = (np.array(w, np.float64) for w in weights)
        gate = expected @ a
        rows[k] = gate / (1 + np.exp(-gate)) * (expected @ b)
        scores = np.exp(rows[: k + 1] @ rows[k] * 0.3)
        expected = scores[None] / scores.sum() @ rows[: k + 1] @ c
        np.testing.assert_allclose(np.array(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.array(cache)[0, 0, :6], rows[:6], rtol=1e-4, atol=1e-5)
    assert len(set(evaluations[2:])) == 1  # the later ones have the plan of an earlier one
