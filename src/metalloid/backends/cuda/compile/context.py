"""State that the passes over a kernel share, besides its function."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from metalloid.backends.cuda.compile.coarsening import Coarsening
from metalloid.backends.cuda.compile.launch_data import LaunchLayout
from metalloid.backends.cuda.compile.warp_divergence import WarpDivergence
from metalloid.compiler.ir.fresh_names import FreshNames


@dataclass
class KernelContext:
    """State that the passes over a kernel share, besides its function.

    Attributes
    ----------
    layout : LaunchLayout
    names : FreshNames
        For what passes add.
    pure_functions : set of str
        Functions of the module without memory accesses that are not convergent.
    divergence : WarpDivergence or None
        None also where the analysis does not support the kernel.
    coarsening : Coarsening or None
        None if the kernel was not coarsened.
    valid : set of str
        The analyses and properties that hold for the function now.
    """

    layout: LaunchLayout
    names: FreshNames
    pure_functions: Set[str]
    divergence: WarpDivergence | None = None
    coarsening: Coarsening | None = None
    valid: set[str] = field(default_factory=set)
