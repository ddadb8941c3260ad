"""Tangents of kernels: `jvp` writes the MSL text of a kernel that computes them, and launches it.

Each statement that gives a variable a value is preceded by one that computes its tangent. Loops and
branches are those of the kernel, so nothing is saved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from metalloid.differentiate.analysis import activity
from metalloid.differentiate.derived import (
    DerivedKernel,
    Names,
    derive,
    kernel_text,
    memory_type,
    threadgroup_parameters,
)
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.matrices import matrix_functions
from metalloid.differentiate.program.text import declaration, text_of, widened
from metalloid.differentiate.program.tree import Assign, AtomicAdd, Expression, Program
from metalloid.differentiate.rules import CONSTANT, PARTIALS, VECTOR_TANGENTS
from metalloid.differentiate.textures import (
    sampler_lines,
    sampler_parameters,
    texture_call,
    texture_functions,
)
from metalloid.differentiate.writer import ProgramWriter
from metalloid.kernels.kernel import Kernel

#: Lane functions of which the tangent is the function of the tangent.
_LINEAR = (
    "sum", "prefix_inclusive_sum", "prefix_exclusive_sum", "broadcast", "broadcast_first",
    "shuffle", "shuffle_xor", "shuffle_up", "shuffle_down", "shuffle_rotate_up",
    "shuffle_rotate_down",
)  # fmt: skip


class TangentKernel(DerivedKernel):
    """A kernel that computes outputs and their tangents.

    Call it with the kernel's arguments, then the tangents of the inputs, in the order of `wrt`,
    then memory for those of the outputs, in the order of `outputs`.

    Attributes
    ----------
    source : str
        MSL text: that of the kernel's library, and the kernel.
    wrt, outputs : tuple of str
    kernel : Kernel

    Examples
    --------
    >>> import metalloid as mtl
    >>> text = "kernel void twice(device const float *x, device float *y) { *y = 2 * *x; }"
    >>> mtl.library(text).twice.jvp().wrt
    ('x',)
    """


def jvp(
    kernel: Kernel, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> TangentKernel:
    """A kernel that computes the outputs of another one, and their tangents from those of inputs.

    Parameters
    ----------
    kernel : Kernel
    wrt, outputs : sequence of str, optional
        Parameters with tangents that are given, and that are wanted; as those of `vjp`.

    Returns
    -------
    TangentKernel

    Raises
    ------
    CompileError, ArgumentError
        As `vjp`.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> from metalloid.differentiate import jvp
    >>> lib = mtl.library('''
    ... kernel void square(device const float *x, device float *y,
    ...                    uint i [[thread_position_in_grid]]) {
    ...   y[i] = x[i] * x[i];
    ... }''', device="cpu")
    >>> x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    >>> t_x, t_y = np.ones(3, np.float32), np.zeros(3, np.float32)
    >>> event = jvp(lib.square)(x, y, t_x, t_y, threads=3)
    >>> t_y
    array([2., 4., 6.], dtype=float32)
    """
    tangents: _Tangents

    def write(program: Program, name: str, wrt: Names, outputs: Names) -> str:
        nonlocal tangents
        tangents = _Tangents(program, wrt, outputs)
        return tangents.text(name)

    derivation = derive(kernel, wrt, outputs, write)
    samplers = sampler_parameters(tangents.program, tangents.samplers)
    return TangentKernel(derivation, "jvp", kernel, samplers)


class _Tangents(ProgramWriter):
    """Writes a program with tangents."""

    stem = "dot"

    def __init__(self, program: Program, wrt: Collection[str], outputs: Collection[str]) -> None:
        super().__init__(program, wrt, outputs)
        self._count = 0
        self._location: Any = None

    def text(self, name: str) -> str:
        """The text of the kernel."""
        types = {parameter.name: parameter for parameter in self.program.parameters}
        extra = [f"device const {memory_type(types[n].type)} *{self.prefix}{n}" for n in self.wrt]
        for n in self.outputs:
            is_atomic = "atomic" in types[n].declaration
            element = "atomic_float" if is_atomic else memory_type(types[n].type)
            extra.append(f"device {element} *{self.prefix}{n}")
        declared = []
        for variable, type_ in self.program.variables.items():
            space = "threadgroup " if type_.space == "threadgroup" else ""
            value = "" if space else " = {}"
            declared.append(f"{space}{declaration(variable, type_)}{value};")
            if variable in self.active:
                declared.append(
                    f"{space}{declaration(self.prefix + variable, type_.adjoint)}{value};"
                )
        self.statements(self.program.body)
        tangents = ", ".join(self.prefix + n for n in self.outputs)
        declared = [*sampler_lines(self.program, self.samplers), *declared]
        extra += threadgroup_parameters(self.program, self.active, self.prefix)
        extra += [
            f"constant adjoint_sampler &{n}"
            for n in sampler_parameters(self.program, self.samplers)
        ]
        comment = f"{name}, and the tangents {tangents} of what it computes."
        text = texture_functions(self.program) + matrix_functions(self.program)
        return text + kernel_text(
            f"{name}_jvp", self.program.parameters, extra, declared, self.lines, "", comment
        )

    # -- statements

    def assign(self, statement: Assign) -> None:
        """Write an assignment, and that of the tangent."""
        target, value = statement.target, statement.value
        self._location = statement.location
        self.check_output(statement)
        tangent = None
        if target.base.name in self.active and target.type.is_float:
            tangent = self._bound(self._tangent(value) or f"{_adjoint(target)}(0)", target)
        super().assign(statement)
        if tangent is not None and target.op == "texel":
            name = f"{self.prefix}{target.base.name}"
            self.line(f"adjoint_store({name}, {self.texel(target)}, {tangent});")
        elif tangent is not None:
            self.line(f"{self.derivative(target)} = {tangent};")

    def add(self, statement: AtomicAdd) -> None:
        """Write an addition to memory, and that of the tangent."""
        target, value = statement.target, statement.value
        self._location = statement.location
        self.check_output(statement)
        name = target.base.name
        is_atomic = any(
            p.name == name and "atomic" in p.declaration for p in self.program.parameters
        )
        pairs = [(text_of(target), text_of(value))]
        tangent = self._tangent(value) if name in self.active and target.type.is_float else None
        if tangent is not None:
            pairs.insert(0, (self.derivative(target), tangent))
        for address, added in pairs:
            if is_atomic:
                self.line(f"atomic_fetch_add_explicit(&{address}, {added}, memory_order_relaxed);")
            else:
                self.line(f"{address} += {added};")

    # -- values

    def _bound(self, text: str, value: Expression) -> str:
        self._count += 1
        self.line(f"const {_adjoint(value)} g_{self._count} = {text};")
        return f"g_{self._count}"

    def _tangent(self, value: Expression) -> str | None:
        """The tangent of a value; None if it is 0."""
        if not activity.float_variables(value) & self.active:
            return None
        if value.op in ("variable", "element", "member"):
            return self.derivative(value)
        rule = getattr(self, f"_of_{value.op}", None)
        if rule is None:
            raise Refused(self._location, f"{text_of(value)} has no rule")
        tangent: str | None = rule(value)
        return tangent

    def _of_method(self, value: Expression) -> str:
        call, texture = texture_call(value, self._location), value.base
        texels = "adjoint_constant()"
        if texture.name in self.active:
            texels = f"{self.prefix}{texture.name}"
        part = ".x" if value.type.lanes == 1 else ""
        if call.texel:
            return f"tangent_load({texels}, {call.texel}){part}"
        settings = self.sampler(call.sampler, self._location)
        given = f"{texture.name}, {texels}, {settings}, {call.position}"
        if value.name == "gather":
            return f"tangent_gather({given}, {call.component})"
        zeros = ", 0" * (3 - call.axes)
        dot_coordinate = f"float3({self._inner(call.coordinate)}{zeros})"
        lod, dot_lod = "0", "0"
        if call.lod is not None:
            lod, dot_lod = text_of(call.lod), self._inner(call.lod)
        return f"tangent_sample({given}, {lod}, {dot_coordinate}, {dot_lod}){part}"

    def _of_component(self, value: Expression) -> str:
        return f"({self._inner(value.args[0])}).{value.name}"

    def _of_cast(self, value: Expression) -> str:
        return f"{_adjoint(value)}({self._inner(value.args[0])})"

    def _of_construct(self, value: Expression) -> str:
        return f"{_adjoint(value)}({', '.join(map(self._inner, value.args))})"

    def _of_unary(self, value: Expression) -> str:
        return f"-({self._inner(value.args[0])})"

    def _of_select(self, value: Expression) -> str:
        condition, *values = value.args
        then, other = (f"{_adjoint(value)}({self._inner(each)})" for each in values)
        return f"({text_of(condition)}) ? {then} : {other}"

    def _of_binary(self, value: Expression) -> str:
        left, right = value.args
        a, b = self._tangent(left), self._tangent(right)
        x, y = widened(left), widened(right)
        match value.name:
            case "+" | "-":
                terms = [f"({a})" if a else "", f"{value.name} ({b})" if b else ""]
            case "*":
                terms = [f"({a}) * {y}" if a else "", f"+ {x} * ({b})" if b else ""]
            case "/":
                terms = [f"({a}) / {y}" if a else "", f"- {x} / {y} * ({b}) / {y}" if b else ""]
            case _:
                raise Refused(self._location, f"the operator {value.name} has no derivative")
        return f"{_adjoint(value)}({' '.join(terms)})"

    def _of_call(self, value: Expression) -> str | None:
        name = value.name
        if name.startswith(("simd_", "quad_")) and name not in VECTOR_TANGENTS:
            return self._of_lanes(value)
        if name in CONSTANT:
            return None
        texts = dict(zip("abc", map(widened, value.args), strict=False))
        texts |= {"x": texts["a"], "y": widened(value), "bool": _adjoint(value)}
        if name in VECTOR_TANGENTS:
            for letter, arg in zip("abc", value.args, strict=False):
                texts[f"dot_{letter}"] = f"({self._inner(arg)})"
            return f"{_adjoint(value)}({VECTOR_TANGENTS[name].format(**texts)})"
        if name not in PARTIALS:
            raise Refused(self._location, f"{name} has no derivative here")
        terms = []
        for arg, row in zip(value.args, PARTIALS[name], strict=True):
            tangent = self._tangent(arg)
            if tangent is not None and row != "0":
                terms.append(f"({row.format(**texts)}) * ({tangent})")
        return f"{_adjoint(value)}({' + '.join(terms)})" if terms else None

    def _of_lanes(self, value: Expression) -> str:
        """The tangent of a function of which the threads of a simdgroup or a quad have results."""
        group, kind = value.name[:4], value.name[5:]
        arg, *others = value.args
        tangent = self._inner(arg)
        if kind in _LINEAR:
            given = ", ".join((f"{_adjoint(value)}({tangent})", *map(text_of, others)))
            return f"{value.name}({given})"
        if kind in ("max", "min"):
            x, type_ = widened(arg), _adjoint(value)
            result = self._bound(f"{type_}({text_of(value)})", value)
            share = self._bound(f"{type_}({x} == {result})", value)
            return f"{group}_sum({share} * ({tangent})) / {group}_sum({share})"
        if kind.startswith("shuffle_and_fill"):
            values = [f"{_adjoint(value)}({self._inner(each)})" for each in value.args[:2]]
            return f"{value.name}({', '.join((*values, *map(text_of, value.args[2:])))})"
        raise Refused(self._location, f"{value.name} has no tangent")

    def _inner(self, value: Expression) -> str:
        return self._tangent(value) or f"{_adjoint(value)}(0)"


def _adjoint(value: Expression) -> str:
    return value.type.element.adjoint.msl
