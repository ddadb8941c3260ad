"""Products with packed matrices: by vectors and by tiles, in batches, gathered and split."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, Unchecked, ceildiv, element_strides, sum_error
from mlx_tree.element_types import TYPES
from mlx_tree.packed import GLOBAL_FACTOR, GLOBAL_SCALE, Packed, affine, small_floats
from mlx_tree.products import (
    SIMD,
    assert_rounded,
    dispatch,
    exactly,
    operand,
    poisoned,
    product_error,
)

_NAME = re.compile(
    r"(?P<mode>affine|nvfp4|mxfp4|mxfp8)_(?P<form>\w+?)_(?P<dtype>float16_t|bfloat16_t|float)"
    r"_gs_(?P<group>\d+)_b_(?P<bits>\d+)(?P<flags>\w*)$"
)
# Sides of a threadgroup's tile; the second for the matrix units of newer GPUs (NAX).
_TILE, _NAX_TILE = 32, 64


@dataclass(frozen=True)
class Entry:
    """Properties that the name of an entry gives.

    Attributes
    ----------
    form : str
        ``"gather_qmv_fast"``.
    flags : dict
        ``{"alN": "true", "batch": "0"}``.
    nax : bool
        Whether it is for the matrix units of newer GPUs.
    """

    mode: str
    form: str
    dtype: np.dtype
    group: int
    bits: int
    flags: dict[str, str] = field(default_factory=dict)
    nax: bool = False

    @classmethod
    def parse(cls, name: str) -> Entry:
        """From a name such as ``affine_qmv_float_gs_64_b_4_batch_0``."""
        parts = _NAME.match(name)
        assert parts, name
        flags = dict(re.findall(r"_([a-zA-Z]+)_?(\d+|true|false)(?=_|$)", parts["flags"]))
        dtype, group, bits = TYPES[parts["dtype"]], int(parts["group"]), int(parts["bits"])
        form = parts["form"].replace("_nax", "")
        return cls(parts["mode"], form, dtype, group, bits, flags, form != parts["form"])

    @property
    def transposed(self) -> bool:
        """Whether the packed matrix is (n, k), with its rows along the sum."""
        return "qmv" in self.form or "_t" in self.form or self.form.endswith("_nt")

    @property
    def step(self) -> int:
        """Terms of the sum that a simdgroup of ``qmv_fast`` takes at once."""
        per_word = {3: 8, 5: 8, 6: 4}.get(self.bits, 32 // self.bits)
        return per_word * (1 if self.bits == 2 else 2) * SIMD

    def matrix(self, rng, shape) -> Packed:
        """A packed matrix of its mode."""
        if self.mode == "affine":
            return affine(rng, shape, self.dtype, self.group, self.bits)
        return small_floats(rng, shape, self.group, self.bits)

    def sizes(self) -> tuple[int, int, int]:
        """M, N and K, with edges where the form allows them."""
        group, form = self.group, self.form
        if self.nax:
            return self._nax_sizes()
        if form == "qmv_quad":
            return 2, 75, int(self.flags["d"])
        if form.endswith("qmv_fast"):
            return 2, 24, self.step
        if form == "qmv_wide":
            return 2 * int(self.flags["nv"]) + 1, 19, 2 * max(group, 64)
        if form.endswith("qmv"):
            return 2, 19, self.step + group
        if form.endswith("qvm"):
            return 2, 2 * group, 45
        if form == "qvm_split_k":
            return 2, 2 * group, 5 * int(self.flags["spk"]) - 3
        if form == "gather_qmm_rhs_nt":
            # No half tile of k: the loader would clear rows of the matrix instead of columns.
            return 37, 45, 3 * max(group, _TILE)
        if self.transposed:
            aligned = self.flags["alN"] == "true"
            return 37, 2 * _TILE if aligned else 45, 2 * max(group, _TILE)
        return 37, max(2 * group, _TILE), 45

    def _nax_sizes(self) -> tuple[int, int, int]:
        """Whole tiles of K, and of N where rows of the matrix lie along it."""
        m, k = int(self.flags["bm"]) + 5, max(self.group, _NAX_TILE)
        aligned = not self.transposed or self.flags.get("alN") == "true"
        return m, max(2 * _NAX_TILE, self.group) if aligned else _NAX_TILE + 13, k

    def groups(self, m: int, n: int) -> tuple[tuple[int, int], tuple[int, int, int]]:
        """Threadgroups along x and y, and their size."""
        form, flags = self.form, self.flags
        if form.startswith("gather_qmm_rhs") or self.nax:
            bm, bn, wm, wn = (int(flags[key]) for key in ("bm", "bn", "wm", "wn"))
            return (ceildiv(n, bn), ceildiv(m, bm)), (SIMD, wn, wm)
        if "qmm" in form:
            return (ceildiv(n, _TILE), ceildiv(m, _TILE)), (SIMD, 2, 2)
        if form == "qmv_quad":
            return (m, ceildiv(n, 64)), (SIMD, 1, 1)
        if form == "qmv_wide":
            rows = SIMD // int(flags["kl"]) * 2
            return (ceildiv(m, int(flags["nv"])), ceildiv(n, rows)), (SIMD, 2, 1)
        columns = 2 * min(self.group, SIMD) if "qvm" in form else 2 * int(flags.get("r", 4))
        return (m, ceildiv(n, columns)), (SIMD, 2, 1)


def arguments(x: np.ndarray, w: Packed, m: int, n: int, k: int) -> dict[str, object]:
    """Arguments that any of the kernels may need."""
    facts: dict[str, object] = {
        "w": w.words, "scales": w.scales, "x": x, "M": m, "N": n, "K": k, "in_vec_size": k,
        "out_vec_size": n, "x_batch_ndims": x.ndim - 2, "x_shape": x.shape,
        "x_strides": element_strides(x), "w_batch_ndims": w.words.ndim - 2,
        "w_shape": w.words.shape, "w_strides": element_strides(w.words),
        "s_strides": element_strides(w.scales), "global_scale": np.float32(GLOBAL_SCALE),
    }  # fmt: skip
    if w.biases is not None:
        facts |= {"biases": w.biases, "b_strides": element_strides(w.biases)}
    return facts


def launch(kernel: mtl.Kernel, entry: Entry, depth: int, facts: dict[str, object]) -> None:
    """Run with those of the `facts` that the kernel has parameters for."""
    (across, down), group_size = entry.groups(facts["M"], facts["N"])  # type: ignore[arg-type]
    names = {parameter.name for parameter in kernel.signature.buffers}
    used = {name: value for name, value in facts.items() if name in names}
    # Simdgroups at an edge of a NAX kernel's tile have barriers of their own.
    with mtl.config.scope(strict_barriers=not entry.nax):
        dispatch(kernel, (across, down, depth), group_size, **used)


def assert_product(out, x, entry: Entry, matrix, factor=1.0) -> None:
    """Compare with ``factor * x @ exact`` for the (exact, scaled, added) of a packed matrix."""
    x = factor * exactly(x)
    if entry.transposed:
        matrix = [np.swapaxes(chunk, -1, -2) for chunk in matrix]
    exact, scaled, added = matrix
    error = product_error(np.abs(x) @ (scaled + added), x.shape[-1] + 4)
    if "qmv" in entry.form:
        # Biases are multiplied by sums of x, whose first few additions are made in its own type.
        additions = {3: 7, 5: 7, 8: 0}.get(entry.bits, 3)
        error += sum_error((np.abs(x) @ added)[None], additions, entry.dtype, axis=0)
    assert_rounded(out, x @ exact, error)


def _factor(kernel: mtl.Kernel, name: str) -> float:
    """Some entries are declared to have a global scale, and have no parameter for it."""
    has = any(parameter.name == "global_scale" for parameter in kernel.signature.buffers)
    return GLOBAL_FACTOR if has and name.endswith("_hgs") else 1.0


def check_batch(library, name: str, entry: Entry, rng) -> None:
    """One product, or a batch of two axes."""
    kernel, (m, n, k) = library.function(name), entry.sizes()
    if entry.form == "qmv_quad" and entry.bits & (entry.bits - 1):
        raise Unchecked("MLX launches it for powers of two only: other codes straddle words")
    if entry.form == "qmv_quad" and k < entry.group:
        raise Unchecked(f"MLX cannot launch it: {k} columns hold no group of {entry.group}")
    batch = (2, 2) if entry.flags.get("batch") == "1" else ()
    x = operand(rng, (*batch, m, k), entry.dtype)
    w = entry.matrix(rng, (*batch, *((n, k) if entry.transposed else (k, n))))
    out = poisoned((*batch, m, n), entry.dtype)
    launch(kernel, entry, int(np.prod(batch)), arguments(x, w, m, n, k) | {"y": out})
    assert_product(out, x, entry, w.at(...), _factor(kernel, name))


def check_gather(library, name: str, entry: Entry, rng) -> None:
    """Products of pairs chosen by indices."""
    kernel, (m, n, k) = library.function(name), entry.sizes()
    x = operand(rng, (3, m, k), entry.dtype)
    w = entry.matrix(rng, (4, *((n, k) if entry.transposed else (k, n))))
    left, right = np.array([2, 0, 2], np.uint32), np.array([3, 1, 0], np.uint32)
    out = poisoned((3, m, n), entry.dtype)
    gathering = {
        "lhs_indices": left, "rhs_indices": right, "batch_ndims": 1, "batch_shape": [3],
        "lhs_strides": [1], "rhs_strides": [1], "y": out,
    }  # fmt: skip
    launch(kernel, entry, 3, arguments(x, w, m, n, k) | gathering)
    assert_product(out, x[left], entry, w.at(right), _factor(kernel, name))


def check_gather_rows(library, name: str, entry: Entry, rng) -> None:
    """Each row times the matrix that its index says; the indices ascend."""
    m, n, k = entry.sizes()
    bm, bn, bk = (int(entry.flags[key]) for key in ("bm", "bn", "bk"))
    constants = {"align_M": m % bm == 0, "align_N": n % bn == 0, "align_K": k % bk == 0}
    x = operand(rng, (m, k), entry.dtype)
    w = entry.matrix(rng, (3, *((n, k) if entry.transposed else (k, n))))
    indices = np.sort(rng.integers(0, 3, m)).astype(np.uint32)
    out = poisoned((m, n), entry.dtype)
    facts = arguments(x, w, m, n, k) | {"y": out, "indices": indices}
    launch(library.function(name, constants), entry, 1, facts)
    for index in range(3):
        rows = indices == index
        assert_product(out[rows], x[rows], entry, w.at(index))


def check_split(library, name: str, entry: Entry, rng) -> None:
    """Sums over parts of the inner axis; the last part may be shorter."""
    m, n, k = entry.sizes()
    parts = int(entry.flags.get("spk", 2))
    size = ceildiv(k, parts)
    x = operand(rng, (m, k), entry.dtype)
    w = entry.matrix(rng, (n, k) if entry.transposed else (k, n))
    out = poisoned((parts, m, n), entry.dtype)
    facts = arguments(x, w, m, n, k) | {"y": out}
    if entry.transposed:
        facts |= {"k_partition_size": size, "split_k_partition_stride": m * n}
    else:
        # The parts are one more axis of a batch.
        facts |= {
            "in_vec_size": size, "final_block_size": k - (parts - 1) * size, "x_batch_ndims": 1,
            "x_shape": [parts, m, size], "x_strides": [size, k, 1], "w_batch_ndims": 1,
            "w_shape": [parts, size, w.words.shape[1]],
            "w_strides": [size * w.words.shape[1], w.words.shape[1], 1],
            "s_strides": [size * w.scales.shape[1], w.scales.shape[1], 1],
            "b_strides": [size * w.scales.shape[1], w.scales.shape[1], 1],
        }  # fmt: skip
    launch(library.function(name), entry, parts, facts)
    for chunk, start in zip(out, range(0, k, size), strict=True):
        span = slice(start, start + size)
        rows = (slice(None), span) if entry.transposed else (span, slice(None))
        assert_product(chunk, x[:, span], entry, w.at(rows))


def check_entry(library: mtl.Library, name: str, entry: Entry, rng) -> None:
    """Check the kernel `name`, which is what `entry` says."""
    if "split" in entry.form:
        check_split(library, name, entry, rng)
    elif entry.form.startswith("gather_qmm_rhs"):
        check_gather_rows(library, name, entry, rng)
    elif entry.form.startswith("gather"):
        check_gather(library, name, entry, rng)
    else:
        check_batch(library, name, entry, rng)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    check_entry(library, name, Entry.parse(name), rng)


def _is_product(name: str) -> bool:
    return "quantize" not in name


FAMILIES = (
    Family("quantized", ("quantized.metal",), check, _is_product),
    Family("fp quantized", ("fp_quantized.metal",), check, _is_product),
    Family("nax quantized", ("quantized_nax.metal",), check),
    Family("nax fp quantized", ("fp_quantized_nax.metal",), check),
)
