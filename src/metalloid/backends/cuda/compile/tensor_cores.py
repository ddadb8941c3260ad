"""Products of simdgroup matrices as tensor core instructions (``mma``).

An instruction multiplies 16 x 16 by 16 x 8 matrices; a simdgroup_matrix is 8 x 8. A sum of two
products, and two products with the same right factor, become one instruction if they are in the
same basic block; a single product is padded with zero rows.

It differs from `transforms.matrix_products`, which makes a matrix one value of the simdgroup for
vector code: here each lane keeps its elements, in the registers that the instruction wants them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, CallAttributes, Function, Instruction, Value
from metalloid.compiler.ir.types import FLOAT, I32, I64, Struct, Vector

#: Functions of matrices_nvptx.h: a product of two matrices plus a third, and a transposition.
PRODUCT, TRANSPOSED = "@mtl_product_", "@mtl_transposed_matrix"
_ATTRIBUTES = CallAttributes((), (), ("convergent", "nounwind", "memory(none)"))
_PAIR, _SUMS = Vector(2, FLOAT), Struct((FLOAT,) * 4)
_ZERO_WORD, _ZERO = Value(I32, "0"), Value(FLOAT, "0.0")


@dataclass
class _Sum:
    """A sum of one or two products and an accumulator.

    Attributes
    ----------
    result : str
    kind : str
        Type of the factors, as PTX spells it.
    left, right : list of Value
        Factors of the products.
    start : Value
        The accumulator.
    position : int
        Of the last product in its block.
    """

    result: str
    kind: str
    left: list[Value]
    right: list[Value]
    start: Value
    position: int


def has_matrix_functions(kernel: str) -> bool:
    """Whether the text of a kernel calls functions of matrices_nvptx.h."""
    return PRODUCT in kernel or f"{TRANSPOSED}(" in kernel


def use_tensor_cores(function: Function, names: FreshNames) -> bool:
    """Replace the functions of matrices_nvptx.h by instructions; whether there were any."""
    instructions = list(function.instructions())
    transposed = {i.result: i.operands[0] for i in instructions if _is_call(i, TRANSPOSED)}
    if not transposed and not any(_is_call(i, PRODUCT) for i in instructions):
        return False
    uses = Counter(value.name for i in instructions for value in i.operands)
    for block in function.blocks.values():
        _Rewriting(block, uses, transposed, names).run()
    return True


def _is_call(i: Instruction, callee: str) -> bool:
    return i.op == "call" and i.callee.startswith(callee)


@dataclass
class _Rewriting:
    """The rewriting of a block.

    Attributes
    ----------
    uses : Counter
        Uses of each value in the function.
    transposed : mapping of Value
        Operands of transpositions, by their results.
    """

    block: Block
    uses: Counter[str]
    transposed: Mapping[str, Value]
    names: FreshNames
    sums: dict[str, _Sum] = field(default_factory=dict)

    def run(self) -> None:
        """Rewrite the block; instructions of several products come at the last of them."""
        rewritten: dict[int, list[Instruction]] = {}
        for position, i in enumerate(self.block.body):
            if _is_call(i, TRANSPOSED):
                rewritten[position] = [_transposition(i)]
            elif _is_call(i, PRODUCT):
                rewritten[position] = []
                self._add(i, position)
        for pair in self._pairs():
            rewritten[pair[-1].position] = self._mma(pair)
        self.block.body = [
            each
            for position, i in enumerate(self.block.body)
            for each in rewritten.get(position, [i])
        ]

    def _add(self, i: Instruction, position: int) -> None:
        """Add a product to the sum that it continues, or as a new one."""
        left, right, start = i.operands
        kind = i.callee.removeprefix(PRODUCT)
        once = self.transposed.get(right.name)
        right = self.transposed.get(once.name, right) if once else right
        before = self.sums.get(start.name)
        is_only_use = self.uses[start.name] == 1
        if before and before.kind == kind and len(before.left) == 1 and is_only_use:
            del self.sums[start.name]
            before.left.append(left)
            before.right.append(right)
            before.result, before.position = i.result, position
            self.sums[i.result] = before
        else:
            self.sums[i.result] = _Sum(i.result, kind, [left], [right], start, position)

    def _pairs(self) -> list[list[_Sum]]:
        """Pairs of sums with the same right factors, and single ones."""
        waiting: dict[tuple[str, ...], _Sum] = {}
        pairs = []
        for this in sorted(self.sums.values(), key=lambda each: each.position):
            right = (self.transposed.get(factor.name, factor).name for factor in this.right)
            key = (this.kind, *right)
            other = waiting.pop(key, None)
            if other is None:
                waiting[key] = this
            elif self._is_used(other.result, other.position + 1, this.position):
                pairs.append([other])
                waiting[key] = this
            else:
                pairs.append([other, this])
        return pairs + [[left] for left in waiting.values()]

    def _is_used(self, name: str, first: int, last: int) -> bool:
        return any(
            value.name == name for i in self.block.body[first : last + 1] for value in i.operands
        )

    def _mma(self, pair: Sequence[_Sum]) -> list[Instruction]:
        """The instruction for one or two sums, and the extraction of its results."""
        first, other = pair[0], pair[1] if len(pair) > 1 else None
        name = self.names("%mtl.product")
        left = [
            half
            for k in range(len(first.left))
            for half in (first.left[k], other.left[k] if other else _ZERO_WORD)
        ]
        body: list[Instruction] = []
        starts: list[Value] = []
        for each in pair:
            for lane in range(2):
                start = Instruction(
                    "extractelement", self.names(f"{name}.start"), FLOAT,
                    [each.start, Value(I64, str(lane))],
                )  # fmt: skip
                body.append(start)
                starts.append(start.value)
        starts += [_ZERO] * (4 - len(starts))
        operands = [*left, *first.right, *starts]
        callee = _mma_assembly(first.kind, len(first.left))
        body.append(
            Instruction("call", name, _SUMS, operands, callee=callee, attributes=_ATTRIBUTES)
        )
        sums = body[-1].value
        for row, each in enumerate(pair):
            body += self._as_vector(sums, 2 * row, each.result)
        return body

    def _as_vector(self, sums: Value, first: int, result: str) -> Iterable[Instruction]:
        """Two of the sums as a vector."""
        members = [
            Instruction(
                "extractvalue",
                self.names(f"{sums.name}.sum"),
                FLOAT,
                [sums],
                indices=(first + lane,),
            )
            for lane in range(2)
        ]
        half = Instruction(
            "insertelement", self.names(f"{sums.name}.half"), _PAIR,
            [Value(_PAIR, "poison"), members[0].value, Value(I64, "0")],
        )  # fmt: skip
        operands = [half.value, members[1].value, Value(I64, "1")]
        return [*members, half, Instruction("insertelement", result, _PAIR, operands)]


def _transposition(i: Instruction) -> Instruction:
    callee = 'asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"'
    return Instruction("call", i.result, I32, i.operands, callee=callee, attributes=_ATTRIBUTES)


def _mma_assembly(kind: str, products: int) -> str:
    """The instruction for sums of so many products."""
    groups = [range(4), range(4, 4 + 2 * products), range(4 + 2 * products, 4 + 3 * products)]
    groups.append(range(4 + 3 * products, 8 + 3 * products))
    registers = ", ".join("{" + ", ".join(f"${k}" for k in group) + "}" for group in groups)
    shape = f"m16n8k{8 * products}.row.col.f32.{kind}.{kind}.f32"
    constraints = ",".join(["=f"] * 4 + ["r"] * (3 * products) + ["f"] * 4)
    return f'asm "mma.sync.aligned.{shape} {registers};", "{constraints}"'
