"""Products, decompositions and transforms by cuBLAS, cuSOLVER and cuFFT.

Over a stand-in for them (nvidia_stand_in.py), which checks what they are given, and over the real
ones on a GPU, with nvmath-python: METALLOID_REQUIRE=cuda,nvmath lets it fail without.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.libraries import bindings

sys.path.insert(0, str(Path(__file__).parent.parent))
import nvidia_stand_in

NAMES = ["cublas", "cusolverDn", "cufft"]
ASKED = {"products": "cublas", "decompositions": "cusolver", "transforms": "cufft"}


def some(count, *values):
    """Parameters of which only the first few are tried every day."""
    rest = [pytest.param(value, marks=pytest.mark.slow) for value in values[count:]]
    return [*values[:count], *rest]


TYPES = some(1, "complex64", "float32", "float64", "complex128")
SHAPES = some(1, (3, 6, 6), (6, 6))
PAIRS = [((4, 5, 7), (4, 7, 3)), ((5, 7), (4, 7, 3)), ((5, 7), (7, 3)), ((4, 5, 7), (7, 3)),
         ((1, 6), (6, 1))]  # fmt: skip


@pytest.fixture(scope="module", params=["stand-in", "gpu"])
def device(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "gpu":
            found = real_gpu()
        else:
            for name, module in nvidia_stand_in.stand_ins().items():
                patch.setitem(sys.modules, f"nvmath.bindings.{name}", module)
            bindings.bindings.cache_clear()
            found = nvidia_stand_in.StandInCard()
        with mtl.config.scope(**ASKED):
            yield found
    bindings.bindings.cache_clear()


def real_gpu():
    try:
        found = mtl.Device("cuda")
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"cuda: {error}")
    bindings.bindings.cache_clear()
    try:
        for name in NAMES:
            bindings.bindings(name)
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"nvmath: {error}")
    return found


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def near(got, want, units):
    """Whether the difference is so many rounding errors, relative to the largest element."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    eps = 2.0**-7 if got.dtype.name == "bfloat16" else float(np.finfo(got.dtype).eps)
    error, size = np.abs(wide(got) - want).max(initial=0), np.abs(want).max(initial=0)
    assert error <= units * eps * size, f"{error / (eps * size)} units"


def on(device, x):
    return mtl.asarray(x, device=device)


def calls_of(name):
    return sys.modules[f"nvmath.bindings.{name}"].calls


# -- products


@pytest.mark.parametrize(
    "dtype", some(1, "float16", "float32", "bfloat16", "float64", "complex64", "complex128")
)
@pytest.mark.parametrize("shapes", some(1, *PAIRS))
@pytest.mark.parametrize("turned", some(2, (0,), (1,), (), (0, 1)))
def test_products(device, rng, dtype, shapes, turned):
    kind = mtl.asarray([0], dtype=dtype).numpy().dtype
    x, y = (random(rng, shape, np.complex64 if kind.kind == "c" else np.float32).astype(kind)
            for shape in shapes)  # fmt: skip
    a, b = on(device, x), on(device, y)
    if 0 in turned:
        a = on(device, np.ascontiguousarray(np.swapaxes(x, -1, -2))).mT
    if 1 in turned:
        b = on(device, np.ascontiguousarray(np.swapaxes(y, -1, -2))).mT
    want = wide(x) @ wide(y)
    got = (a @ b).numpy()
    near(got, want, 4 if kind.itemsize > 2 else 1)


@pytest.mark.slow
def test_a_product_of_parts_of_matrices(device, rng):
    x = random(rng, (9, 12), "float32")
    a = on(device, x)
    near((a[1:6, 2:9] @ a[2:9, 1:4]).numpy(), wide(x)[1:6, 2:9] @ wide(x)[2:9, 1:4], 4)
    near((a[::2, ::3] @ a[:4, ::2]).numpy(), wide(x)[::2, ::3] @ wide(x)[:4, ::2], 4)


def test_many_rows_with_the_same_sums_in_half_precision(device):
    x = np.ones((8, 5000), np.float16)
    assert (on(device, x) @ on(device, x).mT).tolist() == [[5000.0] * 8] * 8  # not 2048


def test_an_empty_product(device):
    assert (mtl.ones((2, 0), device=device) @ mtl.ones((0, 3), device=device)).tolist() == [
        [0] * 3
    ] * 2


# -- decompositions


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_and_inverses(device, rng, dtype, shape):
    x = random(rng, shape, dtype) + 4 * np.eye(shape[-1], dtype=dtype)
    for right in ((6,), (*shape[:-1], 2), (6, 2)):
        y = random(rng, right, dtype)
        got = mtl.linalg.solve(on(device, x), on(device, y)).numpy()
        near(got, np.linalg.solve(wide(x), wide(y)), 32)
    near(mtl.linalg.inv(on(device, x)).numpy(), np.linalg.inv(wide(x)), 32)


@pytest.mark.slow
def test_one_matrix_for_many_right_sides(device, rng):
    x, y = random(rng, (5, 5), "float64") + 3 * np.eye(5), random(rng, (4, 5, 2), "float64")
    got = mtl.linalg.solve(on(device, x), on(device, y)).numpy()
    near(got, np.linalg.solve(x, y), 32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_determinants(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    a = on(device, x)
    near(mtl.linalg.det(a).numpy(), np.linalg.det(wide(x)), 32)
    sign, size = mtl.linalg.slogdet(a)
    want = np.linalg.slogdet(wide(x))
    near(sign.numpy(), want.sign, 32)
    near(size.numpy(), want.logabsdet, 64)


@pytest.mark.parametrize("shape", some(1, (2, 7, 4), (3, 6, 6), (6, 6), (7, 4), (4, 7)))
@pytest.mark.parametrize("dtype", TYPES)
def test_triangles(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    p, lower, upper = (part.numpy() for part in mtl.linalg.lu(on(device, x)))
    assert (p.sum(axis=-1) == 1).all()
    assert (p.sum(axis=-2) == 1).all()
    assert np.array_equal(lower, np.tril(lower))
    assert np.array_equal(upper, np.triu(upper))
    assert np.abs(lower).max() <= 1.5  # LAPACK takes |re| + |im| for the size
    near((wide(p) @ wide(lower) @ wide(upper)).astype(dtype), wide(x), 16)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky(device, rng, dtype, shape, upper):
    x = random(rng, shape, dtype)
    x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)
    hidden = np.tril(x) if not upper else np.triu(x)  # the other triangle is not read
    got = mtl.linalg.cholesky(on(device, hidden), upper=upper).numpy()
    near(got, np.linalg.cholesky(wide(x), upper=upper), 16)


@pytest.mark.parametrize("mode", some(1, "complete", "reduced"))
@pytest.mark.parametrize("shape", some(1, (2, 4, 7), (5, 5), (7, 4), (4, 7), (3, 7, 4)))
@pytest.mark.parametrize("dtype", TYPES)
def test_qr(device, rng, dtype, shape, mode):
    x = random(rng, shape, dtype)
    q, r = (part.numpy() for part in mtl.linalg.qr(on(device, x), mode=mode))
    want = np.linalg.qr(x, mode=mode)
    assert q.shape == want.Q.shape
    assert np.array_equal(r, np.triu(r))
    near((wide(q) @ wide(r)).astype(dtype), wide(x), 16)
    unit = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2))
    near((np.conj(np.swapaxes(wide(q), -1, -2)) @ wide(q)).astype(dtype), unit, 16)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    x = x + np.conj(np.swapaxes(x, -1, -2))
    lower = on(device, np.tril(x))  # the other triangle is not read
    values, vectors = (part.numpy() for part in mtl.linalg.eigh(lower))
    want = np.linalg.eigvalsh(wide(x))
    near(values, want, 16)
    near((wide(x) @ wide(vectors)).astype(dtype), wide(vectors) * want[..., None, :], 32)
    near(mtl.linalg.eigvalsh(lower).numpy(), want, 16)


@pytest.mark.parametrize("full", some(1, False, True))
@pytest.mark.parametrize("shape", some(1, (3, 4, 7), (5, 5), (7, 4), (4, 7), (2, 7, 4)))
@pytest.mark.parametrize("dtype", TYPES)
def test_singular_values(device, rng, dtype, shape, full):
    x = random(rng, shape, dtype)
    u, s, vh = (part.numpy() for part in mtl.linalg.svd(on(device, x), full_matrices=full))
    want = np.linalg.svd(wide(x), full_matrices=full)
    assert (u.shape, vh.shape) == (want.U.shape, want.Vh.shape)
    near(s, want.S, 16)
    near(mtl.linalg.svdvals(on(device, x)).numpy(), want.S, 16)
    k = min(shape[-2:])
    again = (wide(u)[..., :k] * wide(s)[..., None, :]) @ wide(vh)[..., :k, :]
    near(again.astype(dtype), wide(x), 32)


@pytest.mark.slow
def test_half_floats_and_integers(device, rng):
    x = random(rng, (6, 6), "float16") + 4 * np.eye(6, dtype=np.float16)
    got = mtl.linalg.inv(on(device, x)).numpy()
    assert got.dtype == np.float16
    near(got, np.linalg.inv(wide(x)), 1)
    whole = np.arange(9).reshape(3, 3) + 5 * np.eye(3, dtype=int)
    near(mtl.linalg.det(on(device, whole)).numpy(), np.linalg.det(whole), 8)


@pytest.mark.parametrize("many", some(1, True, False))
@pytest.mark.parametrize(
    ("name", "bad", "fault"),
    [
        ("solve", np.ones((3, 3)), "is singular"),
        ("inv", np.zeros((3, 3)), "is singular"),
        ("cholesky", -np.eye(3), "is not positive definite"),
        ("eigh", np.full((3, 3), np.nan), "has eigenvalues that were not found"),
        ("eigvalsh", np.full((3, 3), np.nan), "has eigenvalues that were not found"),
        ("svd", np.full((3, 3), np.nan), "has singular values that were not found"),
        ("svdvals", np.full((3, 3), np.nan), "has singular values that were not found"),
    ],
)
def test_what_is_wrong_is_said_as_on_the_cpu(device, name, bad, fault, many):
    x = np.stack([np.eye(3), bad, bad]).astype(np.float32) if many else bad.astype(np.float32)
    place = r"matrix (1,) of shape (3, 3, 3)" if many else "the matrix of shape (3, 3)"
    said = []
    for where in (device, "cpu"):
        args = [on(where, x)] * (2 if name == "solve" else 1)
        with pytest.raises(
            mtl.linalg.LinAlgError, match=re.escape(f"[{name}] {place} {fault}")
        ) as e:
            np.asarray(getattr(mtl.linalg, name)(*args)[0])
        said.append(str(e.value))
    assert said[0] == said[1]


@pytest.mark.slow
def test_a_singular_matrix_has_a_determinant(device):
    a = on(device, np.ones((2, 3, 3), np.float32))
    assert mtl.linalg.det(a).tolist() == [0, 0]
    sign, size = mtl.linalg.slogdet(a)
    assert (sign.tolist(), size.tolist()) == ([0, 0], [-np.inf] * 2)


def test_what_is_decomposed_stays_as_it_was(device, rng):
    x = random(rng, (6, 6), "float32")
    a = on(device, x)
    np.asarray(a)
    for function in (mtl.linalg.inv, mtl.linalg.svdvals, mtl.linalg.eigvalsh, mtl.linalg.det):
        function(a).numpy()
    assert np.array_equal(a.numpy(), x)


def test_calls_and_kernels_are_in_turn(device, rng):
    x = random(rng, (40, 40), "float32") / 40
    a = on(device, x)
    want = wide(x)
    for _ in range(5):
        a = mtl.linalg.inv(a @ a + mtl.eye(40, device=device)) * 2 - 1
        want = np.linalg.inv(want @ want + np.eye(40)) * 2 - 1
    near(a.numpy(), want, 1000)


# -- transforms


@pytest.mark.parametrize("norm", some(1, "forward", "backward", "ortho"))
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", some(2, "irfft", "ihfft", "fft", "ifft", "rfft", "hfft"))
def test_transforms_along_an_axis(device, rng, name, dtype, norm):
    if name in ("rfft", "ihfft") and np.dtype(dtype).kind == "c":
        dtype = dtype.replace("complex64", "float32").replace("complex128", "float64")
    x = random(rng, (3, 8, 5), dtype)
    for n, axis in ((None, -1), (12, 0), (7, 2)):
        got = getattr(mtl.fft, name)(on(device, x), n=n, axis=axis, norm=norm)
        want = getattr(np.fft, name)(wide(x), n=n, axis=axis, norm=norm)
        assert got.dtype == getattr(np.fft, name)(x, n=n, axis=axis, norm=norm).dtype
        near(got.numpy(), want, 8)


@pytest.mark.parametrize("name", some(1, "irfftn", "fftn", "ifftn", "rfftn"))
@pytest.mark.parametrize("dtype", some(1, "float32", "complex128"))
def test_transforms_along_several_axes(device, rng, name, dtype):
    if name == "rfftn":
        dtype = "float32"
    x = random(rng, (4, 3, 2, 6, 5), dtype)
    for s, axes in ((None, None), ((3, 4, 6), (2, 1, 3))):
        got = getattr(mtl.fft, name)(on(device, x), s=s, axes=axes).numpy()
        near(got, getattr(np.fft, name)(wide(x), s=s, axes=axes), 16)


def test_what_is_transformed_stays_as_it_was(device, rng):
    x = random(rng, (4, 9), "complex64")
    a = on(device, x)
    for function in (mtl.fft.fft, mtl.fft.irfft, mtl.fft.ifft2):
        function(a).numpy()
    assert np.array_equal(a.numpy(), x)
    part = a[1:, 1:]  # begins at an odd place
    near(mtl.fft.fft(part).numpy(), np.fft.fft(wide(x)[1:, 1:]), 8)


@pytest.mark.slow
def test_half_floats_are_transformed_in_single_precision(device, rng):
    x = random(rng, (16,), "float16")
    got = mtl.fft.rfft(on(device, x)).numpy()
    assert got.dtype == np.complex64
    near(got, np.fft.rfft(wide(x)), 8)


# -- who is asked


def test_the_library_takes_rows_for_columns(device, rng):
    if not isinstance(device, nvidia_stand_in.StandInCard):
        pytest.skip("calls are seen on the stand-in only")
    a, b = on(device, random(rng, (2, 5, 7), "float32")), on(device, random(rng, (3, 7), "float32"))
    calls_of("cublas").clear()
    (a @ b.mT).numpy()
    (call,) = (call for call in calls_of("cublas") if call[0].startswith("gemm"))
    _, _, turn_a, turn_b, m, n, k, _, _, kind, lda, _, _, _, ldb, _, _, _, _, ldc, *_ = call
    assert (turn_a, turn_b, m, n, k, lda, ldb, ldc) == (1, 0, 3, 10, 7, 7, 7, 3)  # one product
    assert kind == 0


def test_single_precision_is_exact_unless_asked(device):
    if not isinstance(device, nvidia_stand_in.StandInCard):
        pytest.skip("calls are seen on the stand-in only")
    a = mtl.ones((4, 4), device=device)
    found = []
    for tf32 in (False, True):
        calls_of("cublas").clear()
        with mtl.config.scope(tf32=tf32):
            product = a @ a
        product.numpy()
        found.append(calls_of("cublas")[-1][-2])
    assert found == [68, 77]  # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32


def test_by_default_what_is_small_is_not_sent_to_a_library(device):
    if not isinstance(device, nvidia_stand_in.StandInCard):
        pytest.skip("calls are seen on the stand-in only")
    small, large = mtl.ones((8, 8), device=device), mtl.ones((128, 128), device=device)
    pile = mtl.eye(3, device=device) * mtl.ones((20, 1, 1), device=device)
    with mtl.config.scope(**dict.fromkeys(ASKED, "auto")):
        for x, names in ((small, ["matmul"]), (large, ["matmul", "svd"]), (pile, ["cholesky"])):
            device.works.clear()
            (x @ x).numpy()
            mtl.linalg.svdvals(x).numpy()
            if x is pile:
                mtl.linalg.cholesky(x).numpy()
            assert device.works == names
    with mtl.config.scope(**dict.fromkeys(ASKED, "host")):
        device.works.clear()
        (large @ large).numpy()
        mtl.fft.fft(mtl.linalg.svdvals(large)).numpy()
        assert device.works == []


def test_a_graph_records_no_work_of_a_library(device):
    x = mtl.eye(4, device=device)
    x.numpy()
    refused = pytest.raises(mtl.LaunchError, match="work of a library, which a graph does not rec")
    with refused, mtl.Graph(device):
        mtl.async_eval(x @ x)


def test_errors_of_a_library_are_ours(device, monkeypatch):
    if not isinstance(device, nvidia_stand_in.StandInCard):
        pytest.skip("calls are seen on the stand-in only")

    def refused(*args):
        raise nvidia_stand_in.Error("CUBLAS_STATUS_NOT_SUPPORTED")

    monkeypatch.setattr(
        sys.modules["nvmath.bindings.cublas"], "gemm_strided_batched_ex_64", refused
    )
    a = mtl.ones((4, 4), device=device)
    with pytest.raises(mtl.LaunchError, match="cuBLAS failed: CUBLAS_STATUS_NOT_SUPPORTED"):
        (a @ a).numpy()


def test_without_nvmath_it_is_named_to_who_asks_for_it(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(sys.modules, f"nvmath.bindings.{name}", None)
    bindings.bindings.cache_clear()
    card = nvidia_stand_in.StandInCard()
    a = mtl.ones((128, 128), device=card)
    with mtl.config.scope(**dict.fromkeys(ASKED, "auto")):
        assert (a @ a).numpy()[0, 0] == 128
        assert mtl.linalg.det(a).numpy() == 0
    assert card.works == []
    assert card.libraries.solver is card.libraries.fourier is None
    named = r"nvmath-python.*metalloid\[cuda-math\]"
    with mtl.config.scope(products="cublas"), pytest.raises(mtl.DeviceUnavailable, match=named):
        a @ a
    bindings.bindings.cache_clear()


def test_nvmath_is_not_imported_before_it_is_needed():
    code = (
        "import sys, metalloid as mtl; x = mtl.ones((2, 2), device='cpu'); (x @ x).numpy(); "
        "mtl.linalg.inv(x + mtl.eye(2, device='cpu')).numpy(); assert 'nvmath' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_stand_in_takes_what_the_bindings_take(monkeypatch):
    """As many parameters as the first line of a function's documentation names."""
    for name, stand_in in nvidia_stand_in.stand_ins().items():
        monkeypatch.delitem(sys.modules, f"nvmath.bindings.{name}", raising=False)
        real = pytest.importorskip(f"nvmath.bindings.{name}", reason="nvmath is not installed")
        functions = {key: f for key, f in vars(stand_in).items() if inspect.isfunction(f)}
        assert functions
        for key, function in functions.items():
            first = getattr(real, key).__doc__.split("\n")[0]
            wanted = first[first.index("(") + 1 : first.index(")")].split(", ")
            assert function.takes == len([parameter for parameter in wanted if parameter]), first
