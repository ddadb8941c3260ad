"""Functions of matrices that a simdgroup holds, as those of ``metal/matrices.metal``."""

from __future__ import annotations

from metalloid.differentiate.analysis.activity import all_reads
from metalloid.differentiate.program.tree import Program
from metalloid.differentiate.rules import MATRIX_PRODUCT
from metalloid.kernels.sources import metal_source


def matrix_functions(program: Program) -> str:
    """The text of the functions that programs with such matrices call."""
    for value in all_reads(program.body):
        if any(each.op == "call" and each.name == MATRIX_PRODUCT for each in value.walk()):
            return metal_source("metalloid.differentiate.metal", "matrices") + "\n"
    return ""
