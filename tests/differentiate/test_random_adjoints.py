"""Adjoints of random structured kernels agree with complex steps of the same program in Python."""

import cmath

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl
from metalloid.differentiate import vjp

N = 4
FLOATS, MAX_DEPTH = ("a", "b", "c", "d"), 2


class Program:
    """A random program: statements as tuples, which MSL and Python have in common.

    If it has phases, all threads of a threadgroup pass values on where control flow is uniform.
    """

    def __init__(self, seed, has_phases=False):
        self.random = np.random.default_rng(seed)
        self.loops = 0
        self.body = self.block(0, 4, uniform=has_phases)

    def block(self, depth, count, loop=False, uniform=False):
        has_jump = loop and not uniform
        statements = [
            self.statement(depth, uniform) for _ in range(self.random.integers(1, count + 1))
        ]
        if has_jump and self.random.random() < 0.4:
            kind = str(self.random.choice(["break", "continue"]))
            jump = ("if", self.condition(), [(kind,)], [])
            statements.insert(int(self.random.integers(len(statements) + 1)), jump)
        return statements

    def statement(self, depth, uniform):
        kinds = ["assign", "assign", "update", "array"]
        if depth < MAX_DEPTH:
            kinds += ["if", "for", "for"]
        if uniform:
            kinds += ["phase"] * 3
        kind = str(self.random.choice(kinds))
        if kind == "phase":
            names = [str(self.random.choice(FLOATS)) for _ in range(2)]
            return ("phase", *names, self.value(2), int(self.random.integers(1, N)))
        if kind == "if":
            other = self.block(depth + 1, 2) if self.random.random() < 0.6 else []
            return ("if", self.condition(), self.block(depth + 1, 3), other)
        if kind == "for":
            self.loops += 1
            name = f"j{self.loops}"
            inner = uniform and bool(self.random.integers(2))
            times, body = int(self.random.integers(1, 4)), self.block(depth + 1, 3, True, inner)
            return ("for", name, times, body)
        if kind == "array":
            return ("array", self.index(), self.value(2))
        return (kind, str(self.random.choice(FLOATS)), self.value(2 + (kind == "assign")))

    def index(self):
        return ("index", int(self.random.integers(3)), int(self.random.integers(2)))

    def condition(self):
        return ("<", self.atom(), ("number", float(self.random.uniform(-0.5, 1))))

    def atom(self):
        kind = self.random.integers(4)
        if kind == 0:
            return ("number", float(np.float32(self.random.uniform(-1, 1))))
        return ("element", self.index()) if kind == 1 else ("name", str(self.random.choice(FLOATS)))

    def value(self, depth):
        if depth == 0 or self.random.random() < 0.2:
            return self.atom()
        kind = str(self.random.choice(["+", "-", "*", "sin", "tanh", "chosen"]))
        if kind in ("sin", "tanh"):
            return (kind, self.value(depth - 1))
        if kind == "chosen":
            return (kind, self.condition(), self.value(depth - 1), self.value(depth - 1))
        return (kind, self.value(depth - 1), self.value(depth - 1))


def msl_value(value):
    kind, *args = value
    if kind == "number":
        return f"{np.float32(args[0])!s}f"
    if kind == "name":
        return args[0]
    if kind == "element":
        return f"m[{msl_value(args[0])}]"
    if kind == "index":
        return f"(calls * {args[1]} + {args[0]}) % 3"
    if kind == "chosen":
        return f"({msl_value(args[0])} ? {msl_value(args[1])} : {msl_value(args[2])})"
    if len(args) == 1:
        return f"{kind}({msl_value(args[0])})"
    return f"({msl_value(args[0])} {kind} {msl_value(args[1])})"


def msl(statements, indent="  "):
    lines = []
    for kind, *args in statements:
        if kind in ("break", "continue"):
            lines.append(f"{kind};")
        elif kind == "assign":
            lines.append(f"{args[0]} = {msl_value(args[1])};")
        elif kind == "update":
            lines.append(f"{args[0]} += 0.5f * {msl_value(args[1])};")
        elif kind == "array":
            lines.append(f"m[{msl_value(args[0])}] = {msl_value(args[1])};")
        elif kind == "phase":
            lines += [
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"shared[i] = {msl_value(args[2])};",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"{args[0]} = 0.5f * {args[1]} + shared[(i + {args[3]}) % {N}];",
            ]
        elif kind == "if":
            lines += [
                f"if ({msl_value(args[0])}) {{",
                *msl(args[1]),
                "} else {",
                *msl(args[2]),
                "}",
            ]
        else:
            head = f"for (int {args[0]} = 0; {args[0]} < {args[1]}; {args[0]}++) {{"
            lines += [head, "calls++;", *msl(args[2]), "}"]
    return lines


class Jump(Exception):
    """A break or a continue."""


class State(dict):
    """Runs a program on complex numbers."""

    def value(self, value):
        kind, *args = value
        if kind == "number":
            return complex(np.float32(args[0]))
        if kind == "name":
            return self[args[0]]
        if kind == "element":
            return self["m"][self.value(args[0])]
        if kind == "index":
            return (self["calls"] * args[1] + args[0]) % 3
        if kind == "chosen":
            return self.value(args[1 if self.value(args[0]) else 2])
        given = [self.value(arg) for arg in args]
        if kind == "<":
            self["margin"] = min(self["margin"], abs(given[0].real - given[1].real))
            return given[0].real < given[1].real
        if len(given) == 1:
            return {"sin": cmath.sin, "tanh": cmath.tanh}[kind](given[0])
        a, b = given
        return a + b if kind == "+" else a - b if kind == "-" else a * b

    def run(self, statements):
        """Yield what a phase stores, and get what it loads."""
        for kind, *args in statements:
            if kind in ("break", "continue"):
                raise Jump(kind)
            if kind == "assign":
                self[args[0]] = self.value(args[1])
            elif kind == "update":
                self[args[0]] += 0.5 * self.value(args[1])
            elif kind == "array":
                index = self.value(args[0])
                self["m"][index] = self.value(args[1])
            elif kind == "phase":
                shared = yield self.value(args[2])
                self[args[0]] = 0.5 * self[args[1]] + shared[(self["i"] + args[3]) % N]
            elif kind == "if":
                yield from self.run(args[1 if self.value(args[0]) else 2])
            else:
                for _ in range(args[1]):
                    self["calls"] += 1
                    try:
                        yield from self.run(args[2])
                    except Jump as jump:
                        if jump.args[0] == "break":
                            break


def result(program, x, z):
    """The results of all threads, and how far they were from other branches."""
    states = [
        State(a=a, b=b, c=1 + 0j, d=0.5 * a, m=[a, b, a * b], calls=0, margin=1, i=i)
        for i, (a, b) in enumerate(zip(x, z, strict=True))
    ]
    threads = [state.run(program.body) for state in states]
    shared = [None] * N
    stored = True
    while stored:
        loads, stored = shared, []
        for thread in threads:
            try:
                stored.append(thread.send(None if loads[0] is None else loads))
            except StopIteration:
                continue
        shared = stored
    results = [sum(state[name] for name in FLOATS) + sum(state["m"]) for state in states]
    return np.array(results), np.array([state["margin"] for state in states])


def check(seeds, has_phases=False):
    """Compare the derivatives of some programs; the number of those that say something."""
    programs = {seed: Program(seed, has_phases) for seed in seeds}
    count = len(programs)
    body = ""
    for k, program in enumerate(programs.values()):
        body += f"""  {{
  float a = x[i * {count} + {k}], b = z[i * {count} + {k}], c = 1, d = 0.5f * a;
  float m[3] = {{a, b, a * b}};
  int calls = 0;
  {"  ".join(msl(program.body))}
  y[i * {count} + {k}] = a + b + c + d + m[0] + m[1] + m[2];
  }}
"""
    source = f"""{HEADER}
kernel void k(device const float *x, device const float *z, device float *y,
              uint i [[thread_position_in_grid]]) {{
  {f"threadgroup float shared[{N}];" if has_phases else ""}
{body}}}"""
    x, z = np.empty((2, N, count), np.float32)
    for k, seed in enumerate(seeds):
        for n, values in enumerate((x, z), 1):
            values[:, k] = np.random.default_rng(seed + n).uniform(-1, 1, N)
    adjoint = vjp(mtl.library(source, device="cpu").k, wrt=["x", "z"], outputs=["y"])
    d_x, d_z = np.zeros_like(x), np.zeros_like(z)
    adjoint(x, z, np.zeros_like(x), np.ones_like(x), d_x, d_z, threads=N, group_size=N)
    checked = 0
    for k, (seed, program) in enumerate(programs.items()):
        exact, margins, size = derivatives(
            program, x[:, k].astype(complex), z[:, k].astype(complex)
        )
        computed = np.stack([d_x[:, k], d_z[:, k]])
        if has_phases and (margins.min() < 1e-4 or size.max() > 1e3):
            continue  # floats may take another branch, or round too much
        usual = (margins >= 1e-4) & (size <= 1e3)
        checked += bool(usual.any())
        errors = np.abs(computed - exact) / np.maximum(1, np.abs(exact))
        assert (errors[:, usual] <= 2e-4).all(), (seed, computed, exact, adjoint.source)
    return checked


def derivatives(program, x, z):
    """Derivatives of the sum of all results, margins of branches, and the largest values."""
    exact = np.zeros((2, N))
    largest = np.zeros(N)
    for row, values in enumerate((x, z)):
        for i in range(N):
            values[i] += 1e-30j
            results, margins = result(program, x, z)
            values[i] = values[i].real
            exact[row, i] = results.imag.sum() * 1e30
            largest[i] = max(largest[i], abs(results[i].real), abs(exact[row, i]))
    return exact, margins, largest


@pytest.mark.parametrize("has_phases", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_random_program(has_phases):
    assert check([1], has_phases)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2500, 20))
def test_many_random_programs(first):
    """Compare programs without phases, and from 2,000 with phases."""
    seeds = range(first, first + 20)
    assert sum(check(seeds[k : k + 5], first >= 2000) for k in range(0, 20, 5)) > 10
