"""Defects for the tests of the verifier: each function puts one into what a pass leaves of a kernel."""

import copy
from dataclasses import replace

from metalloid.compiler.ir.function import Block, Instruction, Value
from metalloid.compiler.ir.types import DOUBLE, FLOAT, I8, I32, I64, POINTER

FLOW = """
#include <metal_stdlib>
using namespace metal;
struct Pair { float4 a; float4 b; };
kernel void flow(device float* out, device const float4* in, device atomic_uint* count,
                 device Pair* pairs, constant uint& n, uint t [[thread_position_in_grid]],
                 uint l [[thread_position_in_threadgroup]]) {
    threadgroup float shared[64];
    float own[8] = {}, sum = 0;
    for (uint i = t; i < n; i += 64) {
        float4 v = in[i];
        if (v.x > 0) sum += v.y; else sum -= fma(v.z, v.w, v.x);
        own[i % 8] = sum;
        switch (uint(v.w)) {
            case 1: sum *= 3; break;
            case 4: out[t + 1] = sum; break;
            case 9: sum += out[t + 2]; break;
        }
    }
    shared[l] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint expected = 7;
    atomic_compare_exchange_weak_explicit(count + 1, &expected, t, memory_order_relaxed,
                                          memory_order_relaxed);
    uint before = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    pairs[t + 1] = pairs[t];
    out[t] = shared[l ^ 1] + own[l % 8] + before + expected;
}
"""

PRODUCT = """
#include <metal_stdlib>
using namespace metal;
kernel void product(device const float* a, device const float* b, device float* c,
                    constant uint& n) {
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0), x, y;
    for (uint k = 0; k < n; k++) {
        simdgroup_load(x, a + 64 * k, 8);
        simdgroup_load(y, b + 64 * k, 8);
        simdgroup_multiply_accumulate(sum, x, y, sum);
    }
    simdgroup_store(sum, c, 8);
}
"""

ASSERTION = """
#include <metal_stdlib>
kernel void assertion(device int* out, uint t [[thread_position_in_grid]]) {
    assert(out[t] > 0);
    out[t] += 1;
}
"""


def copied(function):
    """A function whose instructions may be changed."""
    blocks = {
        name: Block(name, list(map(changeable, block.phis)), list(map(changeable, block.body)),
                    changeable(block.end))
        for name, block in function.blocks.items()
    }  # fmt: skip
    return replace(function, blocks=blocks)


def changeable(instruction):
    changed = copy.copy(instruction)
    changed.operands, changed.labels = list(changed.operands), list(changed.labels)
    return changed


# ---- what the mutations work on


def first(function, op, **fields):
    """The first instruction of an operation."""
    return next(
        i for i in function.instructions()
        if i.op == op and all(getattr(i, name) == value for name, value in fields.items())
    )  # fmt: skip


def home(function, instruction):
    return next(
        b for b in function.blocks.values() if any(i is instruction for i in b.instructions())
    )


def with_phis(function):
    return next(block for block in function.blocks.values() if block.phis)


def branching(function):
    """The first block with a conditional branch."""
    return next(b for b in function.blocks.values() if b.end.op == "br" and b.end.operands)


def used_later(block):
    """An instruction of a block, and the number of another of it that uses the result."""
    for position, i in enumerate(block.body):
        for later, user in enumerate(block.body[position + 1 :], position + 1):
            if i.result and any(value.name == i.result for value in user.operands):
                return i, position, later
    raise AssertionError(f"{block.name} uses nothing of its own")


# ---- the mutations


def wrong_predecessor(function):
    with_phis(function).phis[0].labels[0] = with_phis(function).name + ".other"


def missing_incoming_value(function):
    phi = with_phis(function).phis[0]
    phi.operands.pop()
    phi.labels.pop()


def label_without_value(function):
    with_phis(function).phis[0].operands.pop()


def dropped_phi(function):
    block = with_phis(function)
    used = {value.name for i in function.instructions() for value in i.operands}
    block.phis.remove(next(phi for phi in block.phis if phi.result in used))


def edge_without_phi_entry(function):
    """A block gets one more predecessor, and its phis are not told."""
    block = with_phis(function)
    end = next(b.end for b in function.blocks.values() if block.name not in b.end.labels)
    end.op, end.labels, end.operands = "br", [block.name], []


def two_values_from_a_predecessor(function):
    phi = next(
        phi for phi in with_phis(function).phis if phi.operands[0].name != phi.operands[1].name
    )
    phi.labels.append(phi.labels[0])
    phi.operands.append(phi.operands[1])


def redefinition(function):
    block = branching(function)
    used, position, _ = used_later(block)
    block.body.insert(position, changeable(used))


def redefined_parameter(function):
    i = first(function, "getelementptr")
    i.result = function.parameters[0].name


def use_before_definition(function):
    block = branching(function)
    _, position, later = used_later(block)
    block.body.insert(later, block.body.pop(position))


def dropped_definition(function):
    block = branching(function)
    block.body.remove(used_later(block)[0])


def use_in_a_sibling(function):
    """Both targets of a branch: one uses what the other defines."""
    for block in function.blocks.values():
        targets = [function.blocks[label] for label in block.end.labels]
        values = [i for target in targets[:1] for i in target.body if i.result]
        if len(targets) == 2 and values and targets[0].end.labels != [targets[1].name]:
            value = values[0].value
            targets[1].body.append(Instruction("freeze", "%copy", value.type, [value]))
            return
    raise AssertionError("no branch")


def wrong_operand_type(function):
    i = first(function, "add", type=I32)
    i.operands[0] = Value(I64, i.operands[0].name)


def wrong_constant(function):
    i = first(function, "add", type=I32)
    i.operands[1] = Value(I32, "1.0")


def wrong_result_type(function):
    first(function, "fadd").type = DOUBLE


def missing_result(function):
    first(function, "load").result = ""


def missing_label(function):
    branching(function).end.labels[0] = "%nowhere"


def dropped_terminator(function):
    branching(function).end = Instruction("fence")


def terminator_inside(function):
    branching(function).body.append(Instruction("br", labels=[function.entry.name]))


def swapped_operands(function):
    first(function, "store").operands.reverse()


def swapped_select(function):
    i = first(function, "fadd")
    condition = first(function, "fcmp")
    body = home(function, condition).body
    at = next(n for n, each in enumerate(body) if each is condition) + 1
    zero = Value(FLOAT, "0.0")
    body.insert(at, Instruction("select", "%chosen", i.type, [zero, condition.value, zero]))


def phi_after_a_body_instruction(function):
    block = with_phis(function)
    block.body.append(block.phis.pop())


def body_instruction_among_phis(function):
    block = with_phis(function)
    block.phis.append(block.body.pop(0))


def duplicated_block(function):
    block = branching(function)
    twin = copied(function).blocks[block.name]
    twin.name += ".twin"
    function.blocks[twin.name] = twin


def block_twice(function):
    block = branching(function)
    function.blocks[block.name + ".again"] = block


def condition_that_is_no_i1(function):
    end = branching(function).end
    end.operands[0] = Value(I32, "1")


def store_of_another_type(function):
    stores = (i for i in function.instructions() if i.op == "store")
    i = next(i for i in stores if not i.operands[0].is_constant)
    i.operands[0] = Value(I8, i.operands[0].name)


def store_without_address(function):
    first(function, "store").operands.pop()


def entry_with_a_predecessor(function):
    end = branching(function).end
    end.labels[1] = function.entry.name


def return_of_a_value(function):
    first(function, "ret").operands.append(Value(I32, "0"))


def arguments_of_an_intrinsic(function):
    first(function, "call", type=FLOAT).operands.pop()


def type_of_an_intrinsic(function):
    call = first(function, "call", type=FLOAT)
    call.type = DOUBLE


def address_that_is_a_number(function):
    i = first(function, "load")
    i.operands[0] = Value(I64, "4096")


def float_index(function):
    i = first(function, "getelementptr")
    i.operands[-1] = Value(FLOAT, "1.0")


def cast_to_the_same_width(function):
    first(function, "zext").type = first(function, "zext").operands[0].type


def integer_arithmetic_on_floats(function):
    first(function, "fadd").op = "add"


def comparison_as_a_number(function):
    first(function, "icmp").type = I32


def member_that_is_missing(function):
    first(function, "extractvalue").type = POINTER


def exchange_of_two_types(function):
    i = first(function, "cmpxchg")
    i.operands[1] = Value(I64, "7")


def atomic_result(function):
    first(function, "atomicrmw").type = I64


def switch_without_a_target(function):
    first(function, "switch").labels.pop()


def switch_over_a_float(function):
    first(function, "switch").operands[0] = Value(FLOAT, "1.0")


def element_of_another_type(function):
    first(function, "extractelement").type = I32


def unknown_instruction(function):
    first(function, "fadd").op = "fadd3"


def elements_of_a_matrix(function):
    first(function, "to_matrix").operands.pop()


def matrix_times_number(function):
    first(function, "multiply_matrices").operands[0] = Value(FLOAT, "1.0")


def matrix_as_a_number(function):
    first(function, "multiply_matrices").type = FLOAT


def matrix_from_a_number(function):
    first(function, "load_matrix").operands[0] = Value(I64, "0")


def element_of_a_number(function):
    first(function, "of_matrix").operands[0] = Value(FLOAT, "0.0")


def assertion_of_a_number(function):
    i = next(i for i in function.instructions() if i.op.startswith("assert"))
    i.operands[0] = Value(I32, "1")


def assertion_of_nothing(function):
    next(i for i in function.instructions() if i.op.startswith("assert")).operands.clear()


def assertion_with_a_result(function):
    i = next(i for i in function.instructions() if i.op.startswith("assert"))
    i.result = "%passed"


#: Mutation, kernel, pass after which it happens, and what the verifier says.
MUTATIONS = [
    (wrong_predecessor, FLOW, "scalarize-vectors", "the predecessors are"),
    (missing_incoming_value, FLOW, "simplify-loops", "the predecessors are"),
    (label_without_value, FLOW, "simplify-loops", "incoming blocks"),
    (dropped_phi, FLOW, "version-uniform-loops", "is not defined"),
    (edge_without_phi_entry, FLOW, "split-at-barriers", "the predecessors are"),
    (two_values_from_a_predecessor, FLOW, "simplify-loops", "two values from"),
    (redefinition, FLOW, "lower-memcpy", "several definitions"),
    (redefined_parameter, FLOW, "lower-memcpy", "%ids has several definitions"),
    (use_before_definition, FLOW, "rematerialize", "does not dominate"),
    (dropped_definition, FLOW, "scalarize-vectors", "is not defined"),
    (use_in_a_sibling, FLOW, "simplify-loops", "does not dominate"),
    (wrong_operand_type, FLOW, "soa-private", "is of type i32"),
    (wrong_constant, FLOW, "soa-private", "1.0 is not a constant of type i32"),
    (wrong_result_type, FLOW, "scalarize-vectors", "of type float instead of double"),
    (missing_result, FLOW, "scalarize-vectors", "a result of type"),
    (missing_label, FLOW, "simplify-loops", "%nowhere, which does not exist"),
    (dropped_terminator, FLOW, "split-at-barriers", "fence, which is not a terminator"),
    (terminator_inside, FLOW, "split-at-barriers", "br among its ordinary"),
    (swapped_operands, FLOW, "lower-memcpy", "instead of ptr"),
    (swapped_select, FLOW, "scalarize-vectors", "a condition of type float"),
    (phi_after_a_body_instruction, FLOW, "simplify-loops", "phi among its ordinary"),
    (body_instruction_among_phis, FLOW, "simplify-loops", "among its phis"),
    (duplicated_block, FLOW, "version-uniform-loops", "several definitions"),
    (block_twice, FLOW, "version-uniform-loops", "is listed as"),
    (condition_that_is_no_i1, FLOW, "simplify-loops", "type i32 instead of i1"),
    (store_of_another_type, FLOW, "scalarize-vectors", "is of type float"),
    (store_without_address, FLOW, "lower-memcpy", "1 operands instead of 2"),
    (entry_with_a_predecessor, FLOW, "split-at-barriers", "branches to the entry"),
    (return_of_a_value, FLOW, "split-at-barriers", "a return of i32 from a function of void"),
    (arguments_of_an_intrinsic, FLOW, "scalarize-vectors", "2 arguments instead of 3"),
    (type_of_an_intrinsic, FLOW, "scalarize-vectors", "of type double instead of float"),
    (address_that_is_a_number, FLOW, "scalarize-vectors", "type i64 instead of ptr"),
    (float_index, FLOW, "scalarize-vectors", "an index of type float"),
    (cast_to_the_same_width, FLOW, "soa-private", "zext from i32 to i32"),
    (integer_arithmetic_on_floats, FLOW, "soa-private", "add of float"),
    (comparison_as_a_number, FLOW, "rematerialize", "gives i1"),
    (member_that_is_missing, FLOW, "rematerialize", "member 0 of"),
    (exchange_of_two_types, FLOW, "rematerialize", "an exchange of i64 and i32"),
    (atomic_result, FLOW, "defer-atomics", "of type i32 instead of i64"),
    (switch_without_a_target, FLOW, "split-at-barriers", "targets instead of"),
    (switch_over_a_float, FLOW, "split-at-barriers", "a switch over float"),
    (element_of_another_type, FLOW, "lower-memcpy", "an element of"),
    (unknown_instruction, FLOW, "soa-private", "the unknown instruction fadd3"),
    (elements_of_a_matrix, PRODUCT, "lower-matrix-products", "1 operands instead of 2"),
    (matrix_times_number, PRODUCT, "scalarize-vectors", "type float instead of"),
    (matrix_as_a_number, PRODUCT, "forward-matrices", "a product of type float"),
    (matrix_from_a_number, PRODUCT, "forward-matrices", "type i64 instead of ptr"),
    (element_of_a_number, PRODUCT, "lower-matrix-products", "type float instead of"),
    (assertion_of_a_number, ASSERTION, "lower-assertions", "type i32 instead of i1"),
    (assertion_of_nothing, ASSERTION, "simplify-loops", "no condition"),
    (assertion_with_a_result, ASSERTION, "simplify-loops", "a result of type void"),
]
