"""Members taken out of registers by permutations of two at a time: with labels for elements."""

import pytest

from metalloid.compiler.ir.types import Integer
from metalloid.compiler.vectorize.memory import deinterleave


@pytest.fixture(autouse=True)
def lists_for_registers(monkeypatch):
    def shuffled(builder, type, first, second, sources):
        assert len(sources) == len(first) == len(second)
        return [[*first, *second][source] for source in sources]

    monkeypatch.setattr(deinterleave, "shuffled", shuffled)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [4, 8])
def test_there_and_back(count, size):
    lanes = 64 // size
    elements = [(lane, member) for lane in range(lanes) for member in range(count)]
    registers = [elements[start : start + lanes] for start in range(0, len(elements), lanes)]
    members = deinterleave.deinterleave_members(None, registers, Integer(8 * size))
    assert members == [[(lane, member) for lane in range(lanes)] for member in range(count)]
    assert deinterleave.interleave_members(None, members, Integer(8 * size)) == registers
