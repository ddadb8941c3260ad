"""The type rules of single instructions, LLVM's and those of our own (`DIALECT`), for the verifier.

`type_error` looks at one instruction: number and types of its operands, and the type of its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from metalloid.compiler.ir.function import Instruction, Value, member_type
from metalloid.compiler.ir.matrix_type import MATRIX, PAIR, Matrix
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import (
    FLOAT,
    I1,
    I8,
    POINTER,
    VOID,
    Array,
    Float,
    Integer,
    Metadata,
    Pointer,
    Struct,
    Type,
    Unsupported,
    Vector,
    Void,
    bits_of,
)


def type_error(i: Instruction) -> str:
    """The error in the types of an instruction by themselves; empty without one."""
    if (i.result == "") != (i.type.__class__ is Void):
        return f"a result of type {i.type}"
    if i.op not in _RULES:
        return f"the unknown instruction {i.op}"
    count, rule = _RULES[i.op]
    if count is not None and len(i.operands) != count:
        return f"{len(i.operands)} operands instead of {count}"
    return rule(i)


# ---- constants ----

_LITERALS: dict[type[Type], re.Pattern[str]] = {
    Integer: re.compile(r"-?\d+$|true$|false$|ptrtoint\b"),
    Float: re.compile(r"-?\d[\d.]*(?:e[-+]?\d+)?$|0x|-?nan$|-?inf$"),
    Pointer: re.compile(r"null$|@|(?:getelementptr|inttoptr|addrspacecast)\b"),
    Metadata: re.compile(r"!"),
    Vector: re.compile(r"<|splat\b"),
    Array: re.compile(r"\[|c?\""),
    Struct: re.compile(r"[<{]"),
    Matrix: re.compile(r"\["),
}
_OF_ANY_TYPE = frozenset(("undef", "poison", "zeroinitializer"))
#: Pairs of class of type and constant that were found to match.
_matching: set[tuple[type[Type], str]] = set()


def constant_error(value: Value) -> str:
    """The error in a constant of a type; empty without one."""
    type_, text = value
    if (type_.__class__, text) in _matching:
        return ""
    literal = _LITERALS.get(type_.__class__)
    if text in _OF_ANY_TYPE or text.startswith("bitcast"):
        is_known = type_ != VOID
    else:
        is_known = literal is not None and literal.match(text) is not None
    if not is_known or (text in ("true", "false") and type_ != I1):
        return f"{text} is not a constant of type {type_}"
    if type_ != I1:
        _matching.add((type_.__class__, text))
    return ""


# ---- rules: what is wrong, or "" ----


def _differing(required: Type, values: Iterable[Value]) -> str:
    for value in values:
        type_ = value[0]
        if type_ is not required and type_ != required:
            return f"an operand of type {type_} instead of {required}"
    return ""


def _element(type_: Type) -> Type:
    return type_.element if isinstance(type_, Vector) else type_


def _not_an_address(value: Value) -> str:
    return (
        "" if isinstance(value.type, Pointer) else f"an operand of type {value.type} instead of ptr"
    )


def _with_element(type_: Type, element: Type) -> Type:
    return Vector(type_.lanes, element) if isinstance(type_, Vector) else element


def _integer_arithmetic(i: Instruction) -> str:
    if not isinstance(_element(i.type), Integer):
        return f"{i.op} of {i.type}"
    return _differing(i.type, i.operands)


def _float_arithmetic(i: Instruction) -> str:
    if not isinstance(_element(i.type), Float):
        return f"{i.op} of {i.type}"
    return _differing(i.type, i.operands)


def _all_as_the_result(i: Instruction) -> str:
    return _differing(i.type, i.operands)


def _comparison(i: Instruction) -> str:
    compared = i.operands[0].type
    if (i.op == "fcmp") != isinstance(_element(compared), Float):
        return f"{i.op} of {compared}"
    if i.type != _with_element(compared, I1):
        return f"a comparison of {compared} gives {_with_element(compared, I1)}"
    return _differing(compared, i.operands)


_CAST_KINDS: dict[str, tuple[type[Type], type[Type]]] = {
    "zext": (Integer, Integer), "sext": (Integer, Integer), "trunc": (Integer, Integer),
    "fptrunc": (Float, Float), "fpext": (Float, Float),
    "fptoui": (Float, Integer), "fptosi": (Float, Integer),
    "uitofp": (Integer, Float), "sitofp": (Integer, Float),
    "ptrtoint": (Pointer, Integer), "inttoptr": (Integer, Pointer),
    "addrspacecast": (Pointer, Pointer),
}  # fmt: skip
_WIDENS, _NARROWS = frozenset(("zext", "sext", "fpext")), frozenset(("trunc", "fptrunc"))


def _cast(i: Instruction) -> str:
    op, source, target = i.op, i.operands[0].type, i.type
    wrong = f"{op} from {source} to {target}"
    kinds = _CAST_KINDS.get(op)
    if kinds is None:
        return wrong if op == "bitcast" and bits_of(source) != bits_of(target) else ""
    before, after = source, target
    if isinstance(source, Vector) or isinstance(target, Vector):
        if _with_element(source, I1) != _with_element(target, I1):
            return wrong
        before, after = _element(source), _element(target)
    if not (isinstance(before, kinds[0]) and isinstance(after, kinds[1])):
        return wrong
    if op in _WIDENS:
        return wrong if bits_of(before) >= bits_of(after) else ""
    return wrong if op in _NARROWS and bits_of(before) <= bits_of(after) else ""


def _select(i: Instruction) -> str:
    condition = i.operands[0].type
    if condition != I1 and condition != _with_element(i.type, I1):
        return f"a condition of type {condition}"
    return _differing(i.type, i.operands[1:])


def _load(i: Instruction) -> str:
    return _not_an_address(i.operands[0])


def _store(i: Instruction) -> str:
    return _not_an_address(i.operands[1])


def _getelementptr(i: Instruction) -> str:
    if not i.operands:
        return "no address"
    address = _element(i.operands[0].type)
    if not isinstance(address, Pointer):
        return f"an operand of type {address} instead of ptr"
    if _element(i.type) != address:
        return f"an address of type {i.type} inside of {address}"
    inside = i.source
    for number, index in enumerate(i.operands[1:]):
        if not isinstance(_element(index.type), Integer):
            return f"an index of type {index.type}"
        if number == 0:
            continue
        if isinstance(inside, Struct):
            member = index.integer
            if member is None or not 0 <= member < len(inside.members):
                return f"member {index.name} of {inside}"
            inside = inside.members[member]
        elif isinstance(inside, Array | Vector):
            inside = inside.element
        else:
            return f"an element of {inside}"
    return ""


def _atomicrmw(i: Instruction) -> str:
    return _not_an_address(i.operands[0]) or _differing(i.type, i.operands[1:])


def _cmpxchg(i: Instruction) -> str:
    address, expected, new = i.operands
    if new.type != expected.type or i.type != Struct((expected.type, I1)):
        return f"a result of type {i.type} of an exchange of {expected.type} and {new.type}"
    return _not_an_address(address)


def _alloca(i: Instruction) -> str:
    if not isinstance(i.type, Pointer) or i.source == VOID:
        return f"memory for {i.source} at an address of type {i.type}"
    if "parameter" in i.flags:
        return _differing(POINTER, i.operands) if len(i.operands) == 1 else "no parameter"
    is_counted = all(isinstance(operand.type, Integer) for operand in i.operands)
    return "" if is_counted and len(i.operands) <= 1 else "a count that is not an integer"


def _extractvalue(i: Instruction) -> str:
    return _member_error(i, i.type)


def _insertvalue(i: Instruction) -> str:
    aggregate, member = i.operands
    return _differing(i.type, (aggregate,)) or _member_error(i, member.type)


def _member_error(i: Instruction, type_: Type) -> str:
    """The error in a member of the first operand, of that type."""
    aggregate = i.operands[0].type
    try:
        is_right = bool(i.indices) and member_type(aggregate, i.indices) == type_
    except (Unsupported, IndexError):
        is_right = False
    return "" if is_right else f"member {', '.join(map(str, i.indices))} of {aggregate} as {type_}"


def _extractelement(i: Instruction) -> str:
    vector, index = (operand.type for operand in i.operands)
    if not isinstance(vector, Vector) or i.type != vector.element or not isinstance(index, Integer):
        return f"an element of {vector} by {index} as {i.type}"
    return ""


def _insertelement(i: Instruction) -> str:
    vector, element, index = (operand.type for operand in i.operands)
    if (
        not isinstance(vector, Vector)
        or i.type != vector
        or element != vector.element
        or not isinstance(index, Integer)
    ):
        return f"{element} into {vector} by {index} as {i.type}"
    return ""


def _shufflevector(i: Instruction) -> str:
    first, second = (operand.type for operand in i.operands)
    if (
        not isinstance(first, Vector)
        or second != first
        or i.type != Vector(len(i.mask), first.element)
        or not all(-1 <= n < 2 * first.lanes for n in i.mask)
    ):
        return f"a shuffle of {first} and {second} to {i.type}"
    return ""


def _br(i: Instruction) -> str:
    return _differing(I1, i.operands)


def _switch(i: Instruction) -> str:
    selector = i.operands[0].type
    return "" if isinstance(selector, Integer) else f"a switch over {selector}"


def _nothing(i: Instruction) -> str:
    return ""


# ---- calls of LLVM's intrinsics ----

_INTRINSIC = re.compile(r"@llvm\.([a-z\d.]+?)\.(v\d+)?(bf16|[if]\d+)$")
#: Operands of the type that is the last part of the name, as is the result.
_ELEMENTWISE = {
    **dict.fromkeys(
        ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven",
         "exp", "exp2", "log", "log2", "log10", "sin", "cos", "ctpop", "bswap", "bitreverse",
         "canonicalize", "abs", "ctlz", "cttz"), 1,
    ),
    **dict.fromkeys(
        ("pow", "minnum", "maxnum", "minimum", "maximum", "copysign", "smax", "smin", "umax",
         "umin", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat"), 2,
    ),
    **dict.fromkeys(("fma", "fmuladd", "fshl", "fshr"), 3),
}  # fmt: skip
_WITH_FLAG = ("abs", "ctlz", "cttz")
_FLOAT_NAMES = {"bf16": "bfloat", "f16": "half", "f32": "float", "f64": "double"}


def _call(i: Instruction) -> str:
    if not i.callee.startswith("@llvm."):
        return ""
    match = _INTRINSIC.match(i.callee)
    if match is None or match[1] not in _ELEMENTWISE:
        return ""
    element = Float(_FLOAT_NAMES[match[3]]) if match[3][0] != "i" else Integer(int(match[3][1:]))
    required: Type = Vector(int(match[2][1:]), element) if match[2] else element
    count = _ELEMENTWISE[match[1]]
    flags = 1 if match[1] in _WITH_FLAG else 0
    if len(i.operands) != count + flags:
        return f"{len(i.operands)} arguments instead of {count + flags}"
    if i.type != required:
        return f"a result of type {i.type} instead of {required}"
    return _differing(required, i.operands[:count]) or _differing(I1, i.operands[count:])


# ---- our own instructions ----


def _assertion(i: Instruction) -> str:
    return _differing(I1, i.operands[:1]) if i.operands else "no condition"


def _copy(i: Instruction) -> str:
    source, size, target = (operand.type for operand in i.operands)
    required = I8 if i.op == "fill" else POINTER
    if source != required or not isinstance(size, Integer) or target != POINTER:
        return f"{i.op} from {source} to {target}, with a size of type {size}"
    return ""


def _of_types(result: Type, *operands: Type) -> Callable[[Instruction], str]:
    """The rule of an instruction whose types are fixed."""

    def rule(i: Instruction) -> str:
        if i.type != result:
            return f"a result of type {i.type} instead of {result}"
        pairs = zip(operands, i.operands, strict=True)
        return next(filter(None, (_differing(type_, (value,)) for type_, value in pairs)), "")

    return rule


def _multiply_matrices(i: Instruction) -> str:
    if i.type not in (MATRIX, PAIR):
        return f"a product of type {i.type}"
    return _differing(MATRIX, i.operands[:1]) or _differing(i.type, i.operands[1:])


_Rule = Callable[[Instruction], str]
#: Number of operands, None if it varies, and the rule of each instruction.
_RULES: dict[str, tuple[int | None, _Rule]] = {
    **dict.fromkeys(INTEGER_BINARY, (2, _integer_arithmetic)),
    **dict.fromkeys(FLOAT_BINARY, (2, _float_arithmetic)),
    **dict.fromkeys(CASTS, (1, _cast)),
    "fneg": (1, _float_arithmetic), "freeze": (1, _all_as_the_result),
    "icmp": (2, _comparison), "fcmp": (2, _comparison), "select": (3, _select),
    "phi": (None, _all_as_the_result), "call": (None, _call),
    "load": (1, _load), "store": (2, _store), "getelementptr": (None, _getelementptr),
    "atomicrmw": (2, _atomicrmw), "cmpxchg": (3, _cmpxchg), "fence": (0, _nothing),
    "alloca": (None, _alloca), "extractvalue": (1, _extractvalue),
    "insertvalue": (2, _insertvalue),
    "extractelement": (2, _extractelement), "insertelement": (3, _insertelement),
    "shufflevector": (2, _shufflevector),
    "br": (None, _br), "switch": (1, _switch), "unreachable": (0, _nothing),
    "ret": (None, _nothing),  # the verifier knows the function's result
    "assert": (None, _assertion), "assert_not": (None, _assertion),
    "assert_inside": (6, _assertion),
    "copy": (3, _copy), "fill": (3, _copy),
    "to_matrix": (2, _of_types(MATRIX, FLOAT, FLOAT)), "of_matrix": (1, _of_types(FLOAT, MATRIX)),
    "load_matrix": (1, _of_types(MATRIX, POINTER)), "multiply_matrices": (3, _multiply_matrices),
    "join_matrices": (2, _of_types(PAIR, MATRIX, MATRIX)),
    "half_of_pair": (1, _of_types(MATRIX, PAIR)),
}  # fmt: skip
