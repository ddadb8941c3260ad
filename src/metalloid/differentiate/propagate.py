"""From the adjoint of a value to those of what it was computed from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metalloid.differentiate.analysis.activity import float_variables
from metalloid.differentiate.analysis.common_values import Level
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.lane_rules import (
    is_lane_function,
    lane_loop,
    lane_rule,
    values_of_lanes,
)
from metalloid.differentiate.program.text import text_of, widened
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.differentiate.rules import CONSTANT, PARTIALS, VECTOR_PRODUCTS
from metalloid.differentiate.textures import texture_call

_LANES = "xyzw"


def _is_vector(value: Expression) -> bool:
    return value.type.lanes > 1 and not (value.type.extents or value.type.is_pointer)


def shared_adjoints(target: Expression, prefix: str) -> list[str]:
    """The words of the adjoint of a target in threadgroup memory, one for each component."""
    is_number = target.op == "element" and _is_vector(target.args[0])  # v[k]
    vector = target.args[0] if target.op == "component" or is_number else target
    base, lanes = vector.base, vector.type.lanes
    index = "0"
    if vector.op == "element":
        index = text_of(vector.args[1])
        for extent, more in zip(base.type.extents[1:], vector.args[2:], strict=False):
            index = f"({index}) * {extent} + {text_of(more)}"
    if is_number:
        return [f"{prefix}{base.name}[({index}) * {lanes} + {text_of(target.args[1])}]"]
    names = target.name if target.op == "component" else _LANES[:lanes]
    if lanes == 1:
        return [f"{prefix}{base.name}[{index}]"]
    return [f"{prefix}{base.name}[({index}) * {lanes} + {_LANES.index(name)}]" for name in names]


class Propagation:
    """Writes the statements that add to adjoints.

    Attributes
    ----------
    read : set of str
        The variables whose values these statements read.
    """

    def __init__(self, sweep: Any) -> None:
        self._sweep = sweep
        self.read: set[str] = set()
        #: Names of adjoints that are added to memory later, by what they belong to.
        self.sums: dict[Expression, str] = {}
        self._values: dict[Expression, str] = {}
        self._seeds = 0
        self._location: Any = None

    def new_seed(self, type_: Type) -> str:
        """The name of a new adjoint of a value."""
        self._seeds += 1
        return f"g_{self._seeds}"

    def note_indices(self, target: Expression) -> None:
        """Note what the address of a target depends on."""
        while target.op in ("element", "component", "member", "texel"):
            for index in target.args[1:]:
                self.read |= index.variables()
            target = target.args[0]

    def run(
        self, value: Expression, seed: str, location: Any, result: Expression | None = None
    ) -> None:
        """Add what an adjoint `seed` of a value adds to others.

        Parameters
        ----------
        result : Expression, optional
            A variable that has the value.
        """
        self._location, self._values = location, {}
        if result is not None:
            self._values[value] = result.name
            self.read.add(result.name)
        if self._is_active(value):
            self._add(value, seed)

    def _is_active(self, value: Expression) -> bool:
        return bool(float_variables(value) & self._sweep.active)

    def _value(self, value: Expression) -> str:
        self.read |= value.variables()
        return widened(self._named(value))

    def _named(self, value: Expression) -> Expression:
        """A value in which calls and reads of memory have names, so that they happen once."""
        if value in self._values:
            return Expression("variable", value.type.element, self._values[value])
        args = value.args
        if value.op == "select":
            args = (self._named(args[0]), *args[1:])
        elif value.op in ("element", "member"):
            args = (self._with_named_indices(args[0]), *map(self._named, args[1:]))
        else:
            args = tuple(map(self._named, args))
        named = replace(value, args=args)
        is_call = value.op in ("call", "method") and not is_lane_function(value.name)
        is_read = value.op in ("element", "member") and value.is_buffer_element
        if not (is_call or is_read) or not value.type.scalar:
            return named
        self._seeds += 1
        name = self._values[value] = f"value_{self._seeds}"
        self._sweep.line(f"const {value.type.element.msl} {name} = {text_of(named)};")
        return Expression("variable", value.type.element, name)

    def _with_named_indices(self, value: Expression) -> Expression:
        """An object in memory whose indices have names."""
        if value.op not in ("element", "member"):
            return value
        args = (self._with_named_indices(value.args[0]), *map(self._named, value.args[1:]))
        return replace(value, args=args)

    def _bound(self, text: str, type_: Type) -> str:
        """A name for an adjoint that several statements use."""
        if text.replace("_", "").isalnum():
            return text
        name = self.new_seed(type_)
        self._sweep.line(f"const {type_.element.adjoint.msl} {name} = {text};")
        return name

    def _add(self, value: Expression, seed: str) -> None:
        if not self._is_active(value):
            return
        rule = getattr(self, f"_add_{value.op}", None)
        if rule is None:
            raise Refused(self._location, f"{text_of(value)} has no rule")
        rule(value, seed)

    def _add_variable(self, value: Expression, seed: str) -> None:
        if value.is_shared:
            self._add_to_shared(value, seed)
        elif value.type.space:  # a reference to memory
            self._add_to_buffer(value, seed)
        else:
            self._sweep.line(f"{self._sweep.prefix}{value.name} += {seed};")

    def _add_member(self, value: Expression, seed: str) -> None:
        self._add_to_buffer(value, seed)

    def _add_element(self, value: Expression, seed: str) -> None:
        if value.is_shared:
            self._add_to_shared(value, seed)
            return
        if value.is_buffer_element:
            self._add_to_buffer(value, seed)
            return
        self.note_indices(value)
        self._sweep.line(f"{self._sweep.prefix}{text_of(value)} += {seed};")

    def _add_to_shared(self, value: Expression, seed: str) -> None:
        self.note_indices(value)
        bound = self._bound(seed, value.type)
        self._require_order(value.base.name)
        for number, address in enumerate(shared_adjoints(value, self._sweep.prefix)):
            part = f"{bound}.{_LANES[number]}" if value.type.lanes > 1 else bound
            self._sweep.line(f"if ({part} != 0) adjoint_add(&{address}, {part});")

    def _add_to_buffer(self, value: Expression, seed: str) -> None:
        if value in self.sums:
            self._sweep.line(f"{self.sums[value]} += {seed};")
        else:
            self.add_to_memory(value, seed)

    def add_to_memory(self, value: Expression, seed: str) -> None:
        """Add to the adjoint of an element in memory of the device."""
        self.note_indices(value)
        name, lanes, prefix = value.base.name, value.type.lanes, self._sweep.prefix
        bound = self._bound(seed, value.type)
        if value.base.type.is_aggregate:
            element = self._sweep.derivative(self._with_named_indices(value))
            word = "float" if name in self._sweep.owned else "atomic_float"
            addresses = [f"((device {word} *)&{element})[{lane}]" for lane in range(lanes)]
        else:
            index = text_of(self._named(value.args[1])) if value.op == "element" else "0"
            offsets = [
                index if lanes == 1 else f"ulong({index}) * {value.type.stride} + {lane}"
                for lane in range(lanes)
            ]
            addresses = [f"{prefix}{name}[{at}]" for at in offsets]
        self._sweep.note_store(value)
        if name in self._sweep.stored:
            for lane, address in enumerate(addresses):
                part = f"{bound}.{_LANES[lane]}" if lanes > 1 else bound
                self._sweep.line(f"{address} = {part};")
            return
        if name in self._sweep.owned:
            self._add_each(name, [f"{at} += {{}};" for at in addresses], bound)
            return
        self._require_order(name)
        additions = [
            f"atomic_fetch_add_explicit(&{at}, {{}}, memory_order_relaxed);" for at in addresses
        ]
        level = self._sweep.level_of(value)
        if level == Level.COMMON:
            self._add_sum(value, additions, bound)
        elif level == Level.PERHAPS:
            scalar = "ulong" if value.args[1].type.scalar in ("long", "ulong") else "uint"
            given = text_of(self._named(value.args[1]))
            with self._sweep.block(f"if (adjoint_is_common({scalar}({given})))"):
                self._add_sum(value, additions, bound)
            with self._sweep.block("else"):
                self._add_each(name, additions, bound)
        else:
            self._add_each(name, additions, bound)

    def _add_each(self, name: str, additions: list[str], bound: str) -> None:
        """Write additions of the components of an adjoint, those that are not 0."""
        for lane, addition in enumerate(additions):
            part = f"{bound}.{_LANES[lane]}" if len(additions) > 1 else bound
            if name in self._sweep.bounded:
                self._sweep.line(addition.format(part))
                continue
            with self._sweep.block(f"if ({part} != 0)"):
                self._sweep.line(addition.format(part))

    def _add_sum(self, value: Expression, additions: list[str], bound: str) -> None:
        """Let one thread of a simdgroup, all of which have the same index, add the sum."""
        total, name = self.new_seed(value.type), value.base.name
        self._sweep.line(f"const {value.type.element.adjoint.msl} {total} = simd_sum({bound});")
        with self._sweep.block("if (simd_is_first())"):
            self._add_each(name, additions, total)

    def begin_sum(self, element: Expression) -> None:
        """Collect what is added to the adjoint of an element in memory."""
        self.sums[element] = name = self.new_seed(element.type)
        self._sweep.line(f"{element.type.element.adjoint.msl} {name} = {{}};")

    def end_sum(self, element: Expression, location: Any) -> None:
        """Add what has been collected."""
        self._location, self._values = location, {}
        self.add_to_memory(element, self.sums.pop(element))

    def _add_method(self, value: Expression, seed: str) -> None:
        """A read, a sample or a gather of a texture."""
        call, texture = texture_call(value, self._location), value.base
        for arg in value.args[1:]:
            self.read |= arg.variables()
        bound, texels = self._bound(seed, value.type), "adjoint_constant()"
        if texture.name in self._sweep.active:
            self._require_order(texture.name)
            texels = f"{self._sweep.prefix}{texture.name}"
        if call.texel:
            self._sweep.line(f"adjoint_add({texels}, {call.texel}, {bound});")
            return
        if value.type.lanes == 1:
            bound = f"float4({bound}, 0, 0, 0)"
            if texture.name in self._sweep.active:
                texels = f"adjoint_depth{{{texels}}}"
        settings = self._sweep.sampler(call.sampler, self._location)
        given = f"{texture.name}, {texels}, {settings}, {call.position}"
        if value.name == "gather":
            self._sweep.line(f"adjoint_gather({given}, {call.component}, {bound});")
            return
        name = self.new_seed(value.type)
        lod = text_of(call.lod) if call.lod else "0"
        self._sweep.line(f"float4 {name} = adjoint_sample({given}, {lod}, {bound});")
        self._add(call.coordinate, f"{name}.{_LANES[: call.axes]}")
        if call.lod is not None:
            self._add(call.lod, f"{name}.w")

    def _require_order(self, name: str) -> None:
        if self._sweep.deterministic:
            why = f"threads that read the same element of {name} add to its adjoint in any order"
            raise Refused(self._location, why)

    def _add_component(self, value: Expression, seed: str) -> None:
        vector = value.args[0]
        bound = self._bound(seed, value.type)
        lanes = value.name
        parts = {
            lane: " + ".join(
                f"{bound}.{_LANES[k]}" if len(lanes) > 1 else bound
                for k, each in enumerate(lanes)
                if each == lane
            )
            for lane in _LANES[: vector.type.lanes]
        }
        if vector.op in ("variable", "element") and not vector.is_buffer_element and (
            not vector.base.type.space
        ):  # fmt: skip
            self.note_indices(vector)
            for lane, text in parts.items():
                if text:
                    self._sweep.line(f"{self._sweep.prefix}{text_of(vector)}.{lane} += {text};")
            return
        texts = ", ".join(text or "0" for text in parts.values())
        self._add(vector, f"{vector.type.element.adjoint.msl}({texts})")

    def _add_cast(self, value: Expression, seed: str) -> None:
        self._add(value.args[0], seed)

    def _add_construct(self, value: Expression, seed: str) -> None:
        bound = self._bound(seed, value.type)
        if len(value.args) == 1 and value.args[0].type.lanes == 1:
            self._add(value.args[0], self._summed(bound, value.type, value.args[0].type))
            return
        first = 0
        for arg in value.args:
            lanes = _LANES[first : first + arg.type.lanes]
            self._add(arg, f"{bound}.{lanes}" if value.type.lanes > 1 else bound)
            first += arg.type.lanes

    def _add_unary(self, value: Expression, seed: str) -> None:
        self._add(value.args[0], f"-({seed})")

    def _add_select(self, value: Expression, seed: str) -> None:
        condition, then, other = value.args
        bound = self._bound(seed, value.type)
        self.read |= condition.variables()
        known = dict(self._values)

        def write(chosen: list[Expression]) -> None:
            self._values = dict(known)
            with self._sweep.within(None):
                self._add(chosen[0], bound)

        self._sweep.branches(text_of(condition), [then], [other], write)
        self._values = known

    def _summed(self, text: str, of: Type, to: Type) -> str:
        """An adjoint of the type of an operand that was broadcast."""
        if of.lanes == 1 or to.lanes > 1:
            return text
        bound = self._bound(text, of)
        return " + ".join(f"{bound}.{lane}" for lane in _LANES[: of.lanes])

    def _add_binary(self, value: Expression, seed: str) -> None:
        left, right = value.args
        active = [self._is_active(arg) for arg in (left, right)]
        if value.name not in ("+", "-", "*", "/"):
            raise Refused(self._location, f"the operator {value.name} has no derivative")
        if value.name == "*" and left == right:
            self._add(left, f"2 * ({seed}) * {self._value(left)}")
            return
        bound = self._bound(seed, value.type) if all(active) else f"({seed})"
        if value.name in "+-":
            texts = bound, bound if value.name == "+" else f"-{bound}"
        elif value.name == "*":
            texts = (f"{bound} * {self._value(right)}" if active[0] else "",
                     f"{bound} * {self._value(left)}" if active[1] else "")  # fmt: skip
        else:
            divisor = self._value(right)
            quotient = f"{self._value(left)} / {divisor}" if active[1] else ""
            texts = f"{bound} / {divisor}", f"-{bound} * ({quotient}) / {divisor}"
        for arg, text, is_active in zip((left, right), texts, active, strict=True):
            if is_active:
                self._add(arg, self._summed(text, value.type, arg.type))

    def _add_call(self, value: Expression, seed: str) -> None:
        name = value.name
        if lane_rule(name) is not None or lane_loop(name) is not None:
            self._add_lane_call(value, seed)
            return
        products = VECTOR_PRODUCTS.get(name)
        rows = products or PARTIALS.get(name)
        if name in CONSTANT:
            return
        if rows is None:
            raise Refused(self._location, f"{name} has no derivative here")
        bound = self._bound(seed, value.type)
        texts = dict(zip("abc", (self._value(arg) for arg in value.args), strict=False))
        texts["x"], texts["g"] = texts["a"], bound
        texts["y"] = self._value(value)
        texts["bool"] = value.type.element.adjoint.msl
        for arg, row in zip(value.args, rows, strict=True):
            if self._is_active(arg) and row != "0":
                derivative = row.format(**texts)
                product = derivative if products else f"{bound} * ({derivative})"
                self._add(arg, self._summed(product, value.type, arg.type))

    def _add_lane_call(self, value: Expression, seed: str) -> None:
        """A function of which the threads of a simdgroup or a quad have parts of the result."""
        name, adjoint = value.name, value.type.element.adjoint
        group, lane = name[:4], self._sweep.lane_name
        count = values_of_lanes(name)
        texts = {
            "g": self._bound(seed, value.type), "x": self._value(value.args[0]), "T": adjoint.msl,
            "y": f"{adjoint.msl}({text_of(value)})", "u": group, "simd_lane": lane,
            "n": "32" if group == "simd" else "4",
            "lane": lane if group == "simd" else f"({lane} & 3)",
        }  # fmt: skip
        others = [f"({self._value(arg)})" for arg in value.args[count:]]
        texts |= {"m": texts["n"], **dict(zip("bm", others, strict=False))}
        if (loop := lane_loop(name)) is not None:
            self._add(value.args[0], self._summed_over_lanes(loop, texts, adjoint))
            return
        for number, arg in enumerate(value.args[:count]):
            row = lane_rule(name, number)
            if row is not None and self._is_active(arg):
                self._add(arg, self._of_row(row, dict(texts), value.type))

    def _summed_over_lanes(
        self, loop: tuple[tuple[str, ...], str], texts: dict[str, str], adjoint: Type
    ) -> str:
        """The adjoint that a loop through the lanes computes."""
        texts |= {"r": self.new_seed(adjoint), "w": self.new_seed(adjoint)}
        for name in (texts["r"], texts["w"]):
            self._sweep.line(f"{adjoint.msl} {name} = 0;")
        if "b" in texts:
            lane, texts["b"] = texts["b"], self.new_seed(adjoint)
            self._sweep.line(f"const uint {texts['b']} = uint({lane});")
        with self._sweep.block(f"for (ushort adjoint_i = {texts['n']}; adjoint_i-- > 0;)"):
            for statement in loop[0]:
                self._sweep.line(statement.format(**texts))
        return self._bound(loop[1].format(**texts), adjoint)

    def _of_row(self, row: tuple[str, ...], texts: dict[str, str], type_: Type) -> str:
        """The adjoint that a row says."""
        adjoint = type_.element.adjoint
        if "{active}" in row[-1]:
            texts["active"] = self.new_seed(adjoint)
            mask = "ulong(simd_active_threads_mask())"
            self._sweep.line(f"const ulong {texts['active']} = {mask};")
        for number, text in enumerate(row[:-1]):
            texts[f"s{number}"] = self.new_seed(adjoint)
            value_text = text.format(**texts)
            self._sweep.line(f"const {adjoint.msl} {texts[f's{number}']} = {value_text};")
        return self._bound(row[-1].format(**texts), type_)
