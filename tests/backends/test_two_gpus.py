"""Two NVIDIA GPUs in one process: both at once, and kept apart.

Wants two GPUs, cuda-bindings and, for tensors, torch: METALLOID_REQUIRE=GPUs lets it fail without.
"""

import threading

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void step(device float* x, constant float& a, uint i [[thread_position_in_grid]])
{ x[i] = a * x[i] + 1; }
"""
COUNT = 1000
BOTH = (0, 1)


@pytest.fixture(scope="module", autouse=True)
def gpus():
    devices = [device for device in mtl.devices() if device.name.startswith("cuda")]
    if len(devices) < 2:
        pytest.skip(f"two NVIDIA GPUs are missing: there are {len(devices)}")
    return devices


@pytest.fixture(scope="module")
def steps():
    return [mtl.library(TEXT, device=f"cuda:{number}").step for number in BOTH]


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch", reason="torch is missing, with two GPUs")
    if torch.cuda.device_count() < 2:
        pytest.skip("torch finds no two GPUs")
    return torch


def buffers():
    return [mtl.Buffer(np.arange(COUNT, dtype=np.float32), device=f"cuda:{n}") for n in BOTH]


def after(steps, factor, start=None):
    x = np.arange(COUNT, dtype=np.float32) if start is None else start
    for _ in range(steps):
        x = (factor * x + 1).astype(np.float32)
    return x


def test_launches_alternate_between_them(steps):
    mine = buffers()
    for _ in range(3):
        for number in BOTH:
            steps[number](mine[number], 2.0 + number, threads=COUNT)
    for number in BOTH:
        assert np.array_equal(np.asarray(mine[number]), after(3, 2.0 + number))


def test_threads_use_both_at_once(steps):
    results = {}

    def work(name, number):
        x = mtl.Buffer(np.zeros(COUNT, np.float32), device=f"cuda:{number}")
        for _ in range(500):
            steps[number](x, 1.0, threads=COUNT)
        results[name] = np.asarray(x).copy()

    threads = [threading.Thread(target=work, args=(k, k % 2)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((results[k] == 500).all() for k in range(4))


def test_graphs_of_both(steps):
    mine = buffers()
    graphs = [mtl.Graph(f"cuda:{number}") for number in BOTH]
    for number in BOTH:
        with graphs[number]:
            for _ in range(10):
                steps[number](mine[number], 1.0, threads=COUNT)
    for _ in range(2):
        for graph in graphs:
            graph.launch()
    for number in BOTH:
        assert np.array_equal(np.asarray(mine[number]), after(20, 1.0))


def test_a_graph_being_recorded_on_one_leaves_the_other_alone(steps):
    mine = buffers()
    graph = mtl.Graph("cuda:0")
    with graph:
        steps[0](mine[0], 2.0, threads=COUNT)
        steps[1](mine[1], 2.0, threads=COUNT).wait()
    assert len(graph) == 1
    assert np.array_equal(np.asarray(mine[0]), after(0, 2.0))
    assert np.array_equal(np.asarray(mine[1]), after(1, 2.0))


@pytest.mark.parametrize("number", BOTH)
def test_a_buffer_of_the_other_is_refused(steps, number):
    mine = buffers()
    with pytest.raises(
        mtl.ArgumentError, match=f"is on cuda:{1 - number}, the kernel on cuda:{number}"
    ):
        steps[number](mine[1 - number], 1.0, threads=COUNT)
    assert np.array_equal(np.asarray(mine[1 - number]), after(0, 1.0))


def test_an_array_goes_from_one_to_the_other():
    x = np.random.default_rng(0).standard_normal((300, 500)).astype(np.float32)
    a = mtl.asarray(x, device="cuda:0")
    b = a.to_device("cuda:1")
    assert (a.device.name, b.device.name) == ("cuda:0", "cuda:1")
    want = x.astype(np.float64) @ x.T.astype(np.float64)
    for got in (a @ a.mT, b @ b.mT):
        assert np.abs(got.numpy() - want).max() <= 16 * 2**-23 * np.abs(want).max()
    with pytest.raises(ValueError, match="one operand is on cuda:0, the other on cuda:1"):
        a + b


def test_tensors_of_the_second(steps, torch):
    x = torch.arange(float(COUNT), device="cuda:1")
    steps[1](x, 2.0, threads=COUNT)
    assert np.array_equal(x.cpu().numpy(), after(1, 2.0))
    with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream(1)):
        steps[1](x, 2.0, threads=COUNT)
        values = x.cpu().numpy()
    assert np.array_equal(values, after(2, 2.0))
    with pytest.raises(mtl.ArgumentError, match="on GPU 1"):
        steps[0](x, 2.0, threads=COUNT)
    array = mtl.from_dlpack(x)
    assert array.device.name == "cuda:1"
    assert np.array_equal((array + 1).numpy(), after(2, 2.0) + 1)


def test_buffers_of_both_become_tensors(torch):
    for number, buffer in enumerate(buffers()):
        tensor = torch.from_dlpack(buffer)
        assert tensor.device.index == number
        assert np.array_equal(tensor.cpu().numpy(), np.arange(COUNT))


def test_libraries_of_both(gpus):
    if gpus[0].libraries.solver is None:
        pytest.skip("nvmath is missing, with two GPUs")
    x = np.random.default_rng(1).standard_normal((200, 200)).astype(np.float32) + 20 * np.eye(200)
    x = x.astype(np.float32)
    want = np.linalg.inv(x.astype(np.float64))
    with mtl.config.scope(products="cublas", decompositions="cusolver", transforms="cufft"):
        for _ in range(2):
            for gpu in gpus[:2]:
                a = mtl.asarray(x, device=gpu)
                assert np.abs(mtl.linalg.inv(a).numpy() - want).max() <= 1e-5 * np.abs(want).max()
                assert np.abs((a @ a).numpy() - x @ x).max() <= 1e-5 * np.abs(x @ x).max()
                spectrum = np.fft.fft(x.astype(np.float64))
                off = np.abs(mtl.fft.fft(a).numpy() - spectrum).max()
                assert off <= 1e-5 * np.abs(spectrum).max()
