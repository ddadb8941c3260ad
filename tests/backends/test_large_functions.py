"""Functions that are called often and too large to be inlined: arithmetic on 256 bits.

`elliptic_curve.metal` is checked against integers of Python.
"""

import random
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

PRIME = 2**256 - 2**32 - 977
GENERATOR = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
MONTGOMERY = 2**256
LIMITS = 2**32 - 1
TEXT = Path(__file__).with_name("elliptic_curve.metal")


def add(p, q):
    """The sum of two points of secp256k1; None is the point at infinity."""
    if p is None or q is None:
        return p or q
    if p[0] == q[0] and (p[1] + q[1]) % PRIME == 0:
        return None
    if p == q:
        slope = 3 * p[0] ** 2 * pow(2 * p[1], -1, PRIME)
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, PRIME)
    x = (slope**2 - p[0] - q[0]) % PRIME
    return x, (slope * (p[0] - x) - p[1]) % PRIME


def times(scalar, point):
    """A multiple of a point."""
    total = None
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def packed(points, rng):
    """Points in projective form, their coordinates in Montgomery's form in limbs of 32 bits."""
    rows = []
    for point in points:
        z = rng.randrange(1, PRIME) if point else 0
        x, y = point or (1, 1)
        numbers = x * z**2, y * z**3, z
        limbs = [n * MONTGOMERY % PRIME >> 32 * k & LIMITS for n in numbers for k in range(8)]
        rows.append(limbs)
    return np.array(rows, np.uint32)


def unpacked(rows):
    """The points that such rows stand for."""
    points = []
    for row in rows.reshape(-1, 3, 8).tolist():
        x, y, z = (
            sum(limb << 32 * k for k, limb in enumerate(limbs)) * pow(MONTGOMERY, -1, PRIME)
            for limbs in row
        )
        if z % PRIME == 0:
            points.append(None)
            continue
        inverse = pow(z, -1, PRIME)
        points.append((x * inverse**2 % PRIME, y * inverse**3 % PRIME))
    return points


def some_points(count, rng):
    points = [times(rng.randrange(1, 2**20), GENERATOR) for _ in range(count)]
    for index in range(0, count, 7):
        points[index] = None
    for index in range(2, count - 1, 6):
        points[index] = points[index + 1]  # their sum takes the branch of doubled points
    return points


@pytest.fixture(params=["simd", "reference"])
def kernel(request):
    """Compiles a kernel on either engine."""
    with mtl.config.scope(cpu_engine=request.param):
        library = mtl.library(path=TEXT, device="cpu")

        def compiled(name):
            assert library[name].engine.startswith(request.param)
            return library[name]

        yield compiled


def test_lanes_that_diverge_call_functions(kernel):
    rng = random.Random(1)
    count = 70  # the last simdgroup is incomplete
    points = some_points(2 * count, rng)
    scalars = np.array([rng.randrange(64) for _ in range(count)], np.uint32)
    results = np.zeros((count, 24), np.uint32)
    kernel("combine")(
        packed(points, rng).view(np.uint8), scalars, results.view(np.uint8), threads=count
    )
    pairs = zip(points[::2], points[1::2], strict=True)
    for scalar, (p, q), result in zip(scalars.tolist(), pairs, unpacked(results), strict=True):
        power = times(1 << scalar.bit_length(), p)
        assert result == add(add(add(p, q), times(scalar, p)), power)


def test_functions_are_called_between_barriers(kernel):
    rng = random.Random(2)
    points = some_points(192, rng)
    results = np.zeros((3, 24), np.uint32)
    kernel("add_up")(
        packed(points, rng).view(np.uint8), results.view(np.uint8), threads=192, group_size=64
    )
    for group, result in enumerate(unpacked(results)):
        total = None
        for point in points[64 * group : 64 * group + 64]:
            total = add(total, point)
        assert result == total


def test_code_of_large_functions_stands_once():
    """The time of compiling follows the length of this text."""
    ir = mtl.library(path=TEXT, device="cpu").combine.asm["ll"]
    assert ir.count("define internal void @mtl_lanes._Z8multiply") == 1
    assert len(ir.splitlines()) < 30_000
