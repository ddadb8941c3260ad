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
    """A random program: statements as tuples, which MSL and Python have in common."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.loops = 0
        self.body = self.block(0, 4)

    def block(self, depth, count, loop=False):
        statements = [self.statement(depth) for _ in range(self.random.integers(1, count + 1))]
        if loop and self.random.random() < 0.4:
            kind = str(self.random.choice(["break", "continue"]))
            jump = ("if", self.condition(), [(kind,)], [])
            statements.insert(int(self.random.integers(len(statements) + 1)), jump)
        return statements

    def statement(self, depth):
        kinds = ["assign", "assign", "update", "array"]
        if depth < MAX_DEPTH:
            kinds += ["if", "for", "for"]
        kind = str(self.random.choice(kinds))
        if kind == "if":
            other = self.block(depth + 1, 2) if self.random.random() < 0.6 else []
            return ("if", self.condition(), self.block(depth + 1, 3), other)
        if kind == "for":
            self.loops += 1
            name = f"j{self.loops}"
            return ("for", name, int(self.random.integers(1, 4)), self.block(depth + 1, 3, True))
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
            elif kind == "if":
                self.run(args[1 if self.value(args[0]) else 2])
            else:
                for _ in range(args[1]):
                    self["calls"] += 1
                    try:
                        self.run(args[2])
                    except Jump as jump:
                        if jump.args[0] == "break":
                            break


def result(program, x, z):
    """The result, and how far it was from another branch."""
    state = State(a=x, b=z, c=1 + 0j, d=0.5 * x, m=[x, z, x * z], calls=0, margin=1)
    state.run(program.body)
    return sum(state[name] for name in FLOATS) + sum(state["m"]), state["margin"]


def check(seed):
    """Compare a program's derivatives; False if they say nothing."""
    program = Program(seed)
    body = "\n  ".join(msl(program.body))
    source = f"""{HEADER}
kernel void k(device const float *x, device const float *z, device float *y,
              uint i [[thread_position_in_grid]]) {{
  float a = x[i], b = z[i], c = 1, d = 0.5f * a, m[3] = {{a, b, a * b}};
  int calls = 0;
  {body}
  y[i] = a + b + c + d + m[0] + m[1] + m[2];
}}"""
    x, z = (np.random.default_rng(seed + k).uniform(-1, 1, N).astype(np.float32) for k in (1, 2))
    kernel = mtl.library(source, device="cpu").k
    adjoint = vjp(kernel, wrt=["x", "z"], outputs=["y"])
    d_x, d_z = np.zeros(N, np.float32), np.zeros(N, np.float32)
    adjoint(x, z, np.zeros(N, np.float32), np.ones(N, np.float32), d_x, d_z, threads=N)
    is_checked = False
    for k in range(N):
        step = 1e-30j
        (by_x, margin), (by_z, _) = (
            result(program, x[k] + a * step, z[k] + b * step) for a, b in ((1, 0), (0, 1))
        )
        if margin < 1e-4 or max(abs(by_x.real), abs(by_x.imag) * 1e30, abs(by_z.imag) * 1e30) > 1e3:
            continue  # floats may take another branch, or round too much
        is_checked = True
        for computed, exact in ((d_x[k], by_x.imag * 1e30), (d_z[k], by_z.imag * 1e30)):
            assert abs(computed - exact) <= 2e-4 * max(1, abs(exact)), (
                seed,
                k,
                computed,
                exact,
                adjoint.source,
            )
    return is_checked


@pytest.mark.parametrize("seed", [1])
def test_random_program(seed):
    assert check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 20))
def test_many_random_programs(first):
    assert sum(map(check, range(first, first + 20))) > 10
