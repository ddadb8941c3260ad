"""The input of the vectoriser: the ABI of a kernel, and the form of its vector code."""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.analysis.shapes import Shape


@dataclass(frozen=True)
class VectorSpec:
    """The form of the vector code of a function.

    Attributes
    ----------
    name : str
        Of the function to define.
    width : int
        Lanes.
    mask_bits : int
        1 where the processor has mask registers, else the width of integers to keep masks in.
    shapes : dict of Shape
        Of those parameters that are not uniform, by position; the function is called with the
        values of lane 0.
    index : int
        Position of the parameter that is a thread's index in its threadgroup.
    partial : bool
        Whether lanes may be missing.
    has_frame : bool
        Whether the simdgroup returns at barriers: then there are the size of the threadgroup in x
        and y, the number of lanes, and the state as well. The number alone if only `partial`.
    computed : tuple of int
        If the simdgroup covers several rows: positions of the parameters that are a thread's
        position in the threadgroup (x, y, z) and in the grid.
    is_strict : bool
        Whether lanes that miss a barrier for which others wait are a fault.
    common : tuple of int
        Positions of the parameters that are the same for all threads of a threadgroup.
    streams : bool
        Whether what is stored goes past the caches where it can.
    prefetches_in_loops : bool
        Whether loops along arrays prefetch.
    accumulators : tuple of (int, int) or None
        Where the address is of what is collected (`collected`): position of the parameter that
        points to the words of the call, and which of them.
    vectors : tuple of int
        Positions of the parameters that are passed for all lanes.
    masked : bool
        Whether the last parameter is the mask of the active lanes.
    """

    name: str
    width: int
    mask_bits: int
    shapes: dict[int, Shape]
    index: int
    partial: bool = False
    has_frame: bool = False
    computed: tuple[int, ...] = ()
    common: tuple[int, ...] = ()
    is_strict: bool = False
    streams: bool = False
    prefetches_in_loops: bool = True
    accumulators: tuple[int, int] | None = None
    vectors: tuple[int, ...] = ()
    masked: bool = False


@dataclass(frozen=True)
class KernelABI:
    """The function of one thread.

    Attributes
    ----------
    name : str
    read_only : tuple of int
        Positions of parameters that point to memory which is not written meanwhile.
    memory : int
        Position of the parameter that points to the end of the threadgroup variables.
    variables : dict of int
        The distance of each of them before that address.
    """

    name: str
    read_only: tuple[int, ...]
    memory: int
    variables: dict[str, int]
