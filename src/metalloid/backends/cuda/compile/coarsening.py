"""Thread coarsening: one CUDA thread runs several Metal threads, to have more loads in flight.

A kernel that loads one number per thread is bound by memory latency: on an H200 it reaches 80 % of
the bandwidth, and all of it with two or four independent loads per thread (docs/nvidia.md). So
small kernels get a second, coarsened kernel for large grids. Its threads run the same thread of
several adjacent threadgroups, interleaved: an instruction for all of them, then the next one.

Threads of different threadgroups share only device memory, and Metal does not order their plain
loads and stores. So every interleaving that keeps the order within each thread is correct, whether
buffers overlap or not. Instructions that synchronise threads or order accesses are refused:
atomics, volatile accesses, fences, barriers, simdgroup functions, threadgroup memory. Kernels for
which coarsening is not profitable are refused too: loops, which have enough loads in flight
already, and adjacent threads whose addresses are a row apart.

Kernels with small elements are coarsened along x instead (vectorized_coarsening.py).

At a branch all threads continue together if their conditions agree. If they do not, the threads are
restarted one after the other: divergent branches have to come before the first store.
"""

from __future__ import annotations

import re

from metalloid.backends.cuda.compile.acyclic_blocks import (
    Block,
    NotAcyclic,
    blocks_of,
    operands,
    split_result,
)
from metalloid.backends.cuda.compile.coarsened_kernel import (
    BLOCK_INDEX,
    VectorAccesses,
    write_coarsened,
)
from metalloid.backends.cuda.compile.kernel_text import around_kernel
from metalloid.backends.cuda.compile.vectorized_coarsening import THREAD_INDEX, vectorization_factor
from metalloid.msl.signature import Signature

_MAX_FACTOR = 4  # threads in one; eight were slower
_MAX_LOADED_BYTES = 48  # by all threads; kernels that load more have enough loads in flight
_MAX_VECTOR_LOADED_BYTES = 64  # the same with vector accesses
_MAX_LINES = 800  # of all threads

#: Offsets of the threadgroup's extent in x and of is_uniform in launch_data, after the words
#: (entry.h).
_EXTENT_OFFSET, _UNIFORM_OFFSET = 12, 36
_SUPPORTED = re.compile(
    r"(?:(?:tail|musttail|notail) )?(?:add|addrspacecast|and|ashr|bitcast|call|extractelement|"
    r"extractvalue|fadd|fcmp|fdiv|fmul|fneg|fpext|fptosi|fptoui|fptrunc|freeze|frem|fsub|"
    r"getelementptr|icmp|insertelement|insertvalue|inttoptr|load|lshr|mul|or|phi|ptrtoint|sdiv|"
    r"select|sext|shl|shufflevector|sitofp|srem|store|sub|trunc|udiv|uitofp|urem|xor|zext)\b"
)
#: Accesses whose order other threads may observe, and threadgroup memory.
_ORDERED = re.compile(r"addrspace\(3\)| volatile | atomic ")
_CALL = re.compile(r"(?:(?:tail|musttail|notail) )?call\b(?: [^@]*(@[\w.$]+)\()?")
_LOADED = re.compile(r"load (?:<(\d+) x )?([a-z]+)(\d*)")
_ATTRIBUTES = re.compile(r"^(?:declare|define) [^\n]*(@[\w.$]+)\([^\n]*#(\d+)", re.M)
_ATTRIBUTE_GROUP = re.compile(r"^attributes #(\d+) = \{([^\n]*)\}", re.M)
_OTHER_AXIS = re.compile(r"extractelement .*, i64 [12]$")
_PRODUCT = re.compile(r"mul (?:nuw |nsw )*i\d+ (%\S+), (%\S+)$")
_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


def add_coarsened_kernel(ir: str, signature: Signature) -> tuple[str, int, bool]:
    """Add the coarsened kernel to a module.

    Returns
    -------
    module, coarsening factor, whether it is along x with vector accesses
        The factor is 1, and the module unchanged, where coarsening is not correct or profitable.
    """
    before, kernel, after = around_kernel(ir)
    if kernel.count("\n") > 2 * _MAX_LINES:
        return ir, 1, False
    uniform_offset = 8 * max(1, len(signature.sources)) + _UNIFORM_OFFSET
    try:
        blocks = blocks_of(kernel, lambda blocks: _assume_uniform(blocks, uniform_offset))
    except NotAcyclic:
        return ir, 1, False
    pure = _pure(ir)
    vectorized = _VaryingValues(blocks, pure, THREAD_INDEX, 16, _MAX_VECTOR_LOADED_BYTES)
    extent_offset = uniform_offset - _UNIFORM_OFFSET + _EXTENT_OFFSET
    factor, element_pointers = vectorization_factor(blocks, vectorized.names, extent_offset)
    is_vectorized = 1 < factor <= vectorized.factor
    varying = (
        vectorized
        if is_vectorized
        else _VaryingValues(blocks, pure, BLOCK_INDEX, _MAX_FACTOR, _MAX_LOADED_BYTES)
    )
    factor = factor if is_vectorized else varying.factor
    if factor == 1:
        return ir, 1, False
    vector_accesses = (
        VectorAccesses(factor, element_pointers, extent_offset) if is_vectorized else None
    )
    text = write_coarsened(kernel, blocks, varying.names, varying.varies, factor, vector_accesses)
    return f"{before}{kernel}\n{text}{after}", factor, is_vectorized


def _assume_uniform(blocks: dict[str, Block], offset: int) -> None:
    """Remove the edge for grids that are not uniform: the coarsened kernel runs uniform ones."""
    first = next(iter(blocks.values()))
    values = dict(split_result(line) for line in first.lines)
    compared = re.match(r"icmp eq i32 (%\S+), 0$", values.get(first.condition, ""))
    loaded = re.match(r"load i32, ptr (%[^,]+),", values.get(compared[1], "")) if compared else None
    address = values.get(loaded[1], "") if loaded else ""
    if re.match(rf"getelementptr [^,]*, ptr %0, i64 {offset}$", address):
        first.condition, first.targets = "", first.targets[1:]


def _pure(ir: str) -> set[str]:
    """Functions without memory accesses that are not convergent."""
    groups = {
        number for number, text in _ATTRIBUTE_GROUP.findall(ir)
        if " memory(none)" in text and " convergent " not in text
    }  # fmt: skip
    return {name for name, number in _ATTRIBUTES.findall(ir) if number in groups}


class _VaryingValues:
    """The values that vary with `index`, a call.

    Attributes
    ----------
    names : set of str
    factor : int
        The coarsening factor; 1 if coarsening is not correct or profitable.
    """

    def __init__(
        self, blocks: list[Block], pure: set[str], index: str, max_factor: int, max_loaded: int
    ) -> None:
        self._index = index
        self.names: set[str] = set()
        self._launch = {"%0"}  # pointers to launch_data
        self._consecutive: set[str] = set()  # one greater in the next thread in x
        self.factor = 1
        lines = loaded = 0
        after_store: set[str] = set()  # blocks with a store, or after one
        for block in blocks:
            for result, code in map(split_result, block.lines):
                if not _is_unordered(code, pure) or self._is_strided(code):
                    return
                if self._is_consecutive(code):
                    self._consecutive.add(result)
                if code.startswith("store "):
                    after_store.add(block.name)
                if self.varies(code):
                    lines += 1
                    loaded += _loaded_bytes(code)
                    self.names |= {result} - {""}
                elif code.startswith("getelementptr ") and operands(code)[0] == "%0":
                    self._launch.add(result)
            is_divergent = block.condition in self.names
            if is_divergent and (block.name in after_store or len(set(block.targets)) == 1):
                return
            if block.name in after_store:
                after_store.update(block.targets)
        if lines:
            self.factor = max_factor
        while self.factor * loaded > max_loaded or self.factor * lines > _MAX_LINES:
            self.factor //= 2
        self.factor = max(self.factor, 1)

    def _is_consecutive(self, code: str) -> bool:
        if THREAD_INDEX in code:
            return True
        is_other = code.startswith(("load ", "store ")) or _OTHER_AXIS.match(code)
        return not is_other and not self._consecutive.isdisjoint(operands(code))

    def _is_strided(self, code: str) -> bool:
        """Whether an index of adjacent threads is multiplied by a stride.

        Their stores then share cache lines with few other threads; coarsening makes them fewer.
        """
        factors = _PRODUCT.match(code)
        return factors is not None and not self._consecutive.isdisjoint(factors.groups())

    def varies(self, code: str) -> bool:
        """Whether an instruction is executed for each thread."""
        if self._index in code or code.startswith("store "):
            return True
        used = operands(code)
        if code.startswith("load ") and "!invariant.load" not in code:
            # Other threads may write to it. Program-scope variables have no local name.
            return not used or used[0] not in self._launch
        return not self.names.isdisjoint(used)


def _is_unordered(code: str, pure: set[str]) -> bool:
    """Whether no other thread can observe the order of an instruction."""
    if not _SUPPORTED.match(code) or _ORDERED.search(code):
        return False
    call = _CALL.match(code)
    return call is None or call[1] in pure


def _loaded_bytes(code: str) -> int:
    found = _LOADED.match(code)
    if found is None:
        return 0
    return int(found[1] or 1) * (_BYTES.get(found[2]) or -(-int(found[3] or 64) // 8))
