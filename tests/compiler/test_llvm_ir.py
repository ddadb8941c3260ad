"""LLVM IR as data: types, parsing, control flow."""

import ctypes

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from metalloid.compiler.ir import cfg
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.ir.parser import flatten_address_spaces, parse_function
from metalloid.compiler.ir.types import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Integer,
    Struct,
    Unsupported,
    Vector,
    bits_of,
)

SCALARS = {
    I8: ctypes.c_int8, I16: ctypes.c_int16, I32: ctypes.c_int32, I64: ctypes.c_int64,
    FLOAT: ctypes.c_float, DOUBLE: ctypes.c_double, POINTER: ctypes.c_void_p,
}  # fmt: skip


def in_c(ir_type):
    """The same type in ctypes, whose layout is the C compiler's."""
    if isinstance(ir_type, Array):
        return in_c(ir_type.element) * ir_type.count
    if isinstance(ir_type, Struct):
        fields = [(f"m{n}", in_c(member)) for n, member in enumerate(ir_type.members)]
        return type("S", (ctypes.Structure,), {"_fields_": fields})
    return SCALARS[ir_type]


TYPES = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda inner: st.one_of(
        st.builds(Array, st.integers(1, 4), inner),
        st.builds(Struct, st.lists(inner, min_size=1, max_size=4).map(tuple)),
    ),
    max_leaves=8,
)


@given(TYPES)
def test_layouts_are_those_of_c(type_):
    c = in_c(type_)
    assert (type_.size, type_.alignment) == (ctypes.sizeof(c), ctypes.alignment(c))
    if isinstance(type_, Struct):
        offsets = [getattr(c, f"m{n}").offset for n in range(len(type_.members))]
        assert [type_.offset(n) for n in range(len(type_.members))] == offsets


@pytest.mark.parametrize(
    ("type", "text", "size"),
    [
        (Vector(4, FLOAT), "<4 x float>", 16),
        (Vector(3, HALF), "<3 x half>", 8),
        (Integer(1), "i1", 1),
        (Integer(24), "i24", 4),
        (Struct((I8, I32), packed=True), "<{ i8, i32 }>", 5),
        (Array(2, Vector(2, I32)), "[2 x <2 x i32>]", 16),
    ],
)
def test_types(type, text, size):
    assert (str(type), type.size) == (text, size)


def test_what_has_no_width():
    with pytest.raises(Unsupported, match="the width of"):
        bits_of(VOID)


def instruction(line, declarations=""):
    text = f"{declarations}\ndefine void @f(ptr %p, i32 %n, float %x) #0 {{\nentry:\n  {line}\n  ret void\n}}\n"
    return parse_function(flatten_address_spaces(text), "f").entry.body[0]


@pytest.mark.parametrize(
    ("line", "op", "type", "operands", "flags", "fields"),
    [
        ("%r = add nuw nsw i32 %n, -1", "add", "i32", ["i32 %n", "i32 -1"], ("nuw", "nsw"), {}),
        ("%r = fmul contract float %x, 0x4170000000000000", "fmul", "float",
         ["float %x", "float 0x4170000000000000"], ("contract",), {}),
        ("%r = icmp samesign ult i32 %n, 5", "icmp", "i1", ["i32 %n", "i32 5"], ("samesign",), {"predicate": "ult"}),
        ("%r = fcmp olt <2 x float> %a, zeroinitializer", "fcmp", "<2 x i1>",
         ["<2 x float> %a", "<2 x float> zeroinitializer"], (), {"predicate": "olt"}),
        ("%r = zext nneg i32 %n to i64", "zext", "i64", ["i32 %n"], ("nneg",), {}),
        ("%r = load <4 x half>, ptr addrspace(1) %p, align 8, !tbaa !5", "load", "<4 x half>", ["ptr %p"], (), {}),
        ("%r = load atomic i32, ptr %p syncscope(\"agent\") monotonic, align 4", "load", "i32", ["ptr %p"], (), {"ordering": "monotonic"}),
        ("store volatile float %x, ptr %p, align 4", "store", "void", ["float %x", "ptr %p"], ("volatile",), {}),
        ("%r = getelementptr inbounds nuw [4 x float], ptr %p, i64 0, i32 %n", "getelementptr", "ptr",
         ["ptr %p", "i64 0", "i32 %n"], ("inbounds", "nuw"), {}),
        ("%r = select i1 %c, float %x, float 1.000000e+00", "select", "float",
         ["i1 %c", "float %x", "float 1.000000e+00"], (), {}),
        ("%r = atomicrmw umax ptr %p, i32 %n seq_cst, align 4", "atomicrmw", "i32", ["ptr %p", "i32 %n"], (), {"operation": "umax", "ordering": "seq_cst"}),
        ("%r = cmpxchg weak ptr %p, i32 %n, i32 7 acquire monotonic, align 4", "cmpxchg", "{ i32, i1 }",
         ["ptr %p", "i32 %n", "i32 7"], ("weak",), {"ordering": "acquire monotonic"}),
        ("%r = extractvalue { i32, i1 } %q, 1", "extractvalue", "i1", ["{ i32, i1 } %q"], (), {"indices": (1,)}),
        ("%r = insertelement <4 x float> poison, float %x, i64 2", "insertelement", "<4 x float>",
         ["<4 x float> poison", "float %x", "i64 2"], (), {}),
        ("%r = shufflevector <2 x float> %a, <2 x float> poison, <4 x i32> <i32 0, i32 1, i32 poison, i32 0>",
         "shufflevector", "<4 x float>", ["<2 x float> %a", "<2 x float> poison"], (), {"mask": (0, 1, -1, 0)}),
        ("%r = tail call noundef range(i32 0, 33) i32 @llvm.ctpop.i32(i32 noundef %n) #3", "call", "i32", ["i32 %n"], ("tail",), {"callee": "@llvm.ctpop.i32"}),
        ("%r = alloca [4 x float], align 16", "alloca", "ptr", [], (), {}),
        ("fence syncscope(\"workgroup\") seq_cst", "fence", "void", [], (), {"ordering": "seq_cst"}),
    ],
)  # fmt: skip
def test_instructions(line, op, type, operands, flags, fields):
    parsed = instruction(line)
    assert (parsed.op, str(parsed.type), list(map(str, parsed.operands)), parsed.flags) == (
        op, type, operands, flags,
    )  # fmt: skip
    for name in ("callee", "predicate", "operation", "ordering", "cases", "mask", "indices"):
        assert getattr(parsed, name) == fields.get(name, getattr(Instruction(""), name))
    assert parsed.result == ("" if type == "void" else "%r")


def test_named_structs_switches_and_phis():
    text = """
%struct.S = type { i32, [2 x float] }
define void @f(ptr noundef readonly align 8 captures(none) %p, i32 %n) local_unnamed_addr #1 {
  %1 = getelementptr %struct.S, ptr %p, i64 3, i32 1, i64 %k
  switch i32 %n, label %other [
    i32 0, label %zero
    i32 -5, label %zero
  ]

zero:                                             ; preds = %0, %0
  br label %other, !llvm.loop !7

other:
  %v = phi i32 [ 1, %0 ], [ %n, %zero ]
  ret void
}
"""
    function = parse_function(text, "f")
    assert [str(p) for p in function.parameters] == ["ptr %p", "i32 %n"]
    step = function.entry.body[0]
    assert step.source == Struct((I32, Array(2, FLOAT)))
    assert function.entry.end.labels == ["%other", "%zero", "%zero"]
    assert function.entry.end.cases == (0, -5)
    [phi] = function.blocks["%other"].phis
    assert (phi.labels, [v.name for v in phi.operands]) == (["%0", "%zero"], ["1", "%n"])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("%r = alloca float, i32 %n", "size known only when it runs"),
        ("%r = call float %q(float %x)", "through a pointer"),
        ("%r = load x86_fp80, ptr %p", "the type x86_fp80"),
        ("%r = va_arg ptr %p, i32", "the instruction va_arg"),
        ("%r = add i32 %n", "incomplete"),
        ("%r = call i32 @f(i32 %n", "incomplete"),
    ],
)
def test_what_no_kernel_contains_is_refused(line, why):
    with pytest.raises(Unsupported, match=why):
        instruction(line)


# ---- control flow

GRAPHS = st.lists(st.lists(st.integers(0, 9), min_size=0, max_size=2), min_size=10, max_size=10)


def function_of(graph):
    blocks = {}
    for number, targets in enumerate(graph):
        end = Instruction("br" if targets else "ret", labels=[f"%{t}" for t in targets])
        blocks[f"%{number}"] = Block(f"%{number}", end=end)
    return Function("f", VOID, [], "", blocks)


def reachable(successors, start, without=None):
    seen, todo = set(), [start]
    while todo:
        node = todo.pop()
        if node not in seen and node != without:
            seen.add(node)
            todo += successors[node]
    return seen


@given(GRAPHS)
def test_dominators(graph):
    function = function_of(graph)
    successors = {name: block.successors for name, block in function.blocks.items()}
    order = cfg.reverse_postorder("%0", successors.__getitem__)
    predecessors = {name: [p for p in order if name in successors[p]] for name in order}
    dominator = cfg.immediate_dominators(order, predecessors)
    assert set(order) == reachable(successors, "%0")
    for name in order[1:]:
        # The dominators of a block are those without which it cannot be reached.
        strict = {d for d in order if d != name and name not in reachable(successors, "%0", d)}
        chain, node = set(), name
        while node != "%0":
            node = dominator[node]
            chain.add(node)
        assert chain == strict


@given(GRAPHS)
def test_loops(graph):
    function = function_of(graph)
    try:
        flow = cfg.Graph(function)
    except Unsupported:
        reject()  # a loop with two entries
    for loop in flow.loops:
        for block in loop.blocks:
            assert flow.dominates(loop.header, block)
            # From each block of a loop its header can be reached without leaving the loop.
            inside = {b: [s for s in flow.successors[b] if s in loop.blocks] for b in loop.blocks}
            assert loop.header in reachable(inside, block)
        outside = {s for b in loop.blocks for s in flow.successors[b]} - loop.blocks
        assert set(loop.exits) == outside
        assert loop.parent is None or loop.blocks <= loop.parent.blocks


def test_bits_are_bits():
    assert bits_of(Vector(8, I1)) == 8
