"""Gradients of torch and of jax flow through kernels."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
kernel void add(device const float *x, device float *y, constant float &scale,
                uint i [[thread_position_in_grid]]) { y[i] += scale * x[i] * x[i]; }
kernel void square(device const bfloat *x, device float *y, constant int &n,
                   uint i [[thread_position_in_grid]]) {
  if (int(i) < n) y[i] = float(x[i]) * float(x[i]);
}"""
X, WEIGHTS = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]
BY_X, BY_SCALE = [2.0, 8.0, 72.0, 128.0], 91.0


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    lib = mtl.library(SOURCE, device="cpu")
    add, square = lib.add.torch(), lib.square.torch()
    x = torch.tensor(X, requires_grad=True)
    scale = torch.tensor(3.0, requires_grad=True)
    y = add(x, x * x, scale=scale, threads=4)
    y = square(x.to(torch.bfloat16), y, 2, threads=4)  # overwrites the first two
    (y * torch.tensor(WEIGHTS)).sum().backward()
    assert x.grad.tolist() == BY_X
    assert scale.grad.item() == BY_SCALE
    with pytest.raises(mtl.ArgumentError, match="'y' must be a tensor"):
        add(x, np.zeros(4, np.float32), scale, threads=4)


def test_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    lib = mtl.library(SOURCE, device="cpu")
    add, square = lib.add.jax(), lib.square.jax()

    def loss(x, scale):
        y = add(x, x * x, scale, threads=4)
        y = square(x.astype(jax.numpy.bfloat16), y, 2, threads=4)
        return (y * jax.numpy.array(WEIGHTS)).sum()

    arguments = jax.numpy.array(X), jax.numpy.float32(3.0)
    for gradient in (jax.grad(loss, (0, 1)), jax.jit(jax.grad(loss, (0, 1)))):
        by_x, by_scale = gradient(*arguments)
        assert by_x.tolist() == BY_X
        assert by_scale.item() == BY_SCALE
    zeros = jax.ShapeDtypeStruct((4,), np.float32)
    assert add(arguments[0], zeros, 2.0, threads=4).tolist() == [2, 8, 18, 32]
    with pytest.raises(mtl.ArgumentError, match="'y' is written: pass an array"):
        add(arguments[0], np.zeros(4, np.float32), 2.0, threads=4)
