"""Functions of simdgroups and quadgroups: all of them, on all types, whole groups and parts.

Launches have whole simdgroups and a part of one at the end, one and two dimensions, all threads
active and only those in a branch. What a lane reads from one that is not active is 0.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import is_floating, rounded, roundoff, smallest
from lane_models import lane_functions
from msl_types import FLOATS, INTEGERS, memory_type, parse
from sheets import HEADER

import metalloid as mtl

WIDTHS = {"simd": 32, "quad": 4}
TYPES = (
    *INTEGERS,
    *FLOATS,
    "float2",
    "float3",
    "float4",
    "half4",
    "bfloat2",
    "int2",
    "uint3",
    "ushort4",
    "char3",
)
#: One type of each width, a vector, and types that several tests compile.
FAST = {"simd": ("uchar", "int", "long", "bfloat", "float", "float3"), "quad": ("long", "half")}
U = roundoff(np.dtype(np.float32))

PARAMETERS = """uint3 place [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],
    uint lane_in_simdgroup [[thread_index_in_simdgroup]], uint lane_in_quadgroup [[thread_index_in_quadgroup]]"""
PREAMBLE = "uint i = place.x + grid.x * place.y, n = grid.x * grid.y; (void)n;"


def functions_of(group, type_):
    integer = parse(type_).element in INTEGERS
    return [f for f in lane_functions(WIDTHS[group]) if integer or f.kinds != "integer"]


def source(group, type_):
    lane = f"lane_in_{group}group"
    stores = "".join(
        f"        {{ {type_} a = {'s' if f.kinds == 'scale' else 'x'}[i]; y[{k} * n + i] = {f.text.format(g=group)}; }}\n"
        for k, f in enumerate(functions_of(group, type_))
    )
    T = memory_type(type_)
    return (
        f"kernel void lanes(device {T}* y, device const {T}* x, device const {T}* s, device const {T}* filling,\n"
        f"    device const uchar* active, {PARAMETERS}) {{\n    {PREAMBLE}\n"
        f"    uint lane = {lane}; {type_} f = filling[i];\n    if (active[i]) {{\n{stores}    }}\n}}\n"
    )


def groups_of(grid, group_size, width):
    """Threads (by position in the grid) of each simdgroup or quadgroup, in the order of lanes."""
    gx, gy = group_size
    members = {}
    for y in range(grid[1]):
        for x in range(grid[0]):
            which, position = (x // gx, y // gy), (x % gx, y % gy)
            columns = min(gx, grid[0] - which[0] * gx)
            index = position[0] + columns * position[1]
            members.setdefault((*which, index // width), []).append(
                (index % width, x + grid[0] * y)
            )
    return [np.array([thread for _, thread in sorted(lanes)]) for lanes in members.values()]


#: Grids with their threadgroups: whole simdgroups, a part at the end, parts everywhere.
LAUNCHES = [
    ((128, 1), (64, 1)),
    ((150, 1), (64, 1)),
    ((53, 1), (53, 1)),
    ((21, 9), (8, 4)),
    ((12, 10), (6, 5)),
]
BRANCHES = ("everybody", "some", "few")


def active_threads(branch, size, rng):
    return rng.random(size) < {"everybody": 1.1, "some": 0.6, "few": 0.1}[branch]


def operands(type_, size, rng):
    """Values, values near one, and a filling."""
    T = parse(type_)
    shape = (size, T.lanes) if T.lanes > 1 else (size,)
    if T.element in FLOATS:
        x, filling = (rounded(rng.normal(scale=4, size=shape), T.dtype) for _ in range(2))
        return (
            x,
            rounded(rng.uniform(0.8, 1.25, shape) * rng.choice([-1, 1], shape), T.dtype),
            filling,
        )
    info = np.iinfo(T.dtype)
    x, s, filling = (
        rng.integers(info.min, info.max, shape, T.dtype, endpoint=True) for _ in range(3)
    )
    return x, s | T.dtype.type(1), filling  # products of odd numbers stay odd


def padded(values, width):
    """Lanes that do not exist have zeros; their results are not used."""
    missing = np.zeros((width - len(values), *values.shape[1:]), values.dtype)
    return np.concatenate([values, missing])


def allowed_error(function, values, active, exact):
    """The error of a reduction in float and one rounding to the type."""
    some = np.abs(values[active].astype(np.float64))
    roundings = len(values)
    if "product" in function.text:
        in_float = roundings * U * np.abs(exact)
    else:
        in_float = roundings * U * some.sum(0)
    return (
        1.01 * in_float + (1 + U) * np.abs(exact) * roundoff(values.dtype) + smallest(values.dtype)
    )


def check_group(function, actual, values, filling, active):
    """Compare the lanes of one group."""
    width, count = len(active), len(actual)
    expected, defined = function.model(values, filling, active)
    expected, defined = expected[:count], defined[:count]
    if function.exact or not is_floating(actual.dtype):
        good = expected.astype(actual.dtype) == actual
    else:
        good = np.abs(actual.astype(np.float64) - expected) <= allowed_error(
            function, values, active, expected
        )
    bad = ~good.reshape(count, -1).all(1) & defined
    lane = int(np.argmax(bad))
    assert not bad.any(), (
        f"{function.text} in lane {lane} of {width}: {actual[lane]}, expected {expected[lane]}; active: {np.flatnonzero(active).tolist()}"
    )


def check_launch(kernel, group, type_, grid, group_size, branch, rng):
    size, width = grid[0] * grid[1], WIDTHS[group]
    x, s, filling = operands(type_, size, rng)
    active = active_threads(branch, size, rng)
    functions = functions_of(group, type_)
    y = np.zeros((len(functions), *x.shape), x.dtype)
    kernel(y, x, s, filling, active.astype(np.uint8), threads=grid, group_size=group_size)
    assert not y[:, ~active].astype(bool).any()
    for members in groups_of(grid, group_size, width):
        some = padded(active[members], width)
        if not some.any():
            continue
        for function, results in zip(functions, y, strict=True):
            values = (s if function.kinds == "scale" else x)[members]
            check_group(
                function,
                results[members],
                padded(values, width),
                padded(filling[members], width),
                some,
            )


@pytest.fixture(scope="module")
def library():
    libraries = {}

    def of(group, type_):
        if (group, type_) not in libraries:
            libraries[group, type_] = mtl.library(HEADER + source(group, type_))
        return libraries[group, type_].lanes

    return of


@pytest.mark.parametrize(
    ("group", "type_"),
    [
        pytest.param(group, type_, marks=[pytest.mark.slow] * (type_ not in FAST[group]))
        for group in WIDTHS
        for type_ in TYPES
    ],
)
@pytest.mark.sample(1, per="group")
def test_functions_on_values(library, group, type_, rng):
    kernel, turn = library(group, type_), TYPES.index(type_)
    for number, (grid, group_size) in enumerate(LAUNCHES):
        branch = BRANCHES[(number + turn) % len(BRANCHES)]
        check_launch(kernel, group, type_, grid, group_size, branch, rng)


@pytest.mark.parametrize("group", WIDTHS)
@given(
    grid=st.tuples(st.integers(1, 90), st.integers(1, 5)),
    group_size=st.tuples(st.integers(1, 40), st.integers(1, 6)),
    branch=st.sampled_from(BRANCHES),
    type_=st.sampled_from(["int", "long"]),  # others above
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=10)
def test_functions_in_any_launch(library, group, grid, group_size, branch, type_, seed):
    check_launch(
        library(group, type_), group, type_, grid, group_size, branch, np.random.default_rng(seed)
    )


# -- votes

VOTES = f"""{HEADER}
kernel void votes(device ulong* y, device const uchar* vote, device const uchar* active, {PARAMETERS}) {{
    {PREAMBLE}
    bool v = vote[i];
    if (active[i]) {{
        y[0 * n + i] = ulong(simd_vote::vote_t(simd_ballot(v)));
        y[1 * n + i] = ulong(simd_vote::vote_t(simd_active_threads_mask()));
        y[2 * n + i] = simd_all(v);
        y[3 * n + i] = simd_any(v);
        y[4 * n + i] = simd_is_first();
        y[5 * n + i] = simd_ballot(v).all();
        y[6 * n + i] = simd_ballot(v).any();
        y[7 * n + i] = ulong(quad_vote::vote_t(quad_ballot(v)));
        y[8 * n + i] = ulong(quad_vote::vote_t(quad_active_threads_mask()));
        y[9 * n + i] = quad_all(v);
        y[10 * n + i] = quad_any(v);
        y[11 * n + i] = quad_is_first();
        y[12 * n + i] = quad_ballot(v).all();
        y[13 * n + i] = quad_ballot(v).any();
    }}
}}
"""


def votes_of(vote, active):
    """Votes of one group, in the order of the kernel above; a column for each lane."""
    lanes = np.arange(len(vote))
    count = len(lanes)
    ballot = sum(1 << int(lane) for lane in lanes[vote & active])
    mask = sum(1 << int(lane) for lane in lanes[active])
    first = lanes == np.argmax(active)
    same = [ballot, mask, (vote | ~active).all(), (vote & active).any()]
    rows = [np.full(count, value, object) for value in same] + [first.astype(object)]
    return rows, ballot


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("often", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(("grid", "group_size"), LAUNCHES)
def test_votes(grid, group_size, often, branch, rng):
    size = grid[0] * grid[1]
    vote, active = rng.random(size) < often, active_threads(branch, size, rng)
    y = np.zeros((14, size), np.uint64)
    kernel = mtl.library(VOTES).votes
    kernel(y, vote.astype(np.uint8), active.astype(np.uint8), threads=grid, group_size=group_size)
    for group, first_row in (("simd", 0), ("quad", 7)):
        for members in groups_of(grid, group_size, WIDTHS[group]):
            rows, ballot = votes_of(vote[members], active[members])
            is_full = ballot == (1 << WIDTHS[group]) - 1
            rows += [np.full(len(members), value, object) for value in (is_full, ballot != 0)]
            for k, row in enumerate(rows):
                looked_at = active[members]
                got = y[first_row + k, members][looked_at]
                np.testing.assert_array_equal(
                    got, row[looked_at].astype(np.uint64), err_msg=f"{group} {k}"
                )


# -- diverged control flow and values of several words

DIVERGED = f"""{HEADER}
kernel void loops(device uint* y, device const uint* rounds, uint i [[thread_position_in_grid]]) {{
    uint sum = 0;
    for (uint k = 0; k < rounds[i]; ++k) sum += simd_sum(1u);  // threads leave one after the other
    y[i] = sum;
}}
kernel void both_arms(device uint* y, device const uint* x, uint i [[thread_position_in_grid]]) {{
    if (x[i] & 1) y[i] = simd_sum(x[i]);
    else y[i] = simd_max(x[i]);
    y[i] = simd_broadcast_first(y[i]) + quad_sum(y[i]);
}}
kernel void nested(device uint* y, device const uint* x, uint i [[thread_position_in_grid]]) {{
    y[i] = 0;
    if (x[i] & 1) {{
        if (x[i] & 2) y[i] = simd_prefix_exclusive_sum(1u) + 1;
        else if (simd_any(x[i] > 200)) y[i] = 1000 + simd_min(x[i]);
    }}
}}
kernel void early(device uint* y, device const uint* x, uint i [[thread_position_in_grid]]) {{
    if (x[i] % 3 == 0) {{ y[i] = 7; return; }}
    y[i] = simd_sum(x[i]);
}}
kernel void meet(device uint* y, device const uint* x, uint i [[thread_position_in_grid]]) {{
    if (x[i] & 1) {{
        uint own = 0;
        if (x[i] & 2) for (uint k = 0; k < x[i] % 7; ++k) own = 3 * own + (x[i] ^ k);
        else if (x[i] & 4) own = 1;
        y[i] = own + simd_sum(own);  // of all that came in, whatever they did meanwhile
    }} else {{
        y[i] = 0;
    }}
}}
kernel void matrices(device float* y, device const float2x2* x, uint i [[thread_position_in_grid]]) {{
    float2x2 m = simd_shuffle_xor(x[i], 1) - simd_broadcast(x[i], 3) + quad_broadcast_first(x[i]);
    y[i] = m[0][0] + 10 * m[0][1] + 100 * m[1][0] + 1000 * m[1][1];
}}
kernel void whole(device uint* y, device const uint* x, uint i [[thread_position_in_grid]], uint width [[threads_per_simdgroup]]) {{
    y[i] = simd_is_helper_thread() + quad_is_helper_thread() + width;
}}
"""


@pytest.fixture(scope="module")
def diverged():
    return mtl.library(DIVERGED)


@pytest.fixture
def x(rng):
    return rng.integers(0, 256, (4, 32), np.uint32)


def run(kernel, x):
    y = np.zeros_like(x)
    kernel(y, x, threads=x.size, group_size=64)
    return y


def test_lanes_leave_a_loop_one_after_the_other(diverged, x):
    trips = x % 9
    still_in = (trips[:, None, :] > np.arange(9)[:, None]).sum(2)  # by simdgroup and round
    expected = [[still_in[g, : trips[g, lane]].sum() for lane in range(32)] for g in range(4)]
    np.testing.assert_array_equal(run(diverged.loops, trips), expected)


def test_both_arms_of_a_branch(diverged, x):
    odd = x % 2 == 1
    sums, maxima = np.where(odd, x, 0).sum(1)[:, None], np.where(odd, 0, x).max(1)[:, None]
    value = np.where(odd, sums, maxima)
    quads = np.repeat(value.reshape(4, 8, 4).sum(2), 4, axis=1)
    np.testing.assert_array_equal(run(diverged.both_arms, x), value[:, :1] + quads)


def test_nested_branches(diverged, x):
    inner, other = x & 3 == 3, x & 3 == 1
    rank = np.cumsum(inner, axis=1)
    some_large = (other & (x > 200)).any(1)[:, None]
    least = np.where(other, x, 2**32 - 1).min(1)[:, None]
    expected = np.where(inner, rank, np.where(other & some_large, 1000 + least, 0))
    np.testing.assert_array_equal(run(diverged.nested, x), expected)


def test_lanes_meet_inside_a_branch(diverged, x):
    own = np.where(x & 7 == 5, 1, 0)
    for k in range(6):
        own = np.where((x & 3 == 3) & (k < x % 7), 3 * own + (x ^ k), own)
    expected = np.where(x & 1, own + own.sum(1, keepdims=True), 0)
    np.testing.assert_array_equal(run(diverged.meet, x), expected)


def test_lanes_that_returned_take_no_part(diverged, x):
    left = x % 3 != 0
    sums = np.where(left, x, 0).sum(1)[:, None]
    np.testing.assert_array_equal(run(diverged.early, x), np.where(left, sums, 7))


def test_matrices_are_shuffled_as_units(diverged, rng):
    m = rng.integers(0, 10, (64, 2, 2)).astype(np.float32)
    y = np.zeros(64, np.float32)
    diverged.matrices(y, m, threads=64, group_size=64)
    lane = np.arange(64)
    moved = m[lane ^ 1] - m[lane // 32 * 32 + 3] + m[lane // 4 * 4]
    np.testing.assert_array_equal(y, moved.reshape(64, 4) @ [1, 10, 100, 1000])


def test_there_are_no_helper_threads(diverged, x):
    assert (run(diverged.whole, x) == 32).all()


# -- the least and the most of floats

EXTREMES = f"""{HEADER}
kernel void extremes(device TYPE* y, device const TYPE* x, device const uchar* active,
                     uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {{
    if (active[i]) {{
        y[i] = simd_min(x[i]);
        y[n + i] = simd_max(x[i]);
        y[2 * n + i] = quad_min(x[i]);
        y[3 * n + i] = quad_max(x[i]);
    }}
}}
"""


@pytest.mark.parametrize("type_", FLOATS[:2])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97], ids="not a number: {}".format)
def test_nan_loses_and_zeros_have_signs(rng, type_, share):
    """-0 is less than 0, and only where all are NaN is the result."""
    dtype = np.dtype({"float": np.float32, "half": np.float16}[type_])
    n = 640
    x = rng.choice(np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf], dtype), n)
    x[128:256] = rng.choice(np.array([0.0, -0.0], dtype), 128)
    x[rng.random(n) < share] = np.nan
    x[:32] = np.nan
    active = (rng.random(n) < 0.7).astype(np.uint8)
    y = np.zeros((4, n), dtype)
    mtl.library(EXTREMES.replace("TYPE", type_)).extremes(y, x, active, threads=n)
    # In the order of their bits, as integers.
    keys = np.where(np.isnan(x), np.nan, np.where(x == 0, np.copysign(0.25, x), x))
    for k, (width, choose) in enumerate([(32, np.fmin), (32, np.fmax), (4, np.fmin), (4, np.fmax)]):
        taken = np.where(active == 1, keys, np.nan).reshape(-1, width)
        expected = np.repeat(choose.reduce(taken, axis=1), width)
        got = np.where(y[k] == 0, np.copysign(0.25, y[k]), y[k])
        np.testing.assert_array_equal(got[active == 1], expected[active == 1].astype(dtype))


def test_a_sum_by_shuffles_counts_each_active_lane_once():
    """torch sums 64-bit numbers so, in a branch that two of 64 threads take."""
    lib = mtl.library("""
#include <metal_stdlib>
using namespace metal;
static ulong by_shuffles(ulong x) {
    for (ushort distance = 16; distance > 0; distance /= 2)
        x += as_type<ulong>(simd_shuffle_down(as_type<uint2>(x), distance));
    return x;
}
kernel void total(device ulong* y, device const ulong* x, uint i [[thread_position_in_grid]]) {
    threadgroup ulong all[2];
    ulong own = by_shuffles(x[i]);
    if (i % 32 == 0) all[i / 32] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < 2) {
        ulong both = by_shuffles(all[i]);
        if (i == 0) y[0] = both;
    }
}
""")
    y = np.zeros(1, np.uint64)
    lib.total(y, np.ones(64, np.uint64), threads=64, group_size=64)
    assert y[0] == 64
