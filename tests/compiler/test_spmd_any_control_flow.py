"""Control flow of any reducible shape, gotos among it, for many lanes at once: as lane by lane.

Random graphs of blocks, in which each block changes a number and goes on by a bit of it (lanes
disagree) or of the seed (they do not). The number tells which path a lane has taken.
"""

import ctypes
import random

import numpy as np
import pytest

from metalloid.compiler.analysis.shapes import consecutive
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object
from metalloid.compiler.vectorize.assemble_module import assemble
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.pipeline import lower_kernel, vectorize
from metalloid.compiler.vectorize.spec import KernelABI, VectorSpec

WIDTH, ITERATIONS, BITS = 8, 12, 2**32


class Program:
    """A graph of blocks: block 0 is the first, and the one after the last is the end."""

    def __init__(self, chance, blocks):
        def target(block):
            # Mostly forwards, by a few blocks.
            if chance.random() < 0.3:
                return chance.randrange(1, blocks + 1)
            return min(block + chance.choice((1, 1, 2, 3)), blocks)

        self.blocks = blocks
        self.targets = [(target(b), target(b)) for b in range(blocks)]
        self.factors = [chance.randrange(1, BITS, 2) for _ in range(blocks)]
        self.uniform = [chance.random() < 0.4 for _ in range(blocks)]
        self.bits = [chance.randrange(5, 31) for _ in range(blocks)]
        self.reached, todo = set(), [0]
        while todo:
            block = todo.pop()
            if block < blocks and block not in self.reached:
                self.reached.add(block)
                todo += self.targets[block]

    def run(self, seed, lane):
        """The number that one lane ends with."""
        block, number, iterations = 0, lane, 0
        while block < self.blocks:
            iterations += 1
            number = (number * self.factors[block] + block) % BITS
            if iterations > ITERATIONS:
                break
            chosen = (seed if self.uniform[block] else number) >> self.bits[block] & 1
            block = self.targets[block][1 - chosen]
        return number

    def text(self, name):
        """The same as IR."""
        end = self.blocks
        lines = [
            f"define void @{name}(ptr %out, i32 %seed, i32 %lane) #0 {{",
            "entry:",
            "  br label %b0",
        ]
        for b in sorted(self.reached):
            into = [("%lane", "0", "entry")] * (b == 0)
            froms = [o for o in self.reached for target in self.targets[o] if target == b]
            into += [(f"%new{o}", f"%rounds{o}", f"go{o}") for o in froms]
            choice = "%seed" if self.uniform[b] else f"%new{b}"
            yes, no = (f"b{t}" if t < end else "end" for t in self.targets[b])
            lines += [
                f"b{b}:",
                f"  %old{b} = phi i32 " + ", ".join(f"[ {n}, %{o} ]" for n, _, o in into),
                f"  %count{b} = phi i32 " + ", ".join(f"[ {r}, %{o} ]" for _, r, o in into),
                f"  %rounds{b} = add i32 %count{b}, 1",
                f"  %times{b} = mul i32 %old{b}, {self.factors[b] - BITS * (self.factors[b] >= BITS // 2)}",
                f"  %new{b} = add i32 %times{b}, {b}",
                f"  %stop{b} = icmp ugt i32 %rounds{b}, {ITERATIONS}",
                f"  br i1 %stop{b}, label %end, label %go{b}",
                f"go{b}:",
                f"  %shifted{b} = lshr i32 {choice}, {self.bits[b]}",
                f"  %bit{b} = trunc i32 %shifted{b} to i1",
                f"  br i1 %bit{b}, label %{yes}, label %{no}",
            ]
        last = [f"[ %new{b}, %b{b} ]" for b in self.reached]
        last += [f"[ %new{b}, %go{b} ]" for b in self.reached for t in self.targets[b] if t == end]
        lines += [
            "end:",
            f"  %result = phi i32 {', '.join(last)}",
            "  %place = getelementptr i32, ptr %out, i32 %lane",
            "  store i32 %result, ptr %place, align 4",
            "  ret void",
            "}",
            f"define void @run_{name}(ptr %out, i32 %seed, i32 %lane) #0 {{",
            f"  call void @lanes_{name}(ptr %out, i32 %seed, i32 %lane)",
            "  ret void",
            "}",
        ]
        return "\n".join([*lines, ""])


def is_reducible(program):
    try:
        Graph(parse_function(program.text("f"), "f"))
    except Unsupported:  # a loop with two entries
        return False
    return True


def reducible_programs(seed, count):
    chance, programs = random.Random(seed), []
    while len(programs) < count:
        program = Program(chance, chance.randint(2, 9))
        if is_reducible(program):
            programs.append(program)
    return programs


def compiled(programs, mask_bits, tmp_path):
    """Vector code of the programs, loaded."""
    names = [f"f{n}" for n in range(len(programs))]
    ir = "".join(p.text(name) for name, p in zip(names, programs, strict=True))
    ir += "attributes #0 = { nounwind }\n"
    bodies = [
        vectorize(
            lower_kernel(ir, KernelABI(name, (), 0, {})),
            VectorSpec(f"lanes_{name}", WIDTH, mask_bits, {2: consecutive(WIDTH)}, 2),
        )
        for name in names
    ]
    code = clang.run(
        ["clang", "-x", "ir", "-O1", "-fPIC", "-w", "-c", "-o", "-", "-"],
        assemble(ir, "f0", bodies),
    )
    assert code.status == 0, code.messages
    file = tmp_path / "programs.so"
    file.write_bytes(shared_object({"programs.o": code.output}, "programs.so"))
    library = ctypes.CDLL(str(file))
    return [library[f"run_{name}"] for name in names]


def check(seed, count, mask_bits, tmp_path):
    programs = reducible_programs(seed, count)
    functions = compiled(programs, mask_bits, tmp_path)
    out = np.zeros(64, np.uint32)
    for number, (program, function) in enumerate(zip(programs, functions, strict=True)):
        for value in (0, 0x5A5A5A5A, 0x12345678, BITS - 1):
            for first in (0, 24, 40):
                function(
                    ctypes.c_void_p(out.ctypes.data), ctypes.c_uint32(value), ctypes.c_uint32(first)
                )
                expected = [program.run(value, first + lane) for lane in range(WIDTH)]
                assert out[first : first + WIDTH].tolist() == expected, (seed, number, value, first)


@pytest.mark.parametrize("mask_bits", [1, 32])
@pytest.mark.parametrize("spoilt", [False, True], ids=["", "spoilt"])
def test_random_graphs(mask_bits, spoilt, tmp_path, monkeypatch):
    monkeypatch.setattr(Builder, "poisons_inactive_lanes", spoilt)
    check(mask_bits + 2 * spoilt, 60, mask_bits, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_graphs(seed, tmp_path):
    check(seed, 100, 1, tmp_path)
