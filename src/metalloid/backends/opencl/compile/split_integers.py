"""Integers wider than 64 bits, which SPIR-V does not have, as words of 32 bits or less.

LLVM loads and stores structs by such integers, and takes their members out by shifts.
"""

from __future__ import annotations

import functools

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import I1, I8, I32, I64, Integer, Type, Unsupported, Vector

_MAX_BITS = 64
_BITWISE = ("and", "or", "xor")


def split_integers(function: Function, names: FreshNames) -> bool:
    """Replace such integers by words; whether there were any.

    Raises
    ------
    Unsupported
        For operations other than those that take structs apart.
    """
    if not any(_is_wide(i.type) or any(_is_wide(v.type) for v in i.operands)
               for i in function.instructions()):  # fmt: skip
        return False
    _Splitter(function, names).run()
    return True


def _is_wide(type: Type) -> bool:
    return isinstance(type, Integer) and type.bits > _MAX_BITS


def _word(type: Type) -> Integer:
    """The type of the words of an integer."""
    assert isinstance(type, Integer)
    size = next((bits for bits in (32, 16, 8) if type.bits % bits == 0), 0)
    if not size:
        raise Unsupported(f"an integer of {type.bits} bits")
    return Integer(size)


def _count(type: Type) -> int:
    assert isinstance(type, Integer)
    return type.bits // _word(type).bits


class _Splitter:
    def __init__(self, function: Function, names: FreshNames) -> None:
        self._function, self._names = function, names
        self._words: dict[str, list[Value]] = {}
        self._out: list[Instruction] = []

    def run(self) -> None:
        order = Graph(self._function).order
        for name in order:
            for phi in self._function.blocks[name].phis:
                if _is_wide(phi.type):
                    word = _word(phi.type)
                    names = (self._names("%mtl.word") for _ in range(_count(phi.type)))
                    self._words[phi.result] = [Value(word, each) for each in names]
        for name in order:
            block = self._function.blocks[name]
            body, block.body = block.body, []
            self._out = block.body
            for i in body:
                if _is_wide(i.type) or any(_is_wide(value.type) for value in i.operands):
                    self._split(i)
                else:
                    block.body.append(i)
        for name in order:
            block = self._function.blocks[name]
            phis, block.phis = block.phis, []
            for phi in phis:
                block.phis += self._split_phi(phi) if _is_wide(phi.type) else [phi]

    def _split_phi(self, phi: Instruction) -> list[Instruction]:
        sources = [self._of(value) for value in phi.operands]
        return [
            Instruction("phi", word.name, word.type, [*values], labels=[*phi.labels])
            for word, *values in zip(self._words[phi.result], *sources, strict=True)
        ]

    def _of(self, value: Value) -> list[Value]:
        """The words of a value, the lowest first."""
        known = self._words.get(value.name)
        if known is not None:
            return known
        word, count = _word(value.type), _count(value.type)
        if value.name in ("poison", "undef"):
            return [Value(word, value.name)] * count
        number = value.integer
        if number is None:
            raise Unsupported(f"a value of {value.type}")
        mask = (1 << word.bits) - 1
        return [Value(word, str(number >> word.bits * k & mask)) for k in range(count)]

    def _emit(self, op: str, type: Type, *operands: Value, **more: object) -> Value:
        """The value of an instruction; not of zeros, of which LLVM makes invalid code."""
        first, last = operands[0], operands[-1]
        if op in ("zext", "shl", "lshr") and first.integer == 0:
            return Value(type, "0")
        if op == "or" and 0 in (first.integer, last.integer):
            return first if last.integer == 0 else last
        name = self._names("%mtl.word")
        self._out.append(Instruction(op, name, type, [*operands], **more))  # type: ignore[arg-type]
        return Value(type, name)

    def _split(self, i: Instruction) -> None:
        split = getattr(self, f"_{i.op}", None)
        if i.op in _BITWISE:
            split = self._bitwise
        if split is None or i.ordering:
            raise Unsupported(f"{i.op} of an integer wider than 64 bits")
        split(i)

    def _bitwise(self, i: Instruction) -> None:
        pairs = zip(*map(self._of, i.operands), strict=True)
        self._words[i.result] = [self._emit(i.op, a.type, a, b) for a, b in pairs]

    def _select(self, i: Instruction) -> None:
        condition, *values = i.operands
        pairs = zip(*map(self._of, values), strict=True)
        self._words[i.result] = [self._emit("select", a.type, condition, a, b) for a, b in pairs]

    def _freeze(self, i: Instruction) -> None:
        words = self._of(i.operands[0])
        self._words[i.result] = [self._emit("freeze", word.type, word) for word in words]

    def _load(self, i: Instruction) -> None:
        word = _word(i.type)
        self._words[i.result] = [
            self._emit("load", word, target, align=align, flags=i.flags)
            for target, align in self._addresses(i, i.operands[0], word, _count(i.type))
        ]

    def _store(self, i: Instruction) -> None:
        value, address = i.operands
        words = self._of(value)
        targets = self._addresses(i, address, _word(value.type), len(words))
        for word, (target, align) in zip(words, targets, strict=True):
            self._out.append(
                Instruction("store", operands=[word, target], align=align, flags=i.flags)
            )

    def _addresses(
        self, access: Instruction, address: Value, word: Integer, count: int
    ) -> list[tuple[Value, int]]:
        """Address and alignment of each word."""
        size = word.bits // 8
        result = [(address, min(access.align, size))]
        for k in range(1, count):
            offset = Value(I64, str(k * size))
            target = self._emit("getelementptr", address.type, address, offset, source=I8)
            result.append((target, min(access.align, size)))
        return result

    def _zext(self, i: Instruction) -> None:
        word, count = _word(i.type), _count(i.type)
        (value,) = i.operands
        words = self._of(value) if _is_wide(value.type) else self._of_standard(value, word)
        if _is_wide(value.type) and _word(value.type) != word:
            raise Unsupported(f"{value.type} as {i.type}")
        if not _is_wide(i.type):
            raise Unsupported(f"{value.type} as {i.type}")
        self._words[i.result] = [*words, *[Value(word, "0")] * (count - len(words))]

    def _of_standard(self, value: Value, word: Integer) -> list[Value]:
        """The words of a value of a standard type."""
        assert isinstance(value.type, Integer)
        if value.type.bits < word.bits:
            return [self._emit("zext", word, value)]
        if value.type == word:
            return [value]
        return [
            self._emit("trunc", word, self._shifted(value, k * word.bits))
            for k in range(value.type.bits // word.bits)
        ]

    def _shifted(self, value: Value, bits: int) -> Value:
        amount = Value(value.type, str(bits))
        return self._emit("lshr", value.type, value, amount) if bits else value

    def _trunc(self, i: Instruction) -> None:
        (value,) = i.operands
        words = self._of(value)
        word = _word(value.type)
        if _is_wide(i.type):
            if _word(i.type) != word:
                raise Unsupported(f"{value.type} as {i.type}")
            self._words[i.result] = words[: _count(i.type)]
            return
        assert isinstance(i.type, Integer)
        if i.type.bits < word.bits:
            self._out.append(Instruction("trunc", i.result, i.type, [words[0]]))
            return
        joined = self._joined(words[: i.type.bits // word.bits], i.type)
        zero = Value(i.type, "0")
        self._out.append(Instruction("or", i.result, i.type, [joined, zero]))

    def _joined(self, words: list[Value], type: Integer) -> Value:
        if len(words) == 1:
            return words[0]
        total = self._emit("zext", type, words[0])
        for k, word in enumerate(words[1:], 1):
            wide = self._emit("zext", type, word)
            amount = Value(type, str(k * words[0].type.size * 8))
            total = self._emit("or", type, total, self._emit("shl", type, wide, amount))
        return total

    def _column(self, i: Instruction) -> tuple[list[Value], list[Value]]:
        """The words of both operands, of 32 bits."""
        a, b = map(self._of, i.operands)
        if a[0].type != I32:
            raise Unsupported(f"{i.op} of an integer of {i.operands[0].type}")
        return a, b

    def _wide_sum(self, op: str, *words: Value) -> Value:
        """Words of 32 or 64 bits, combined in 64 bits."""
        terms = [self._emit("zext", I64, w) if w.type == I32 else w for w in words if w.name != "0"]
        total = terms[0] if terms else Value(I64, "0")
        for term in terms[1:]:
            total = self._emit(op, I64, total, term)
        return total

    def _add(self, i: Instruction) -> None:
        a, b = self._column(i)
        carry, result = Value(I64, "0"), []
        for pair in zip(a, b, strict=True):
            total = self._wide_sum("add", *pair, carry)
            result.append(self._emit("trunc", I32, total))
            carry = self._emit("lshr", I64, total, Value(I64, "32"))
        self._words[i.result] = result

    def _sub(self, i: Instruction) -> None:
        a, b = self._column(i)
        borrow, result = Value(I64, "0"), []
        for x, y in zip(a, b, strict=True):
            first, second = (self._emit("zext", I64, word) for word in (x, y))
            total = self._emit("sub", I64, self._emit("sub", I64, first, second), borrow)
            result.append(self._emit("trunc", I32, total))
            borrow = self._emit("lshr", I64, total, Value(I64, "63"))
        self._words[i.result] = result

    def _mul(self, i: Instruction) -> None:
        """Row by row; a product of words and two more words fit 64 bits."""
        a, b = self._column(i)
        result = [Value(I32, "0")] * len(a)
        for k, x in enumerate(a):
            carry = Value(I64, "0")
            for n, y in enumerate(b[: len(a) - k], k):
                product = Value(I64, "0")
                if "0" not in (x.name, y.name):
                    product = self._wide_sum("mul", x, y)
                total = self._wide_sum("add", product, result[n], carry)
                result[n] = self._emit("trunc", I32, total)
                carry = self._emit("lshr", I64, total, Value(I64, "32"))
        self._words[i.result] = result

    def _icmp(self, i: Instruction) -> None:
        a, b = map(self._of, i.operands)
        if i.predicate in ("eq", "ne"):
            differs = [self._emit("xor", x.type, x, y) for x, y in zip(a, b, strict=True)]
            total = functools.reduce(lambda x, y: self._emit("or", x.type, x, y), differs)
            operands = [total, Value(total.type, "0")]
            self._out.append(Instruction("icmp", i.result, I1, operands, predicate=i.predicate))
            return
        # The highest words that differ decide; equal ones leave it to those below.
        outcome = Value(I1, "true" if i.predicate.endswith("e") else "false")
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            kind = i.predicate if k == len(a) - 1 else "u" + i.predicate[1:]
            less = self._emit("icmp", I1, x, y, predicate=kind[:2] + "t")
            equal = self._emit("icmp", I1, x, y, predicate="eq")
            outcome = self._emit("select", I1, equal, outcome, less)
        false = Value(I1, "false")
        self._out.append(Instruction("or", i.result, I1, [outcome, false]))

    def _lshr(self, i: Instruction) -> None:
        self._shift(i, up=False)

    def _shl(self, i: Instruction) -> None:
        self._shift(i, up=True)

    def _shift(self, i: Instruction, up: bool) -> None:
        words, bits, amount = self._of(i.operands[0]), _word(i.type).bits, i.operands[1].integer
        if amount is None:
            raise Unsupported("a shift of a wide integer by an amount that is no constant")
        words_moved, left = divmod(amount, bits)
        zero = Value(_word(i.type), "0")
        step = -1 if up else 1

        def at(k: int) -> Value:
            return words[k] if 0 <= k < len(words) else zero

        result = []
        for k in range(len(words)):
            source = k + step * words_moved
            if not left:
                result.append(at(source))
                continue
            near, far = ("shl", "lshr") if up else ("lshr", "shl")
            a = self._emit(near, zero.type, at(source), Value(zero.type, str(left)))
            b = self._emit(far, zero.type, at(source + step), Value(zero.type, str(bits - left)))
            result.append(self._emit("or", zero.type, a, b))
        self._words[i.result] = result

    def _bitcast(self, i: Instruction) -> None:
        (value,) = i.operands
        if _is_wide(value.type) and isinstance(i.type, Vector):
            words = self._of(value)
            vector = Vector(len(words), words[0].type)
            total = Value(vector, "poison")
            for k, word in enumerate(words):
                index = Value(I64, str(k))
                total = self._emit("insertelement", vector, total, word, index)
            self._out.append(Instruction("bitcast", i.result, i.type, [total]))
            return
        element, count = _word(i.type), _count(i.type)
        vector = Vector(count, element)
        as_words = self._emit("bitcast", vector, value)
        self._words[i.result] = [
            self._emit("extractelement", element, as_words, Value(I64, str(k)))
            for k in range(count)
        ]
