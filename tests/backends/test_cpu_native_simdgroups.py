"""Simdgroup functions of the CPU's native runtime against NumPy."""

import numpy as np
import pytest
from native_kernels import harness
from native_kernels import simd_oracle as oracle
from native_kernels.harness import FIBRE

NUMBERS = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32}
BITS = {"b32": np.uint32, "b64": np.uint64}
ARITHMETIC = ["sum", "product", "min", "max"] + [
    f"prefix_{kind}_{op}" for kind in ("inclusive", "exclusive") for op in ("sum", "product")
]
SHUFFLES = ["shuffle", "broadcast"] + [
    f"shuffle_{suffix}" for suffix in ("xor", "up", "down", "rotate_up", "rotate_down")
]
SCOPES = pytest.mark.parametrize(("scope", "width"), [("simd", 32), ("quad", 4)])
GROUP = 96
THREADS = GROUP + 50  # the last threadgroup is partial, and so is its last simdgroup


def random_values(rng, dtype):
    if dtype == np.float32:
        return rng.normal(size=THREADS).astype(dtype)
    return rng.integers(0, 2**64, THREADS, dtype=np.uint64).astype(dtype)


def participation(rng):
    """All lanes together; lanes in two branches (1, 2) or none (0); one branch for a few lanes."""
    yield np.ones(THREADS, np.uint8)
    yield rng.integers(0, 3, THREADS, dtype=np.uint8)
    yield (rng.random(THREADS) < 0.1).astype(np.uint8)


def simdgroups():
    """The threads of each simdgroup."""
    starts = [*range(0, GROUP, 32), *range(GROUP, THREADS, 32)]
    return [np.arange(start, min(start + 32, THREADS)) for start in starts]


def check(kernels, name, scope, suffix, values, takes_part, operands, expected):
    """Run a simdgroup kernel and compare each set of lanes that called together with `expected`.

    `expected` gets the lanes of a simdgroup as an index of 32, the active ones and the simdgroup's
    values; it returns what the lanes get.
    """
    untouched = values.dtype.type(77)
    out = np.full(THREADS, untouched)
    outcome = kernels.run(
        f"test_{scope}_{name}_{suffix}", THREADS, GROUP, values, out, takes_part, *operands,
        mode=FIBRE,
    )  # fmt: skip
    assert outcome.status == harness.OK
    reference = np.full(THREADS, untouched)
    for members in simdgroups():
        exists = len(members) > oracle.LANES
        lanes = np.where(exists, members[0] + oracle.LANES, members[0])
        for branch in (1, 2):
            active = exists & (takes_part[lanes] == branch)
            if active.any():
                result = expected(lanes, active)
                reference[lanes[active]] = result[active]
    bits = f"u{values.itemsize}"
    same = (out.view(bits) == reference.view(bits)) | ((out != out) & (reference != reference))
    assert same.all(), (np.flatnonzero(~same), out[~same], reference[~same])


@SCOPES
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.sample(1, per="name")
def test_arithmetic(kernels, rng, scope, width, name):
    for suffix, dtype in NUMBERS.items():
        for takes_part in participation(rng):
            values = random_values(rng, dtype)
            if dtype == np.float32 and name in ("min", "max"):
                values[rng.random(THREADS) < 0.3] = np.nan
            check(
                kernels, name, scope, suffix, values, takes_part, (),
                lambda lanes, active, v=values: oracle.arithmetic(name, v[lanes], active, width),
            )  # fmt: skip


@pytest.mark.parametrize("name", ["min", "max"])
def test_signed_zeros_are_ordered(kernels, name):
    values = np.array([0.0, -0.0] * (THREADS // 2), np.float32)
    out = np.zeros_like(values)
    takes_part = np.ones(THREADS, np.uint8)
    kernels.run(f"test_simd_{name}_f32", THREADS, GROUP, values, out, takes_part, mode=FIBRE)
    assert (np.signbit(out) == (name == "min")).all()


@SCOPES
def test_bits_votes_and_first(kernels, rng, scope, width):
    for suffix, dtype in BITS.items():
        for takes_part in participation(rng):
            values = random_values(rng, dtype)
            for name in ("and", "or", "xor"):
                check(
                    kernels, name, scope, suffix, values, takes_part, (),
                    lambda lanes, active, v=values, n=name: oracle.bitwise(
                        n, v[lanes], active, width
                    ),
                )  # fmt: skip
            functions = {"broadcast_first": oracle.broadcast_first}
            if suffix == "b64":
                functions["ballot"] = oracle.ballot
            for name, function in functions.items():
                check(
                    kernels, name, scope, suffix, values, takes_part, (),
                    lambda lanes, active, v=values, f=function: f(v[lanes], active, width),
                )  # fmt: skip


@SCOPES
@pytest.mark.parametrize("name", SHUFFLES)
@pytest.mark.sample(1, per="name")
def test_shuffles(kernels, rng, scope, width, name):
    limit = width if name in ("shuffle", "broadcast") else 2 * width
    for suffix, dtype in BITS.items():
        for takes_part in participation(rng):
            values = random_values(rng, dtype)
            operand = rng.integers(0, limit, THREADS, dtype=np.uint16)
            check(
                kernels, name, scope, suffix, values, takes_part, (operand,),
                lambda lanes, active, v=values, o=operand: oracle.shuffle(
                    name, v[lanes], active, width, o[lanes].astype(int)
                ),
            )  # fmt: skip


@SCOPES
@pytest.mark.parametrize("name", ["shuffle_and_fill_up", "shuffle_and_fill_down"])
def test_shuffles_with_filling(kernels, rng, scope, width, name):
    for suffix, dtype in BITS.items():
        for takes_part in participation(rng):
            values, filling = random_values(rng, dtype), random_values(rng, dtype)
            modulo = np.full(THREADS, rng.choice([m for m in (2, 4, 8, 16, 32) if m <= width]))
            delta = np.full(THREADS, rng.integers(0, modulo[0] + 1))
            check(
                kernels, name, scope, suffix, values, takes_part,
                (delta.astype(np.uint16), modulo.astype(np.uint16), filling),
                lambda lanes, active, v=values, f=filling, d=delta, m=modulo: (
                    oracle.shuffle_and_fill(name, v[lanes], f[lanes], active, d[lanes], m[lanes])
                ),
            )  # fmt: skip


@SCOPES
@pytest.mark.parametrize("name", ["shuffle", "broadcast"])
def test_lane_out_of_range(kernels, scope, width, name):
    values, takes_part = np.zeros(THREADS, np.uint32), np.ones(THREADS, np.uint8)
    operand = np.zeros(THREADS, np.uint16)
    operand[GROUP + 40] = width
    outcome = kernels.run(
        f"test_{scope}_{name}_b32", THREADS, GROUP, values, values, takes_part, operand, mode=FIBRE
    )
    assert (outcome.status, outcome.lane) == (harness.LANE_OUT_OF_RANGE, width)
    assert (tuple(outcome.threadgroup), tuple(outcome.thread)) == ((1, 0, 0), (40, 0, 0))


@pytest.mark.parametrize("modulo", [0, 3, 64])
def test_bad_modulo(kernels, modulo):
    values, takes_part = np.zeros(THREADS, np.uint32), np.ones(THREADS, np.uint8)
    delta, modulos = np.ones(THREADS, np.uint16), np.full(THREADS, modulo, np.uint16)
    outcome = kernels.run(
        "test_simd_shuffle_and_fill_up_b32", THREADS, GROUP, values, values, takes_part, delta,
        modulos, values, mode=FIBRE,
    )  # fmt: skip
    assert (outcome.status, outcome.lane) == (harness.BAD_MODULO, modulo)


def test_lane_numbers(kernels):
    out = np.zeros(THREADS, np.uint32)
    kernels.run("lane_numbers", THREADS, GROUP, out, mode=FIBRE)
    expected = np.concatenate([np.arange(GROUP), np.arange(THREADS - GROUP)]) % 32
    np.testing.assert_array_equal(out, expected)


# ---- divergence ----


def test_lanes_leave_a_loop_one_by_one_and_meet_after_it(kernels, rng):
    trips = rng.integers(0, 12, THREADS, dtype=np.uint32)
    out, after = np.zeros_like(trips), np.zeros_like(trips)
    outcome = kernels.run("divergent_loop", THREADS, GROUP, trips, out, after, mode=FIBRE)
    assert outcome.status == harness.OK
    for lanes in simdgroups():
        total = np.zeros(len(lanes), np.uint32)
        for round_ in range(trips[lanes].max()):
            active = trips[lanes] > round_
            total[active] = total[active] * 5 + active.sum()
        np.testing.assert_array_equal(out[lanes], total)
        np.testing.assert_array_equal(after[lanes], len(lanes))


def test_inner_loop_rejoins_the_outer_one(kernels, rng):
    trips = rng.integers(0, 6, THREADS, dtype=np.uint32)
    out, after = np.zeros_like(trips), np.zeros_like(trips)
    outcome = kernels.run("nested_loop", THREADS, GROUP, trips, out, after, mode=FIBRE)
    assert outcome.status == harness.OK
    for lanes in simdgroups():
        total = np.zeros(len(lanes), np.uint32)
        index = lanes.astype(np.uint32)
        for round_ in range(trips[lanes].max()):
            outer = trips[lanes] > round_
            for inner in range(4):
                active = outer & (lanes % 2 == 1) & (inner < lanes % 5)
                total[active] = total[active] * 3 + active.sum()
            total[outer] = total[outer] * 7 + index[outer].sum()
        np.testing.assert_array_equal(out[lanes], total)
        np.testing.assert_array_equal(after[lanes], len(lanes))


def test_exchange_while_others_wait_at_the_barrier(kernels):
    out = np.zeros(THREADS, np.uint32)
    outcome = kernels.run(
        "exchange_before_barrier", THREADS, GROUP, out, 0, mode=FIBRE, threadgroup_bytes=4 * GROUP
    )
    assert outcome.status == harness.OK
    for start, size in ((0, GROUP), (GROUP, THREADS - GROUP)):
        local = np.arange(size)
        simdgroup = local // 32
        members = np.bincount(simdgroup)[simdgroup]
        thirds = np.bincount(simdgroup, local % 3 == 0)[simdgroup]
        tile = np.where(local % 3 == 0, thirds, 0)
        expected = tile[(local + 1) % size] + members
        np.testing.assert_array_equal(out[start : start + size], expected)
