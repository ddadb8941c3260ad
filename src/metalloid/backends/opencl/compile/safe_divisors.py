"""Divisions of integers that cannot end the process, as a device that is a CPU needs them.

Processors fault on a division by zero, and on one of the least number by -1. Metal gives the first
no value, the second wraps, and the kernel goes on in both cases. Drivers also divide in lanes that
are not active if they can prove that the divisor is not 0, and Intel's compiler proves it from
values that are computed in a branch: lanes that do not take it have others.

So a divisor of 0 becomes 1, right before the division. The driver must not see that this changes
nothing in active lanes: it cannot look through the number of dimensions of the launch.
"""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^(define [^\n]*\{\n(?:[\w.$-]+:[^\n]*\n)?)(.*?)(^\}\n)", re.M | re.S)
_DIVISION = re.compile(
    r"^  %(?P<name>[\w.$-]+) = (?P<op>[us](?:div|rem)) (?:exact )?"
    r"(?P<type>(?:<(?P<count>\d+) x )?i(?P<width>\d+)>?) "
    r"(?P<dividend>[^\n]+), (?P<divisor>%[\w.$-]+)(?:, ![^\n]*)?$", re.M,
)  # fmt: skip
#: Zero: a launch has one to three dimensions.
_ZERO = """  %mtl.dimensions = call spir_func i32 @_Z12get_work_dimv()
  %mtl.zero.i32 = lshr i32 %mtl.dimensions, 2
  %mtl.zero.i8 = trunc i32 %mtl.zero.i32 to i8
  %mtl.zero.i16 = trunc i32 %mtl.zero.i32 to i16
  %mtl.zero.i64 = zext i32 %mtl.zero.i32 to i64
"""
_DECLARATION = "declare spir_func i32 @_Z12get_work_dimv()\n"


def make_divisors_safe(ir: str) -> str:
    """The module whose divisions have a result for all numbers."""
    edited = _FUNCTION.sub(_edit_function, ir)
    return edited if edited == ir else f"{edited}\n{_DECLARATION}"


def _edit_function(match: re.Match[str]) -> str:
    head, body, end = match.groups()
    body, count = _DIVISION.subn(lambda division: _Division(division).code(), body)
    return f"{head}{_ZERO if count else ''}{body}{end}"


class _Division:
    """Writes a division in 32 or 64 bits: of fewer, Intel's compiler makes no vector code.

    Operands are hidden before they are widened, and results after they are narrowed: LLVM's back
    end makes invalid code of a zext of a trunc, ``and i16 %x, 255`` with an `%x` of 32 bits.
    """

    def __init__(self, division: re.Match[str]) -> None:
        self._name, self._op, self._given, self._count = division.group(
            "name", "op", "type", "count"
        )
        self._dividend, self._divisor = division.group("dividend", "divisor")
        self._width = max(int(division["width"]), 32)
        self._is_widened = self._width != int(division["width"])
        self._narrow_element, self._element = f"i{division['width']}", f"i{self._width}"
        self._type = self._like(self._element)
        self._lines: list[str] = []

    def code(self) -> str:
        dividend, divisor = self._dividend, self._divisor
        if self._is_widened:
            dividend, divisor = self._wide("dividend", dividend), self._wide("divisor", divisor)
        divisor = self._hidden("hidden", self._element, divisor)
        write = {"sdiv": self._signed_quotient, "srem": self._signed_remainder}
        result = write.get(self._op, self._unsigned)(dividend, divisor)
        if self._is_widened:
            narrow = self._new("narrow", f"trunc {self._type} {result} to {self._given}")
            self._hidden("unwidened", self._narrow_element, narrow)
        self._lines[-1] = f"  %{self._name} = {self._lines[-1].partition(' = ')[2]}"
        return "\n".join(self._lines)

    def _unsigned(self, dividend: str, divisor: str) -> str:
        is_unsafe = self._new("unsafe", f"icmp eq {self._type} {divisor}, zeroinitializer")
        return self._divide(dividend, divisor, is_unsafe)

    def _signed_remainder(self, dividend: str, divisor: str) -> str:
        """A remainder: those by 1 and by -1 are 0."""
        one = self._constant(1)
        successor = self._new("successor", f"add {self._type} {divisor}, {one}")
        is_unsafe = self._new("unsafe", f"icmp ule {self._type} {successor}, {one}")
        return self._divide(dividend, divisor, is_unsafe)

    def _signed_quotient(self, dividend: str, divisor: str) -> str:
        """A quotient by the divisor's magnitude, negated.

        A comparison with -1 would make Intel's compiler divide lane by lane, which takes six times
        as long. The least number has no magnitude and remains.
        """
        t = self._type
        opposite = self._new("opposite", f"sub {t} zeroinitializer, {divisor}")
        is_less = self._new("less", f"xor {t} {opposite}, {self._constant(-1)}")
        both = self._new("both", f"and {t} {divisor}, {is_less}")
        sign = self._new("sign", f"ashr {t} {both}, {self._constant(self._width - 1)}")
        magnitude = self._negated("magnitude", divisor, sign)
        is_unsafe = self._new("unsafe", f"icmp eq {t} {magnitude}, zeroinitializer")
        return self._negated("signed", self._divide(dividend, magnitude, is_unsafe), sign)

    def _divide(self, dividend: str, divisor: str, is_unsafe: str) -> str:
        one, bits = self._constant(1), self._like("i1")
        safe = self._new(
            "safe", f"select {bits} {is_unsafe}, {self._type} {one}, {self._type} {divisor}"
        )
        return self._new("result", f"{self._op} {self._type} {dividend}, {safe}")

    def _negated(self, label: str, value: str, sign: str) -> str:
        """The number, or its opposite where all bits of `sign` are set."""
        flipped = self._new(f"flipped.{label}", f"xor {self._type} {value}, {sign}")
        return self._new(label, f"sub {self._type} {flipped}, {sign}")

    def _hidden(self, label: str, element: str, value: str) -> str:
        """A number that no compiler knows."""
        zero, type = f"%mtl.zero.{element}", self._like(element)
        if self._count:
            first = f"insertelement {type} poison, {element} {zero}, i64 0"
            first = self._new(f"first.{label}", first)
            same = f"{type} poison, <{self._count} x i32> zeroinitializer"
            zero = self._new(f"zero.{label}", f"shufflevector {type} {first}, {same}")
        return self._new(label, f"xor {type} {value}, {zero}")

    def _wide(self, label: str, value: str) -> str:
        """An operand with more bits."""
        hidden = self._hidden(label, self._narrow_element, value)
        cast = "sext" if self._op.startswith("s") else "zext"
        return self._new(f"wide.{label}", f"{cast} {self._given} {hidden} to {self._type}")

    def _new(self, label: str, instruction: str) -> str:
        result = f"%{label}.{self._name}"
        self._lines.append(f"  {result} = {instruction}")
        return result

    def _constant(self, number: int) -> str:
        return f"splat ({self._element} {number})" if self._count else str(number)

    def _like(self, element: str) -> str:
        return f"<{self._count} x {element}>" if self._count else element
