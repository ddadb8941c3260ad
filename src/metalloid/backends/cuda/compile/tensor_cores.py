"""Matrix products as tensor core instructions (``mma``).

An instruction multiplies 16 x 16 by 16 x 8 matrices; a simdgroup_matrix is 8 x 8. A sum of two
products, and two products with the same right factor, become one instruction if they are in the
same basic block; a single product is padded with zero rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from metalloid.backends.cuda.compile.kernel_text import LABEL, around_kernel

_VALUE = re.compile(r"%[\w.$-]+")
_OPERAND = r"(?:noundef )?([^,]+)"
_PRODUCT = re.compile(
    rf"^  (%\S+) = .*call .*@mtl_product_(b?f16)\(i32 {_OPERAND}, i32 {_OPERAND}, "
    r"<2 x float> (?:noundef )?(.+)\)(?: #\d+)?$"
)
_TRANSPOSED = re.compile(rf"^  (%\S+) = .*call .*@mtl_turned_matrix\(i32 {_OPERAND}\)(?: #\d+)?$")
_NAMES = ("@mtl_product_", "@mtl_turned_matrix(")
_ATTRIBUTES = "convergent nounwind memory(none)"


@dataclass
class _Sum:
    """A sum of one or two products and an accumulator."""

    result: str
    kind: str
    left: list[str]
    right: list[str]
    start: str
    line: int


def has_matrix_functions(ir: str) -> bool:
    """Whether the kernel has functions of matrices_nvptx.h."""
    _, kernel, _ = around_kernel(ir)
    return any(name in kernel for name in _NAMES)


def use_tensor_cores(ir: str) -> str:
    """Replace the functions of matrices_nvptx.h by instructions."""
    if not has_matrix_functions(ir):
        return ir
    before, kernel, after = around_kernel(ir)
    # Results get names, as numbered values have to be defined in order, and they move down.
    named = {
        match[1]: f"%mtl.{match[1][1:]}" for line in kernel.split("\n")
        if (match := _PRODUCT.match(line))
    }  # fmt: skip
    function = _VALUE.sub(lambda value: named.get(value[0], value[0]), kernel)
    lines = function.split("\n")
    uses = Counter(_VALUE.findall(function))
    ends = [number for number, line in enumerate(lines) if LABEL.match(line)]
    transposed = {match[1]: match[2] for line in lines if (match := _TRANSPOSED.match(line))}
    rewritten: dict[int, list[str]] = {}
    for start, end in zip([0, *ends], [*ends, len(lines)], strict=True):
        rewritten |= _rewrite_block(lines, range(start, end), uses, transposed)
    text = "\n".join(
        each for number, line in enumerate(lines) for each in rewritten.get(number, [line])
    )
    return before + text + after


def _rewrite_block(
    lines: list[str], block_lines: range, uses: Counter[str], transposed: dict[str, str]
) -> dict[int, list[str]]:
    """The new text of some lines of a block.

    Parameters
    ----------
    transposed : dict of str
        Operands of transpositions, by their results.
    """
    rewritten: dict[int, list[str]] = {}
    sums: dict[str, _Sum] = {}
    for number in block_lines:
        if match := _TRANSPOSED.match(lines[number]):
            rewritten[number] = [
                f'  {match[1]} = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", '
                f'"=r,r"(i32 {match[2]}) {_ATTRIBUTES}'
            ]
        elif match := _PRODUCT.match(lines[number]):
            result, kind, left, right, start = match.groups()
            right = transposed.get(transposed.get(right, ""), right)
            rewritten[number] = []
            before = sums.get(start)
            if before and before.kind == kind and len(before.left) == 1 and uses[start] == 2:
                del sums[start]
                before.left.append(left)
                before.right.append(right)
                before.result, before.line = result, number
                sums[result] = before
            else:
                sums[result] = _Sum(result, kind, [left], [right], start, number)
    for pair in _pair_up(sums.values(), lines, transposed):
        rewritten[pair[-1].line] = _mma(pair)
    return rewritten


def _pair_up(
    sums: Iterable[_Sum], lines: list[str], transposed: dict[str, str]
) -> list[list[_Sum]]:
    """Pairs of sums with the same right factors, and single ones."""
    waiting: dict[tuple[str, ...], _Sum] = {}
    pairs = []
    for this in sorted(sums, key=lambda each: each.line):
        key = (this.kind, *(transposed.get(factor, factor) for factor in this.right))
        other = waiting.pop(key, None)
        if other is None:
            waiting[key] = this
        elif any(
            other.result in _VALUE.findall(line) for line in lines[other.line + 1 : this.line + 1]
        ):
            pairs.append([other])
            waiting[key] = this
        else:
            pairs.append([other, this])
    return pairs + [[left] for left in waiting.values()]


def _mma(pair: list[_Sum]) -> list[str]:
    """The instruction for one or two sums, and the extraction of its results."""
    first, other = pair[0], pair[1] if len(pair) > 1 else None
    name = f"%mtl.product.{pair[-1].line}"
    depth = len(first.left)
    left = [half for k in range(depth) for half in (first.left[k], other.left[k] if other else "0")]
    text, starts = [], []
    for row, each in enumerate((first, other)):
        for lane in range(2):
            if each is None:
                starts.append("0.0")
                continue
            starts.append(f"{name}.{row}{lane}")
            text.append(f"  {starts[-1]} = extractelement <2 x float> {each.start}, i64 {lane}")
    words = [*left, *first.right]
    operands = [f"i32 {word}" for word in words] + [f"float {start}" for start in starts]
    groups = [range(4), range(4, 4 + 2 * depth), range(4 + 2 * depth, 4 + 3 * depth)]
    groups.append(range(4 + 3 * depth, 8 + 3 * depth))
    registers = ", ".join("{" + ", ".join(f"${k}" for k in group) + "}" for group in groups)
    shape = f"m16n8k{8 * depth}.row.col.f32.{first.kind}.{first.kind}.f32"
    constraints = ",".join(["=f"] * 4 + ["r"] * len(words) + ["f"] * 4)
    four = "{ float, float, float, float }"
    text.append(
        f'  {name} = call {four} asm "mma.sync.aligned.{shape} {registers};", '
        f'"{constraints}"({", ".join(operands)}) {_ATTRIBUTES}'
    )
    for row, each in enumerate(pair):
        for lane in range(2):
            text.append(f"  {name}.{row}{lane}.sum = extractvalue {four} {name}, {2 * row + lane}")
        text += [
            f"  {name}.{row} = insertelement <2 x float> poison, float {name}.{row}0.sum, i64 0",
            f"  {each.result} = insertelement <2 x float> {name}.{row}, "
            f"float {name}.{row}1.sum, i64 1",
        ]
    return text
