"""The choice of NVIDIA's libraries, their calls and errors."""

import inspect
import subprocess
import sys

import pytest
from nvidia_libraries import LIBRARIES, NAMES, calls_of, on, random

import metalloid as mtl
import nvidia_stand_in
from metalloid.backends.cuda.libraries import bindings


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
    kinds = []
    for tf32 in (False, True):
        calls_of("cublas").clear()
        with mtl.config.scope(tf32=tf32):
            product = a @ a
        product.numpy()
        kinds.append(calls_of("cublas")[-1][-2])
    assert kinds == [68, 77]  # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32


def test_by_default_what_is_small_is_not_sent_to_a_library(device):
    if not isinstance(device, nvidia_stand_in.StandInCard):
        pytest.skip("calls are seen on the stand-in only")
    small, large = mtl.ones((8, 8), device=device), mtl.ones((256, 256), device=device)
    pile = mtl.eye(3, device=device) * mtl.ones((20, 1, 1), device=device)
    with mtl.config.scope(**dict.fromkeys(LIBRARIES, "auto")):
        for x, names in ((small, []), (large, ["matmul", "svd"]), (pile, ["cholesky"])):
            device.works.clear()
            (x @ x).numpy()
            mtl.linalg.svdvals(x).numpy()
            if x is pile:
                mtl.linalg.cholesky(x).numpy()
            assert device.works == names
        device.works.clear()
        for length in (1 << 10, 1 << 19):
            mtl.fft.fft(mtl.ones(length, dtype=mtl.complex64, device=device)).numpy()
        assert device.works == ["fft"]
    with mtl.config.scope(**dict.fromkeys(LIBRARIES, "host")):
        device.works.clear()
        (large @ large).numpy()
        mtl.fft.fft(mtl.linalg.svdvals(large)).numpy()
        assert device.works == []


def test_a_graph_records_no_work_of_a_library(device):
    x = mtl.eye(4, device=device)
    x.numpy()
    refused = pytest.raises(mtl.LaunchError, match="which a graph cannot record")
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


def test_the_error_without_nvmath_names_it(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(sys.modules, f"nvmath.bindings.{name}", None)
    bindings.bindings.cache_clear()
    card = nvidia_stand_in.StandInCard()
    a = mtl.ones((128, 128), device=card)
    with mtl.config.scope(**dict.fromkeys(LIBRARIES, "auto")):
        assert (a @ a).numpy()[0, 0] == 128
        assert mtl.linalg.det(a).numpy() == 0
    assert card.works == []
    assert card.libraries.solver is card.libraries.fourier is None
    named = r"nvmath-python.*metalloid\[cuda-math\]"
    with mtl.config.scope(products="cublas"), pytest.raises(mtl.DeviceUnavailable, match=named):
        (a @ a).numpy()
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
            expected = first[first.index("(") + 1 : first.index(")")].split(", ")
            assert function.takes == len([parameter for parameter in expected if parameter]), first
