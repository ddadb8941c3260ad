"""Names for values and blocks that have numbers, as LLVM's ``instnamer`` gives them.

LLVM wants numbers in the order of definitions. So a function whose values have numbers cannot be
printed once a pass has added, removed or moved one.
"""

from __future__ import annotations

from typing import Any

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.ir.pass_manager import Pass


def name_values(function: Function, fresh: FreshNames) -> None:
    """Give names to values and blocks that have numbers."""
    defined = [value.name for value in function.parameters]
    defined += [i.result for i in function.instructions()]
    values = {name: fresh(f"%v{name[1:]}") for name in defined if name[1:].isdigit()}
    blocks = {name: fresh(f"%bb{name[1:]}") for name in function.blocks if name[1:].isdigit()}

    def named(value: Value) -> Value:
        return Value(value.type, values.get(value.name, value.name))

    function.parameters = [*map(named, function.parameters)]
    for block in function.blocks.values():
        block.name = blocks.get(block.name, block.name)
        for i in block.instructions():
            i.result = values.get(i.result, i.result)
            i.operands = [*map(named, i.operands)]
            i.labels = [blocks.get(label, label) for label in i.labels]
    function.blocks = {block.name: block for block in function.blocks.values()}


#: For contexts that have `names`.
NAME_VALUES: Pass[Any] = Pass(
    "name-values", lambda function, context: name_values(function, context.names),
    "what has names may be moved and printed; LLVM wants numbers in order", gives=("names",),
)  # fmt: skip
