"""Functions with barriers: parallel regions, rematerialization, the layout of variables."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.parser import flatten_address_spaces, parse_function
from metalloid.compiler.ir.types import POINTER, Unsupported
from metalloid.compiler.transforms.invariant_loads import mark_invariant_loads
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.compiler.transforms.rematerialize import rematerialize
from metalloid.compiler.transforms.split_at_barriers import split_at_barriers
from metalloid.compiler.transforms.threadgroup_variables import lower_threadgroup_variables
from metalloid.compiler.vectorize.emitted_code import EmittedBlock, Return, SlotAccess
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.workgroup.region_cfg import Definitions, Regions
from metalloid.compiler.vectorize.workgroup.simdgroup_loops import SimdgroupLoops
from metalloid.compiler.vectorize.workgroup.workgroup_uniform import workgroup_uniform_values

WAIT = "call void @__msl_threadgroup_barrier(i32 2)"


def prepared(body, parameters="ptr %p, i32 %x, i32 %u"):
    text = "\n".join(f"  {line.strip()}" if line[-1] != ":" else line for line in body)
    function = parse_function(f"define void @f({parameters}) {{\n{text}\n}}\n", "f")
    split_at_barriers(function)
    return function, simplify_loops(function)


def operands_of_last(function, op):
    """Names that the instructions `op` of the last block with some use."""
    matches = [i for b in function.blocks.values() for i in b.body if i.op == op]
    return [value.name for value in matches[-1].operands]


# ---- rematerialized values


def test_an_address_is_rematerialized_after_a_barrier():
    function, graph = prepared(
        ["entry:", "%q = getelementptr i32, ptr %p, i32 %x", "store i32 1, ptr %q", WAIT,
         "store i32 2, ptr %q", "ret void"]
    )  # fmt: skip
    rematerialize(function, graph, {"%p", "%u"})
    assert operands_of_last(function, "store")[1] not in ("%q", "%p")
    copies = [i for i in function.instructions() if i.op == "getelementptr"]
    assert [str(i.operands) for i in copies] == [str(copies[0].operands)] * 2


def test_copies_come_after_what_they_need():
    """Also those that an edge carries, which are found last."""
    function, graph = prepared(
        ["entry:", "%a = add i32 %x, 1", "%q = getelementptr i32, ptr %p, i32 %a", WAIT,
         "store i32 %a, ptr %p", "%c = icmp eq i32 %u, 0", "br i1 %c, label %yes, label %no",
         "yes:", "br label %no",
         "no:", "%r = phi ptr [ %q, %entry ], [ %p, %yes ]", "store i32 3, ptr %r", WAIT,
         "store i32 4, ptr %q", "ret void"]
    )  # fmt: skip
    function.blocks["%no"].phis[0].labels[0] = next(
        name for name, b in function.blocks.items() if "%yes" in b.end.labels
    )
    rematerialize(function, graph, {"%p", "%u"})
    for block in function.blocks.values():
        own = {i.result for i in block.body}
        seen = set()
        for i in block.body:
            assert all(v.name in seen or v.name not in own for v in i.operands)
            seen.add(i.result)
    assert sum(i.op == "getelementptr" for i in function.instructions()) == 3


def test_what_does_not_cross_a_barrier_stays():
    function, graph = prepared(
        ["entry:", WAIT, "%q = getelementptr i32, ptr %p, i32 %x", "br label %next", "next:",
         "store i32 2, ptr %q", "ret void"]
    )  # fmt: skip
    rematerialize(function, graph, {"%p", "%u"})
    assert operands_of_last(function, "store")[1] == "%q"


@pytest.mark.parametrize(
    ("address", "is_marked", "is_copied"),
    [("%p", True, True), ("%p", False, False), ("%q", True, False)],
    ids=["constant", "may change", "each lane its own"],
)
def test_only_loads_of_constants_are_repeated(address, is_marked, is_copied):
    hint = ", !invariant.load !1" if is_marked else ""
    function, graph = prepared(
        ["entry:", "%q = getelementptr i32, ptr %p, i32 %x",
         f"%n = load i32, ptr {address}, align 4{hint}", WAIT, "store i32 %n, ptr %p", "ret void"]
    )  # fmt: skip
    rematerialize(function, graph, {"%p", "%u"})
    assert (operands_of_last(function, "store")[0] != "%n") == is_copied


def test_loads_at_known_addresses_of_read_only_memory_are_marked():
    function, _ = prepared(
        ["entry:", "%q = getelementptr i8, ptr %p, i64 8", "%a = load ptr, ptr %q, align 8",
         "%r = getelementptr i8, ptr %p, i32 %x", "%b = load i32, ptr %r, align 4", "ret void"]
    )  # fmt: skip
    mark_invariant_loads(function, {"%p"}, "call_invariant")
    loads = {i.result: i.flags for i in function.instructions() if i.op == "load"}
    assert loads == {"%a": ("call_invariant",), "%b": ()}


# ---- regions


BLOCKS = [
    EmittedBlock("b0", ["  br label %b1"], successors=["b1"]),
    EmittedBlock("b1", ["  ret i64 4294967299"], returned=Return(1, 3)),
    EmittedBlock("behind1", ["  br i1 %c, label %b1, label %b2"], successors=["b1", "b2"]),
    EmittedBlock("b2", ["  ret i64 0"], returned=Return(0, 0)),
]


def test_a_region_has_the_blocks_up_to_its_barriers():
    regions = Regions(BLOCKS, ["b0", "behind1"])
    lines = [line for block in BLOCKS for line in block.text()]
    assert list(regions.bodies()) == [lines[:4], lines[2:]]
    assert regions.length == 4 + 6


def test_what_a_region_returns_is_known_if_it_has_one_end():
    assert Regions(BLOCKS, ["b0", "behind1"]).successors() == (1 << 32 | 3, None)
    assert Regions([EmittedBlock("b0", returned=Return(1))], ["b0"]).successors() == (None,)


def test_live_in_and_defs_of_a_region_are_slots_that_it_accesses_and_stores():
    a, b, c = (Slot(SlotKind.SCALAR, name) for name in "abc")
    blocks = [
        EmittedBlock("b0", accesses=[SlotAccess(a, is_store=False)], successors=["b1"]),
        EmittedBlock("b1", accesses=[SlotAccess(b, is_store=True)], returned=Return(0, 0)),
    ]
    regions, numbers = Regions(blocks, ["b0", "b1"]), {a: 0, b: 1, c: 2}
    assert regions.live_in(numbers) == ({0, 1}, {1})
    assert regions.defs(numbers) == ({1}, {1})


def test_definitions_come_with_those_that_they_use():
    lines = [
        "  %a = alloca i32",
        '  %"b c" = add i32 %x, 1',
        '  %d = add i32 %"b c", 1',
        "  %e = alloca i8",
    ]
    assert Definitions(lines).of(["  store i32 %d, ptr %p"]) == lines[1:3]


def loops_text(
    successors, partial="", is_uniform=False, common=(), live_in=None, defs=None, own_bytes=0
):
    none = [set() for _ in successors]
    loops = SimdgroupLoops(
        "f",
        partial,
        successors,
        8,
        64,
        common,
        live_in or none,
        defs or none,
        is_uniform,
        None,
        own_bytes,
    )
    return loops.text()


def test_regions_whose_successor_is_known_continue_without_a_dispatch():
    text = loops_text([1 << 32 | 255, 0])
    assert "label %r1, label %alone0" in text
    assert "%agree" not in text
    assert "%agree" in loops_text([1 << 32 | 255, None])
    assert "%agree" in loops_text([1 << 32 | 255, 0], partial="g")
    assert "%agree" not in loops_text([None, None], is_uniform=True)


@pytest.mark.parametrize("successors", [[1 << 32 | 255, 0], [None, None]])
def test_simdgroups_with_uniform_barriers_always_go_on(successors):
    assert "i1 %goes_on" not in loops_text(successors, is_uniform=True).split("goes_on,", 1)[1]
    assert loops_text(successors, is_uniform=True).split("%uniforms)")[-1].count("ret i64") == 1
    assert loops_text(successors).split("%uniforms)")[-1].count("ret i64") > 1


def test_only_loops_with_uniform_barriers_have_stack_memory():
    text = loops_text([1 << 32 | 255, 0], is_uniform=True, own_bytes=1000)
    begin, end = text.split("i1 zeroext %goes_on")[1].split("choice:")
    assert "alloca [1000 x i8]" in begin
    assert "i64 1000\n" in begin
    assert end.index("lifetime.end") < end.index("ret i64 1")
    assert "alloca [1000 x i8]" not in loops_text([1 << 32 | 255, 0], own_bytes=1000)


def test_each_simdgroup_begins_with_the_uniform_values_before_the_loop():
    live_in, defs = [{0, 1}, {0}], [{1}, set()]
    text = loops_text([1 << 32 | 255, 0], common=["i32", "ptr"], live_in=live_in, defs=defs)
    first, second, _ = text.split("define")[1:]
    for one in (first, second):
        before, loop = one.split("simdgroup:")
        assert before.count("%before0 = load i32, ptr %uniforms0") == 1
        assert "store i32 %before0, ptr %local0" in loop.split("call")[0]
    assert "%before1" in first
    assert "%before1" not in second
    assert "store ptr %after1, ptr %uniforms1" in first.split("call")[1]
    assert "%after" not in second
    assert "%after0" not in first


# ---- what simdgroups have in common


def common(body):
    function, graph = prepared(body)
    values = workgroup_uniform_values(function, graph, {"%p", "%u"})
    return values if values is None else {value.name for value in values}


LOOP = [
    "entry:", "br label %head",
    "head:", "%i = phi i32 [ 0, %entry ], [ %n, %head ]", "%own = add i32 %i, %x",
    "%twice = mul i32 %i, %u", "%q = getelementptr i32, ptr %p, i32 %twice", WAIT,
    "store i32 %own, ptr %q", "%n = add i32 %i, 1", "%t = icmp ult i32 %n, {limit}",
    "br i1 %t, label %head, label %end", "end:", "ret void",
]  # fmt: skip


def test_simdgroups_have_in_common_what_comes_from_arguments():
    assert common([line.format(limit="%u") for line in LOOP]) == {"%i", "%q"}


def test_simdgroups_that_may_diverge_have_no_uniform_values():
    assert common([line.format(limit="%x") for line in LOOP]) is None


@pytest.mark.parametrize(
    ("definition", "is_common"),
    [("load i32, ptr %p, align 4, !invariant.load !1", True), ("load i32, ptr %p, align 4", False),
     ("call i32 @__msl_simd_sum_u32(i32 %u)", False), ("call i32 @llvm.abs.i32(i32 %u, i1 0)", True),
     ("freeze i32 %u", False)],
)  # fmt: skip
def test_what_simdgroups_read_one_after_the_other_may_differ(definition, is_common):
    body = ["entry:", f"%v = {definition}", WAIT, "store i32 %v, ptr %p", "ret void"]
    assert common(body) == ({"%v"} if is_common else set())


# ---- threadgroup variables


MODULE = """
%struct.P = type { float, [3 x i32] }
@a = internal thread_local unnamed_addr global [5 x float] zeroinitializer, align 4
@b = internal thread_local global %struct.P undef, align 16
"""


def test_variables_are_disjoint_and_aligned():
    offsets, total = distances(MODULE)
    assert total % 128 == 0
    assert total >= 36
    assert offsets["@a"] >= 20
    assert offsets["@a"] % 4 == 0
    assert offsets["@b"] >= offsets["@a"] + 16
    assert offsets["@b"] % 16 == 0


def test_addresses_in_variables_become_distances():
    function, _ = prepared(
        ["entry:", "store i32 1, ptr @a",
         "store i32 1, ptr getelementptr inbounds nuw (i8, ptr @a, i64 12)", "ret void"]
    )  # fmt: skip
    lower_threadgroup_variables(function, {"@a": 20}, Value(POINTER, "%p"))
    steps = [i for i in function.entry.body if i.op == "getelementptr"]
    assert [i.operands[1].integer for i in steps] == [-20, -8]
    assert [i.operands[-1].name for i in function.entry.body if i.op == "store"] == [
        i.result for i in steps
    ]


def test_a_variable_whose_address_is_an_integer_is_refused():
    function, _ = prepared(["entry:", "store i64 ptrtoint (ptr @a to i64), ptr %p", "ret void"])
    with pytest.raises(Unsupported, match="@a"):
        lower_threadgroup_variables(function, {"@a": 20}, Value(POINTER, "%p"))


def test_casts_between_spaces_are_none():
    text = """store ptr addrspacecast (ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @a, i64 4) to ptr), ptr %p
    store ptr addrspacecast (ptr addrspace(3) @"b c" to ptr), ptr %p"""
    assert flatten_address_spaces(text).split("\n    ") == [
        "store ptr getelementptr inbounds (i8, ptr @a, i64 4), ptr %p",
        'store ptr @"b c", ptr %p',
    ]


# ---- all of it


WAITS = """
#include <metal_stdlib>
using namespace metal;
struct weighted { float weight; int place[3]; };
kernel void waits(device float* x, device uint* total, constant uint& rounds,
                  uint t [[thread_position_in_threadgroup]],
                  uint n [[threads_per_threadgroup]]) {
    threadgroup float row[256];
    threadgroup weighted pairs[8];
    threadgroup atomic_uint count, highest;
    if (t == 0) {
        atomic_store_explicit(&count, 0, memory_order_relaxed);
        atomic_store_explicit(&highest, 0, memory_order_relaxed);
    }
    if (t < 8) { pairs[t].weight = t; pairs[t].place[2] = int(t) - 4; }
    row[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < rounds; ++i) {
        float next = row[(t + 1) % n] * pairs[t % 8].weight + pairs[i % 8].place[2];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        row[t] = next;
        atomic_fetch_add_explicit(&count, t & 1, memory_order_relaxed);
        if (next > 3) atomic_fetch_max_explicit(&highest, t, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    x[t] = row[t];
    if (t == n - 1) {
        total[0] = atomic_load_explicit(&count, memory_order_relaxed);
        total[1] = atomic_load_explicit(&highest, memory_order_relaxed);
    }
}
"""


@pytest.mark.parametrize("threads", [5, 7, 32, 50, 64, 100, 256])
def test_threadgroup_variables_and_their_atomics(threads):
    x = np.linspace(-1, 1, threads, dtype=np.float32)
    lib = mtl.library(WAITS, math_mode="safe")
    expected, highest, odd = x.astype(np.float32), 0, threads // 2
    t = np.arange(threads)
    for i in range(5):
        expected = np.roll(expected, -1) * (t % 8).astype(np.float32) + np.float32(i % 8 - 4)
        highest = max([highest, *t[expected > 3]])
    total = np.zeros(2, np.uint32)
    lib.waits(x, total, 5, threads=threads, group_size=threads)
    np.testing.assert_allclose(x, expected, rtol=1e-5)  # the addition may be fused
    assert total.tolist() == [5 * odd, highest]


@pytest.mark.needs("the CPU")
def test_many_regions_that_share_a_long_end():
    """One function has them all."""
    text = f"""kernel void f(device uint* p, constant uint& stop, uint t [[thread_position_in_threadgroup]]) {{
    for (uint i = 0; i < 60; ++i) {{
        if (i == stop) break;
        threadgroup_barrier(mem_flags::mem_device);
        uint v = p[(t + 1) % 64];
        threadgroup_barrier(mem_flags::mem_device);
        p[t] = v + i;
    }}
    threadgroup_barrier(mem_flags::mem_device);
    uint v = p[t];
    {" ".join(f"v = v * {2 * k + 1}u ^ (v >> {k % 7 + 1}); if (v % {k + 2} == 1) v += t;" for k in range(200))}
    p[t] = v;
    }}"""
    results = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            f = mtl.library(f"#include <metal_stdlib>\nusing namespace metal;\n{text}")["f"]
        for stop in (0, 3, 99):
            p = np.arange(64, dtype=np.uint32)
            f(p, stop, threads=64, group_size=64)
            results.append(p)
    assert f.engine.startswith("simd")
    for a, b in zip(results[:3], results[3:], strict=True):
        assert np.array_equal(a, b)
