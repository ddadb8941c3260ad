"""Small vectors taken apart, copies as loads and stores, neighbouring accesses found."""

import pytest
from spmd_texts import analysed, function

from metalloid.compiler.ir.types import Unsupported, Vector
from metalloid.compiler.transforms.lower_memcpy import lower_memcpy
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.vectorize.memory.interleave_groups import find_groups

PARAMETERS = "ptr %p, i32 %x, float %f, float %g, i32 %u"


def scalars(body, parameters=PARAMETERS):
    parsed = function(f"entry: {body}; ret void", parameters)
    scalarize_vectors(parsed)
    assert not any(
        isinstance(value.type, Vector)
        for i in parsed.instructions()
        for value in (i.value, *i.operands)
    )
    return parsed.entry.body


def stored(body):
    """The stores, as (value, distance from %p)."""
    distance, stores = {"%p": 0}, []
    for i in scalars(body):
        if i.op == "getelementptr":
            distance[i.result] = distance[i.operands[0].name] + i.operands[1].integer
        elif i.op == "store":
            stores.append((i.operands[0].name, distance[i.operands[1].name]))
    return stores


TWO = "%a = insertelement <2 x float> poison, float %f, i64 0; %b = insertelement <2 x float> %a, float %g, i64 1"


def test_insertions_and_extractions_are_names():
    [store] = scalars(f"{TWO}; %r = extractelement <2 x float> %b, i64 1; store float %r, ptr %p")
    assert store.operands[0].name == "%g"


def test_a_shuffle_chooses_names():
    swizzled = f"{TWO}; %s = shufflevector <2 x float> %b, <2 x float> splat (float 2.0), <4 x i32> <i32 1, i32 0, i32 3, i32 1>"
    assert stored(f"{swizzled}; store <4 x float> %s, ptr %p, align 16") == [
        ("%g", 0), ("%f", 4), ("2.0", 8), ("%g", 12),
    ]  # fmt: skip


def test_scalarized_arithmetic_retains_its_flags():
    body = scalars(
        f"{TWO}; %s = fadd contract <2 x float> %b, <float 1.0, float 2.0>; store <2 x float> %s, ptr %p"
    )
    sums = [i for i in body if i.op == "fadd"]
    assert [[v.name for v in i.operands] for i in sums] == [["%f", "1.0"], ["%g", "2.0"]]
    assert all(i.flags == ("contract",) for i in sums)


def test_alignment_of_the_parts():
    loads = [i for i in scalars("%v = load <4 x float>, ptr %p, align 16") if i.op == "load"]
    assert [i.align for i in loads] == [16, 4, 8, 4]


def test_an_index_known_only_when_it_runs_becomes_choices():
    body = scalars(f"{TWO}; %r = extractelement <2 x float> %b, i32 %u; store float %r, ptr %p")
    assert [i.op for i in body] == ["icmp", "select", "store"]


def test_a_reduction_goes_from_left_to_right():
    body = scalars(
        f"{TWO}; %r = call float @llvm.vector.reduce.fadd.v2f32(float 0.0, <2 x float> %b); store float %r, ptr %p"
    )
    first, second, _ = body
    assert [v.name for v in first.operands] == ["0.0", "%f"]
    assert [v.name for v in second.operands] == [first.result, "%g"]


def test_phis_of_vectors():
    parsed = function(
        """
        entry: %v = load <2 x float>, ptr %p; br label %head
        head: %s = phi <2 x float> [ %v, %entry ], [ %t, %head ]; %t = fadd <2 x float> %s, %s; %c = icmp eq i32 %u, 0; br i1 %c, label %head, label %end
        end: ret void
        """,
        PARAMETERS,
    )
    scalarize_vectors(parsed)
    phis = parsed.blocks["%head"].phis
    assert len(phis) == 2
    for phi in phis:
        assert len({v.name for v in phi.operands}) == 2
        assert phi.labels == ["%entry", "%head"]


def test_bits_of_a_vector_as_a_number():
    body = scalars(f"{TWO}; %r = bitcast <2 x float> %b to i64; store i64 %r, ptr %p")
    shifts = [i.operands[1].integer for i in body if i.op == "shl"]
    assert shifts == [32]  # the first component is the low half


def test_what_has_no_components():
    with pytest.raises(Unsupported, match="vector of bits in memory"):
        scalars("%r = load <8 x i1>, ptr %p")


# ---- copies


def test_a_copy_becomes_loads_before_stores():
    parsed = function(
        "entry: call void @llvm.memcpy.p0.p0.i64(ptr align 4 %p, ptr align 4 %q, i64 12, i1 false); ret void",
        "ptr %p, ptr %q",
    )
    lower_memcpy(parsed)
    accesses = [i for i in parsed.instructions() if i.op in ("load", "store")]
    moved = [i.type if i.op == "load" else i.operands[0].type for i in accesses]
    for op in ("load", "store"):
        assert sum(t.size for t, i in zip(moved, accesses, strict=True) if i.op == op) == 12
    assert not [i for i in parsed.instructions() if i.op == "call"]


# ---- neighbours


def members(body):
    """The group of each access and its index there, by result or stored value, if it has one."""
    divergence = analysed(f"entry: {body}; ret void")
    groups = find_groups(divergence)
    return {
        (i.result or i.operands[0].name): (id(groups[i][0]), groups[i][1])
        for i in divergence.function.instructions()
        if i in groups
    }


SHARED = "%i = mul i32 %x, 16; %b = getelementptr i8, ptr %p, i32 %i"


def load_of(name, number):
    return (
        f"%{name}.p = getelementptr i8, ptr %b, i64 {4 * number}; %{name} = load i32, ptr %{name}.p"
    )


def store_of(value, number):
    return f"%p{number} = getelementptr i8, ptr %b, i64 {4 * number}; store i32 {value}, ptr %p{number}"


def test_members_of_one_element_are_a_group():
    accesses = members(f"{SHARED}; {load_of('w', 3)}; {load_of('y', 1)}; {load_of('z', 2)}")
    assert {name: index for name, (_, index) in accesses.items()} == {"%y": 0, "%z": 1, "%w": 2}
    assert len({group for group, _ in accesses.values()}) == 1


def test_a_store_between_loads_separates_them():
    accesses = members(f"{SHARED}; {load_of('y', 1)}; store i32 1, ptr %p; {load_of('z', 2)}")
    groups = {name: group for name, (group, _) in accesses.items()}
    assert groups["%y"] != groups["%z"]


def test_stores_are_a_group_only_without_gaps():
    """Memory in a gap belongs to others."""
    some = [store_of(f"{n}", n) for n in range(3)]
    assert not members("; ".join([SHARED, *some]))
    all_of_them = members("; ".join([SHARED, *some, store_of("3", 3)]))
    assert [index for _, index in all_of_them.values()] == [0, 1, 2, 3]


def test_rows_and_uniform_accesses_have_no_group():
    row = "%q = getelementptr i32, ptr %p, i32 %x; %a = load i32, ptr %q; %c2 = load i32, ptr %p"
    assert not members(row)
