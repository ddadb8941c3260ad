"""Flash attention: many queries by matrices of a simdgroup, few by vectors and a last reduction."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from mlx_tree.agreement import FLOAT, Unchecked, assert_within, ceildiv, roundoff

from ggml_tree.formats import FORMATS
from ggml_tree.operands import FLOATS, TYPES, Operand, operand
from ggml_tree.source import Source, extents, run

_MANY = re.compile(rf"kernel_flash_attn_ext_({TYPES})_dk(\d+)_dv(\d+)$")
_FEW = re.compile(rf"kernel_flash_attn_ext_vec_({TYPES})_dk(\d+)_dv(\d+)$")
_REDUCE = re.compile(r"kernel_flash_attn_ext_vec_reduce$")
_KEYS_AS_HALF = re.compile(rf"kernel_flash_attn_ext_kv_({TYPES})_f16$")
_PADDING = re.compile(r"kernel_flash_attn_ext_pad$")
_BLOCKS = re.compile(r"kernel_flash_attn_ext_blk$")

_U, _HALF = roundoff(FLOAT), roundoff(np.float16)
_HEADS, _BATCH, _KEYS = 2, 2, 128
_QUERIES_PER_GROUP, _KEYS_PER_STEP = 8, 64
_CAP = 4.0


@dataclass
class _Problem:
    """Operands, what each head may see, and ``softmax(cap(q k) + mask, sinks) v`` in float64."""

    q: np.ndarray
    k: Operand
    v: Operand
    mask: np.ndarray
    sinks: np.ndarray
    scale: float
    exact: np.ndarray
    error: np.ndarray

    @classmethod
    def random(cls, rng, source: Source, type_: str, widths, queries: int, features: bool):
        dk, dv = widths
        q = operand("f32", (_BATCH, _HEADS, queries, dk), rng, source)
        k = operand(type_, (_BATCH, 1, _KEYS, dk), rng, source)
        v = operand(type_, (_BATCH, 1, _KEYS, dv), rng, source)
        mask = rng.integers(-4, 1, (1, 1, ceildiv(queries, 8) * 8, _KEYS)).astype(np.float16)
        mask[..., 3::5] = -np.inf
        mask[..., _KEYS_PER_STEP:] = -np.inf if queries % 2 else 0  # blocks that may be left out
        sinks = rng.normal(size=_HEADS).astype(np.float32)
        scale = float(np.float32(dk**-0.5))
        z = scale * q.values @ k.values.swapaxes(-1, -2)
        inexact = type_ in FORMATS
        in_z = ((dk + 16) * _U + 2 * _HALF * inexact) * (
            scale * q.magnitudes @ k.magnitudes.swapaxes(-1, -2)
        )
        top = np.full((1, _HEADS, 1, 1), -np.inf)
        if features:
            z = _CAP * np.tanh(z / _CAP) + mask[..., :queries, :].astype(np.float64)
            in_z = in_z + 16 * _U * _CAP
            top = sinks.astype(np.float64).reshape(1, _HEADS, 1, 1)
        largest = np.maximum(z.max(-1, keepdims=True), top)
        weights = np.exp(z - largest)
        weights /= weights.sum(-1, keepdims=True) + np.exp(top - largest)
        # bfloat's kernels add up their results as halves.
        sums = 2 * _KEYS * _U + (4 * _HALF if inexact else 16 * _HALF * (type_ == "bf16"))
        relative = 2 * in_z.max(-1, keepdims=True) + 16 * _U * np.abs(largest) + sums
        return cls(
            q.stored, k, v, mask, sinks, scale / _CAP if features else scale,
            weights @ v.values, (weights @ v.magnitudes) * relative,
        )  # fmt: skip

    def arguments(self, source: Source, struct: str, features: bool) -> np.ndarray:
        """The kernels' arguments; `features` are the mask, the sinks and the cap."""
        k, v = self.k.stored, self.v.stored
        return source.arguments(
            struct, **extents(self.q, "0"), **extents(k, "1"), **extents(v, "2"),
            **extents(self.mask, "3"), ne_12_2=1, ne_12_3=_BATCH, ns10=k.shape[-1],
            ns20=v.shape[-1], ne1=_HEADS, ne2=self.q.shape[2], ne3=_BATCH, scale=self.scale,
            max_bias=0, m0=0, m1=0, n_head_log2=1, logit_softcap=_CAP if features else 0,
        )  # fmt: skip

    def constants(self, prefix: str, features: bool, **more: int) -> dict[str, object]:
        """The function constants that both kernels have."""
        names = {"has_mask": features, "has_sinks": features, "has_scap": features}
        names |= {"has_bias": False, "has_kvpad": False}
        names |= {"ns10": self.k.stored.shape[-1], "ns20": self.v.stored.shape[-1], **more}
        return {f"{prefix}_{name}": value for name, value in names.items()}

    def output(self) -> np.ndarray:
        """Room for the result: heads are within queries."""
        batch, heads, queries, width = self.exact.shape
        return np.full((batch, queries, heads, width), np.nan, np.float32)

    def compare(self, out: np.ndarray) -> None:
        assert_within(out.swapaxes(1, 2), self.exact, self.error)


def _unmasked_blocks(source, library, mask, queries):
    """For each block of queries and keys: all masked (0), some (1), or none and all zero (2)."""
    across, down = ceildiv(_KEYS, _KEYS_PER_STEP), ceildiv(queries, _QUERIES_PER_GROUP)
    blocks = np.full((down, across), 9, np.uint8)
    kernel = library.function(
        "kernel_flash_attn_ext_blk",
        {
            "FC_flash_attn_ext_blk_nqptg": _QUERIES_PER_GROUP,
            "FC_flash_attn_ext_blk_ncpsg": _KEYS_PER_STEP,
        },
    )
    arguments = source.arguments("flash_attn_ext_blk", **extents(mask, "3"), ne01=queries)
    run(kernel, (arguments, mask, blocks), (across, down, 1), (32,))
    return blocks


def check_blocks(source, library, name, rng):
    mask = np.full((1, 1, 24, _KEYS), -np.inf, np.float16)
    mask[..., :8, :64] = 0
    mask[..., 8:16, 64:] = rng.normal(size=(8, 64)).astype(np.float16)
    blocks = _unmasked_blocks(source, library, mask, 20)
    assert blocks.tolist() == [[2, 0], [0, 1], [0, 0]]


def check_keys_as_half(source, library, name, rng):
    """Quantised keys or values of a permuted view, as halves."""
    left = operand(_KEYS_AS_HALF.match(name)[1], (2, 5, 3, 64), rng, source)
    view = left.stored.transpose(0, 2, 1, 3)
    out = np.full((2, 3, 5, 64), np.nan, np.float16)
    count = view.size
    arguments = source.arguments("flash_attn_ext_kv_f16", **extents(view, "", 64), nblocks=count)
    run(library.function(name), (arguments, left.stored, out), (ceildiv(count, 32),), (32,))
    exact, size = (a.transpose(0, 2, 1, 3) for a in (left.values, left.magnitudes))
    assert_within(out, exact, (8 * _U + 1.01 * _HALF) * size)


def check_padding(source, library, name, rng):
    """The last keys, values and columns of the mask, filled up to a whole step."""
    keys, step = 100, _KEYS_PER_STEP
    rest = keys % step
    k, v = (rng.normal(size=(2, 3, keys, n)).astype(np.float16) for n in (40, 24))
    mask = rng.normal(size=(2, 1, 10, keys)).astype(np.float16)
    shapes = [(2, 3, step, 40), (2, 3, step, 24), (2, 1, 10, step)]
    starts = np.cumsum([0, *map(np.prod, shapes)])
    out = np.full(starts[-1], np.nan, np.float16)
    sizes = extents(k, "1") | extents(v, "2") | extents(mask, "3")
    arguments = source.arguments("flash_attn_ext_pad", **sizes, ne_12_2=3, ne_12_3=2)
    kernel = library.function(
        name,
        {"FC_flash_attn_ext_pad_has_mask": True, "FC_flash_attn_ext_pad_ncpsg": step},
    )
    run(kernel, (arguments, k, v, mask, out), (step, 3, 2), (32,))
    expected = [np.zeros(shape, np.float16) for shape in shapes]
    expected[2][:] = -np.finfo(np.float16).max
    for array, source_array in zip(expected[:2], (k, v), strict=True):
        array[:, :, :rest] = source_array[:, :, keys - rest :]
    expected[2][..., :rest] = mask[..., keys - rest :]
    for start, array in zip(starts, expected, strict=False):
        np.testing.assert_array_equal(out[start : start + array.size].reshape(array.shape), array)


def _pad(number: int, multiple: int) -> int:
    return ceildiv(number, multiple) * multiple


def check_many(source, library, name, rng):
    type_, *widths = _MANY.match(name).groups()
    dk, dv = map(int, widths)
    if type_ in FORMATS and (dk % FORMATS[type_].width or dv % FORMATS[type_].width):
        raise Unchecked(f"no row of {dk} elements is made of blocks of {FORMATS[type_].width}")
    simdgroups = 8 if dk >= 512 and type_ in FLOATS else 4
    halves = _QUERIES_PER_GROUP * (dk + 2 * _pad(dv, 64) + 4 * _KEYS_PER_STEP)
    halves += 16 * 32 * simdgroups * (type_ not in FLOATS)
    if 2 * halves > 32768:
        raise Unchecked("it expects more threadgroup memory than there is on any device")
    for features in (True, False) if dk == 64 else (True,):
        problem = _Problem.random(rng, source, type_, (dk, dv), 20, features)
        blocks = _unmasked_blocks(source, library, problem.mask, 20)
        kernel = library.function(
            name,
            problem.constants("FC_flash_attn_ext", features, bc_mask=False, nsg=simdgroups),
        )
        out = problem.output()
        memory = (
            problem.arguments(source, "flash_attn_ext", features), problem.q, problem.k.buffer(),
            problem.v.buffer(), problem.mask, problem.sinks, np.zeros(16, np.uint8), blocks, out,
        )  # fmt: skip
        run(kernel, memory, (3, _HEADS, _BATCH), (32, simdgroups), _pad(2 * halves, 16))
        problem.compare(out)


def _few(source, library, name, rng, features, groups, simdgroups):
    """Run a kernel of few queries; its results, or those of each of `groups` threadgroups."""
    type_, *widths = _FEW.match(name).groups()
    dk, dv = map(int, widths)
    problem = _Problem.random(rng, source, type_, (dk, dv), 3, features)
    kernel = library.function(
        name, problem.constants("FC_flash_attn_ext_vec", features, nsg=simdgroups, nwg=groups)
    )
    halves = (_pad(dk, 128) + 4 * 32 + 2 * _pad(dv, 128)) * simdgroups
    # The host's own size is too small for some widths: all lanes clear what only eight of them use.
    halves += 2 * (4 * 32 + dv)
    out = (
        problem.output()
        if groups == 1
        else np.zeros(3 * _HEADS * _BATCH * (dv + 2) * groups, FLOAT)
    )
    memory = (
        problem.arguments(source, "flash_attn_ext_vec", features), problem.q, problem.k.buffer(),
        problem.v.buffer(), problem.mask, problem.sinks, np.zeros(16, np.uint8), out,
    )  # fmt: skip
    run(kernel, memory, (3, _HEADS, _BATCH * groups), (32, simdgroups), _pad(2 * halves, 16))
    return problem, out


def check_few(source, library, name, rng):
    # Several simdgroups would join their results with reads and writes of the same threadgroup
    # memory that no barrier parts: right where the threads of a simdgroup run in lockstep only.
    for features in (True, False) if "_dk64_" in name else (True,):
        problem, out = _few(source, library, name, rng, features, 1, 1)
        problem.compare(out)


def check_reduce(source, library, name, rng):
    """The keys are shared out among 32 threadgroups, whose results are joined."""
    problem, parts = _few(
        source, library, "kernel_flash_attn_ext_vec_f16_dk64_dv64", rng, True, 32, 1
    )
    out = problem.output()
    kernel = library.function(
        name, {"FC_flash_attn_ext_vec_reduce_DV": 64, "FC_flash_attn_ext_vec_reduce_NWG": 32}
    )
    rows = 3 * _HEADS * _BATCH
    arguments = source.arguments("flash_attn_ext_vec_reduce", nrows=rows)
    run(kernel, (arguments, parts, out), (rows,), (32 * 32,))
    problem.compare(out)


FAMILIES = (
    ("attention of many queries", check_many, _MANY),
    ("attention of few queries", check_few, _FEW),
    ("attention, joined", check_reduce, _REDUCE),
    ("attention, keys as half", check_keys_as_half, _KEYS_AS_HALF),
    ("attention, padding", check_padding, _PADDING),
    ("attention, masked blocks", check_blocks, _BLOCKS),
)
