"""Random kernels in MSL whose results do not depend on the engine: for comparing engines."""

from __future__ import annotations

import random

HEADER = """
#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
struct Item { int n; float x; char c; };
"""
#: Numbers that a thread owns in the output.
OWNED = 8
#: Elements of the inputs.
INPUTS = 64


class Generator:
    """Writes one kernel after the other."""

    def __init__(self, seed: int, waits: bool) -> None:
        self._random = random.Random(seed)
        self._waits = waits
        self._counters = 0

    def kernel(self, name: str) -> str:
        """A kernel over ints, floats and chars; if it `waits`, with simdgroups and barriers."""
        self._counters = 0
        self._reports = self._random.random() < 0.3
        self._has_large = self._random.random() < 0.2
        body = self._block(3, top=True)
        large = "  int large[300] = {};\n" if self._has_large else ""
        more = " + large[b & 255]" if self._has_large else ""
        return (
            f"kernel void {name}(device int* out, device float* fout, device const int* in,"
            " device const float* fin, constant int& u,"
            " uint2 gid [[thread_position_in_grid]], uint2 grid [[threads_per_grid]],"
            " uint lid [[thread_index_in_threadgroup]], uint2 p [[thread_position_in_threadgroup]],"
            " uint lane [[thread_index_in_simdgroup]], uint3 size3 [[threads_per_threadgroup]]) {\n"
            "  threadgroup int shared[1024]; threadgroup Item cells[2][8];\n"
            "  int size = size3.x * size3.y * size3.z;\n"
            "  int i = gid.x + gid.y * grid.x;\n"
            "  int a = i, b = in[i & 63], c = u; float f = fin[i & 63], g = 1.5f;\n"
            "  int arr[4] = {1, 2, 3, int(lid)}; float4 v = float4(f, g, a, b);\n"
            "  half halves[6] = {}; float4 vs[3] = {v, v.wzyx, float4(1)}; Item items[2] = {};\n"
            "  float series[8]; for (int k = 0; k < 8; ++k) series[k] = fin[(i + k) & 63];\n"
            f"{large}{body}"
            f"  out[i * {OWNED}] = a; out[i * {OWNED} + 1] = b + c + arr[a & 3]{more};\n"
            "  for (int k = 1; k < 8; ++k) g += series[k - 1] * float(halves[k % 6]) + vs[k & 1].z;\n"
            "  f += items[a & 1].x + items[0].c;\n"
            f"  fout[i * {OWNED}] = f; fout[i * {OWNED} + 1] = g; fout[i * {OWNED} + 2] = v[b & 3];\n"
            "}\n"
        )

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    # -- expressions

    def _int(self, depth: int = 2) -> str:
        r = self._random
        if depth == 0 or r.random() < 0.25:
            return self._pick(
                "a", "b", "c", "u", "i", "int(lid)", "int(p.x)", str(r.randint(-9, 40))
            )
        x, y = self._int(depth - 1), self._int(depth - 1)
        return self._pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} & {y})", f"({x} | {y})",
            f"({x} ^ {y})", f"({x} << ({y} & 7))", f"({x} >> ({y} & 7))",
            f"({x} / (1 + ({y} & 15)))", f"({x} % (1 + ({y} & 15)))",
            f"int(uint({x}) / uint(1 + ({y} & 31)))", f"int(uint({x}) % uint(1 + ({y} & 31)))",
            f"({self._condition(depth - 1)} ? {x} : {y})", f"in[({x}) & 63]", f"arr[({x}) & 3]",
            f"max({x}, {y})", f"min({x}, {y})", f"popcount({x})", f"int(char({x}) + 0)",
            f"int(short({x}) / short(3))", f"int(long({x}) >> 3)", f"clz({x})",
        )  # fmt: skip

    def _float(self, depth: int = 2) -> str:
        r = self._random
        if depth == 0 or r.random() < 0.25:
            return self._pick("f", "g", "v.x", "v.w", f"{r.uniform(-4, 4):.3f}f", "float(i & 15)")
        x, y = self._float(depth - 1), self._float(depth - 1)
        return self._pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"fma({x}, {y}, g)",
            f"fin[{self._int(depth - 1)} & 63]", f"({self._condition(depth - 1)} ? {x} : {y})", f"fabs({x})",
            f"float({self._int(depth - 1)} & 1023)", f"min({x}, {y})", f"floor({x})",
            f"series[{self._int(depth - 1)} & 7]", f"float(halves[{self._index()}])",
            f"vs[{self._int(depth - 1)} & 1].y", f"vs[u & 1][{self._int(1)} & 3]",
            f"items[{self._int(depth - 1)} & 1].x", f"float(half({x}))", f"dot(v, float4({x}, 1, 2, {y}))", f"sqrt(fabs({x}))",
        )  # fmt: skip

    def _index(self) -> str:
        """An index below 6: the same for all threads, or not."""
        return self._pick("u % 6", "(u & 3) + 1", f"(({self._int(1)} & 3) + 1)", "(i & 3)", "5")

    def _condition(self, depth: int = 1) -> str:
        relation = self._pick("<", ">", "==", "!=", "<=", ">=")
        if self._random.random() < 0.3:
            return f"({self._float(depth)} {self._pick('<', '>', '>=')} {self._float(depth)})"
        plain = f"({self._int(depth)} {relation} {self._int(depth)})"
        if self._random.random() < 0.2:
            return f"({plain} {self._pick('&&', '||')} ({self._int(depth)} & 1))"
        return plain

    # -- statements

    def _block(self, depth: int, top: bool = False, meet: str = "anywhere") -> str:
        count = self._random.randint(2, 4)
        return "".join(self._statement(depth, top, meet) for _ in range(count))

    def _statement(self, depth: int, top: bool, meet: str) -> str:
        r = self._random
        if self._waits and meet != "nowhere" and r.random() < 0.3:
            return self._exchange(top)
        kind = r.random()
        if self._reports and kind < 0.15:
            return self._report()
        if depth == 0 or kind < 0.4:
            return self._assignment()
        inner = meet if meet == "anywhere" else "nowhere"
        if kind < 0.6:
            block = self._block(depth - 1, meet=inner)
            other = f" else {{\n{self._block(depth - 1, meet=inner)}}}" if r.random() < 0.5 else ""
            return f"if ({self._condition()}) {{\n{block}}}{other}\n"
        if kind < 0.85:
            return self._loop(depth, meet)
        if kind < 0.93:
            cases = "".join(
                f"case {n}: {{\n{self._block(depth - 1, meet=inner)}{self._pick('break;', '')}}}\n"
                for n in range(3)
            )
            return f"switch ({self._int(1)} & 3) {{\n{cases}default: {self._assignment()}}}\n"
        if self._waits or not top:
            return self._assignment()
        return f"if ({self._condition()}) {{ {self._assignment()} return; }}\n"

    def _report(self) -> str:
        """A message, or an assertion that holds, which no compiler knows."""
        message = f'os_log_default.log("%d %d", {self._int(1)}, {self._int(1)});'
        return self._pick(
            f"if ({self._condition()}) {message}\n", f"if (({self._int(1)} & 7) == 1) {message}\n",
            f"assert(in[{self._int(1)} & 63] < 1000);\n", "assert(u < 100);\n",
            f"assert(fin[{self._int(1)} & 63] < 1000 && i >= 0);\n",
        )  # fmt: skip

    def _assignment(self) -> str:
        if self._has_large and self._random.random() < 0.2:
            return f"large[{self._int(1)} & 255] += {self._int(1)};\n"
        return self._pick(
            f"a = {self._int()};\n", f"b = {self._int()};\n", f"c = {self._int()};\n",
            f"f = {self._float()};\n", f"g = {self._float()};\n", f"b += {self._int(1)};\n",
            f"arr[{self._int(1)} & 3] = {self._int(1)};\n", f"v.y = {self._float(1)};\n",
            f"v = v.wzyx * {self._float(1)};\n",
            f"out[i * {OWNED} + 2 + ({self._int(1)} & 3)] = {self._int(1)};\n",
            f"fout[i * {OWNED} + 3 + ({self._int(1)} & 3)] = {self._float(1)};\n",
            f"series[{self._index()}] = {self._float(1)};\n",
            f"halves[{self._index()}] = half({self._int(1)} & 255);\n",
            f"vs[{self._int(1)} & 1] = {self._pick('v', 'vs[u & 1]', 'float4(f, 1, g, 2)')};\n",
            f"items[{self._int(1)} & 1].{self._pick('n', 'c')} = {self._int(1)};\n",
            f"items[u & 1].x = {self._float(1)};\n",
            f"for (int k = 1; k < (u & 7); ++k) series[k] += series[k - 1] * {self._float(0)};\n",
            f"out[i * {OWNED} + 6] += {self._int(1)};\n",
        )  # fmt: skip

    def _loop(self, depth: int, meet: str) -> str:
        """A loop. Threads meet in it only if all take all rounds together.

        Lanes of different rounds meet at a call in the reference engine, which knows no loops; in
        vector code they do not. Metal leaves it open.
        """
        self._counters += 1
        n = f"n{self._counters}"
        leave = ""
        if self._random.random() < 0.5:
            bound = self._pick("3", "u & 3")
        else:
            bound, meet = self._pick(f"{self._int(1)} & 3", "int(lid) & 3"), "nowhere"
        if self._random.random() < 0.5:
            leave = f"if ({self._condition()}) {self._pick('break', 'continue')};\n"
            meet = "nowhere"
        block = self._block(depth - 1, meet="nowhere" if meet == "nowhere" else "in step")
        return (
            f"for (int {n} = 0; {n} < ({bound}); ++{n}) {{\n{block}{leave}{self._assignment()}}}\n"
        )

    def _exchange(self, top: bool) -> str:
        """A statement that needs other threads. Barriers only where every thread comes."""
        x, step = self._int(1), self._random.randint(1, 31)
        simple = [
            f"b = simd_shuffle_xor({x}, {step});\n", f"c = simd_sum({x});\n",
            f"a = simd_prefix_inclusive_sum({x});\n", f"f = simd_max({self._float(1)});\n",
            f"g = simd_sum({self._float(1)});\n", f"b = simd_broadcast({x}, {step});\n",
            f"c = quad_sum({x});\n", f"a += simd_any({x} > 30) ? 1 : 2;\n",
            f"b = simd_shuffle({x}, ushort({self._int(1)} & 31));\n",
            f"c = simd_shuffle_up({x}, {step & 7});\n", f"a = simd_broadcast_first({x});\n",
            f"f = simd_shuffle_and_fill_down(f, g, {step & 7}, 8);\n",
            f"b = simd_shuffle_down({x}, {step});\n", f"a = simd_shuffle_rotate_up({x}, {step});\n",
            f"c = quad_shuffle({x}, ushort({self._int(1)} & 3));\n",
            f"b = quad_broadcast({x}, {step & 3});\n",
            f"a = simd_broadcast({x}, ushort((u * {step}) & 31));\n",
            f"b = quad_shuffle_and_fill_up({x}, c, {step & 1}, 2);\n",
        ]  # fmt: skip
        if not top:
            return self._pick(*simple)
        barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        exchange = (
            f"shared[lid] = {x};\n{barrier}b = shared[(int(lid) * {step} + 3) % size];\n{barrier}"
        )
        round_ = (
            f"for (int r = 0; r < (u & 3) + 1; ++r) {{\nshared[lid] = a + r;\n{barrier}"
            f"a += shared[(int(lid) + 1) % size];\n{barrier}}}\n"
        )
        fill = (
            f"if (lid == 0) for (int k = 0; k < 1024; ++k) shared[k] = 0;\n{barrier}"
            f"shared[lid] += {x};\n{barrier}b = shared[(int(lid) * {step}) & 1023];\n{barrier}"
        )
        struct = (
            "if (lid == 0) for (int j = 0; j < 2; ++j) for (int k = 0; k < 8; ++k) cells[j][k] = {};\n"
            f"{barrier}if (lid < 8) cells[1][lid].n = {x};\n{barrier}"
            f"c = cells[1][{step & 7}].n + cells[0][lid & 7].c; f += cells[1][2].x;\n{barrier}"
        )
        return self._pick(*simple, *[exchange, round_, fill, struct] * 2)


def library_text(seed: int, count: int, waits: bool) -> str:
    """MSL with kernels k0, k1, ..."""
    generator = Generator(seed, waits)
    return HEADER + "".join(generator.kernel(f"k{n}") for n in range(count))
