"""The results of the runtime's simdgroup functions, by NumPy.

Each function takes the values of one simdgroup (32), which lanes are active, and the width within
which lanes exchange (32 or 4), and returns what every lane gets; inactive lanes are meaningless.
"""

import numpy as np

LANES = np.arange(32)


def _reduce(combine, neutral, values, active, width):
    t = np.where(active, values, neutral).astype(values.dtype).reshape(-1, width)
    while t.shape[1] > 1:
        half = t.shape[1] // 2
        t = combine(t[:, :half], t[:, half:])
    return np.repeat(t[:, 0], width)


def _inclusive(combine, neutral, values, active, width):
    t = np.where(active, values, neutral).astype(values.dtype).reshape(-1, width)
    distance = 1
    while distance < width:
        t[:, distance:] = combine(t[:, :-distance], t[:, distance:])
        distance *= 2
    return t.reshape(-1)


def _exclusive(combine, neutral, values, active, width):
    start = values.dtype.type(combine.identity)
    shifted = np.roll(_inclusive(combine, neutral, values, active, width), 1)
    return np.where(LANES % width == 0, start, combine(start, shifted))


def arithmetic(name, values, active, width):
    """Reductions and prefixes of numbers."""
    floating = values.dtype.kind == "f"
    limits = None if floating else np.iinfo(values.dtype)
    kind = name.rsplit("_", 1)[-1]
    combine, neutral = {
        "sum": (np.add, -0.0 if floating else 0),
        "product": (np.multiply, 1),
        "min": (np.fmin, np.nan if floating else limits.max),
        "max": (np.fmax, np.nan if floating else limits.min),
    }[kind]
    fold = {"prefix_inclusive": _inclusive, "prefix_exclusive": _exclusive}.get(
        name.removesuffix(f"_{kind}"), _reduce
    )
    return fold(combine, neutral, values, active, width)


def bitwise(name, values, active, width):
    """Reductions of bit patterns."""
    combine = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    neutral = np.iinfo(values.dtype).max if name == "and" else 0
    return _reduce(combine, neutral, values, active, width)


def shuffle(name, values, active, width, operand):
    """Each lane reads the lane that `operand` says: 0 if that is inactive, itself out of range."""
    here = LANES % width
    source = {
        "shuffle": operand,
        "broadcast": operand,
        "shuffle_xor": here ^ operand,
        "shuffle_up": here - operand,
        "shuffle_down": here + operand,
        "shuffle_rotate_up": (here - operand) % width,
        "shuffle_rotate_down": (here + operand) % width,
    }[name]
    inside = (source >= 0) & (source < width)
    lane = LANES - here + np.where(inside, source, here)
    return np.where(active, values, 0)[lane]


def shuffle_and_fill(name, values, filling, active, delta, modulo):
    """Shift within vectors of `modulo` lanes; the filling comes in at the open end."""
    here = LANES % modulo
    source = here - delta if name.endswith("up") else here + delta
    lane = LANES - here + source % modulo
    values, filling = (np.where(active, of, 0) for of in (values, filling))
    return np.where((source >= 0) & (source < modulo), values[lane], filling[lane])


def broadcast_first(values, active, width):
    """The value of the lowest active lane."""
    first = [np.flatnonzero(active[base : base + width]) for base in range(0, 32, width)]
    lanes = [base + (f[0] if len(f) else 0) for base, f in zip(LANES[::width], first, strict=True)]
    return np.repeat(values[lanes], width)


def ballot(values, active, width):
    """One bit for each active lane whose value is odd."""
    bits = (active & (values & 1).astype(bool)).reshape(-1, width) @ (1 << LANES[:width])
    return np.repeat(bits.astype(np.uint64), width)
