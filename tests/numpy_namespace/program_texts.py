"""Random NumPy programs, as text, for `test_random_programs`.

Each line assigns a new variable. Lines that depend discontinuously on their operands, such as
comparisons and orders, only take variables that are exact: integers, and floats that hold small
multiples of 1/64, whose sums and products are free of rounding in any order.
"""

import warnings
from dataclasses import dataclass, field
from random import Random

import numpy

DTYPES = ("float64", "float32", "int32", "int64", "bool")
MAX_SIZE = 400
#: Elementwise functions that are continuous, and by how much they amplify errors: not at all.
SMOOTH = ("np.sin({0})", "np.cos({0})", "np.tanh({0})", "np.arctan({0})", "np.abs({0})", "-{0}",
          "np.sqrt(np.abs({0}) + 1)", "np.log1p(np.abs({0}))", "np.exp(-np.abs({0}))",
          "np.arcsinh({0})", "{0} * 0.5", "np.clip({0}, -3, 4)", "np.hypot({0}, 1.0)")  # fmt: skip
UNARY_EXACT = ("np.floor({0})", "np.sign({0})", "np.square({0})", "np.rint({0})", "np.ceil({0})",
               "np.trunc({0})", "{0} * 2", "{0} + 1", "np.isfinite({0})")  # fmt: skip
INTEGER = ("{0} // {2}", "{0} % {2}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "~{0}", "{0} << 2",
           "{0} >> 1")  # fmt: skip
BINARY = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "np.maximum({0}, {1})", "np.minimum({0}, {1})",
          "{0} / (np.abs({1}) + 1)")  # fmt: skip
COMPARE = ("{0} < {1}", "{0} >= {1}", "{0} == {1}", "{0} != {1}", "np.logical_and({0}, {1})",
           "np.logical_xor({0}, {1})")  # fmt: skip
REDUCE = ("sum", "mean", "max", "min", "var", "std")
REDUCE_EXACT = ("argmax", "argmin", "any", "all", "count_nonzero", "median", "ptp", "prod")


def is_exact(value):
    """Whether arithmetic with the values of an array is free of rounding."""
    if value.dtype.kind in "biu":
        return True
    scaled = value.astype(numpy.float64) * 64
    limit = 2.0**12 if value.dtype.itemsize == 4 else 2.0**24
    return bool(numpy.all(numpy.abs(scaled) < limit) and numpy.all(scaled == numpy.rint(scaled)))


@dataclass
class Program:
    """Lines, and the values of the variables that they assign, by NumPy."""

    lines: list = field(default_factory=list)
    values: dict = field(default_factory=dict)

    def add(self, text):
        """Append a line that assigns an expression; not one that NumPy refuses, or large results."""
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                value = numpy.asarray(eval(text, {"np": numpy}, dict(self.values)))
            except (TypeError, ValueError, IndexError):
                return False
        is_large = value.dtype.kind == "f" and not numpy.all(numpy.abs(value) < 1e4)
        if value.size > MAX_SIZE or value.dtype.name not in DTYPES or is_large:
            return False
        name = f"v{len(self.values)}"
        self.lines.append(f"{name} = {text}")
        self.values[name] = value
        return True

    def names(self, condition=lambda value: True):
        """The variables with a property."""
        return [name for name, value in self.values.items() if condition(value)]


def _source(random):
    shape = tuple(random.choice((1, 2, 3, 5, 8, 17)) for _ in range(random.randint(1, 3)))
    while numpy.prod(shape) > MAX_SIZE:
        shape = shape[1:]
    count = int(numpy.prod(shape))
    step, shift = random.choice((3, 5, 7)), random.randint(0, 9)
    numbers = f"(np.arange({count}) * {step} + {shift}) % 13 - 5"
    dtype = random.choice(DTYPES)
    scale = " / 4" if dtype.startswith("float") else " > 0" if dtype == "bool" else ""
    return f"(({numbers}){scale}).astype(np.{dtype}).reshape({shape})"


def _axis(random, value, is_optional=True):
    axes = [*range(-value.ndim, value.ndim)] + [None] * is_optional
    return random.choice(axes) if axes else None


def _indexed(random, program, name):
    value = program.values[name]
    if value.ndim == 0:
        return f"{name}[None]"
    form = random.randrange(6)
    masks = program.names(lambda v: v.dtype == bool and v.shape == value.shape[: v.ndim] and v.ndim)
    if form == 0 and masks:
        return f"{name}[{random.choice(masks)}]"
    if form == 1 and value.size:
        rows = [random.randrange(-value.shape[0], value.shape[0]) for _ in range(4)]
        return f"{name}[np.array({rows})]"
    if form == 2 and value.size:
        return f"np.take({name}, [0, -1], axis={_axis(random, value, False)})"
    items = []
    for extent in value.shape[: random.randint(1, value.ndim)]:
        if not extent:
            items.append(":")
            continue
        start, step = random.randrange(extent), random.choice((1, 1, 2, -1))
        items.append(random.choice((f"{start}", f"{start}::{step}", f"::{step}", ":", "...")))
    while items.count("...") > 1:
        items.remove("...")
    return f"{name}[{', '.join(items)}]"


def _moved(random, value, name):
    size = value.size
    factors = [f for f in (1, 2, 3, 4, 5) if f <= size and size % f == 0] or [1]
    along = _axis(random, value)
    return random.choice((
        f"{name}.reshape({random.choice(factors)}, -1)", f"{name}.T", f"{name}.ravel()",
        f"np.flip({name}, {along})", f"np.roll({name}, {random.randint(-3, 3)}, {along})",
        f"np.expand_dims({name}, 0)", f"np.squeeze({name})", f"np.repeat({name}, 2, {along})",
        f"np.concatenate([{name}, {name}], {_axis(random, value, False)})",
        f"np.stack([{name}, {name}], -1)", f"np.tile({name}, 2)", f"np.pad({name}, 1)",
        f"np.broadcast_to({name}, (2, *{name}.shape))", f"np.moveaxis({name}, 0, -1)",
    ))  # fmt: skip


def _expression(random, program):
    """The text of a random expression of the variables."""
    every, exact = program.names(), program.names(is_exact)
    name = random.choice(every)
    value = program.values[name]
    other = random.choice(every)
    one = random.choice(exact) if exact else name
    two = random.choice(exact) if exact else name
    own = program.values[one]
    form = random.randrange(14)
    if form <= 1:
        return random.choice(SMOOTH).format(name)
    if form <= 3:
        return random.choice(BINARY).format(name, other)
    if form == 4:
        function, keepdims = random.choice(REDUCE), random.choice((True, False))
        return f"np.{function}({name}, axis={_axis(random, value)}, keepdims={keepdims})"
    if form == 5:
        return _indexed(random, program, name)
    if form == 6:
        return _moved(random, value, name)
    if form == 7:
        return f"np.cumsum({name}, axis={_axis(random, value)})"
    if form == 8 and exact:
        return f"np.where({random.choice(COMPARE).format(one, two)}, {name}, {other})"
    if form == 9 and exact:
        function = random.choice(("np.sort({0}, {1})", "np.argsort({0}, {1}, kind='stable')",
                                  "np.unique({0})", "np.diff({0}, axis={1})",
                                  "np.searchsorted(np.sort({0}, None), {0})", "np.nonzero({0})[0]"))  # fmt: skip
        return function.format(one, _axis(random, own, False))
    if form == 10 and exact:
        return random.choice(COMPARE + UNARY_EXACT).format(one, two)
    if form == 11 and exact:
        return f"{one}.astype(np.{random.choice(DTYPES)})"
    if form == 12:
        integers = program.names(lambda v: v.dtype.kind in "bi")
        if integers:
            one, two = random.choice(integers), random.choice(integers)
            return random.choice(INTEGER).format(one, two, random.choice((2, 3, -4, 7)))
    if form == 13 and exact:
        return f"np.{random.choice(REDUCE_EXACT)}({one}, axis={_axis(random, own)})"
    return f"{name} + {other}"


def write_program(seed, min_lines=5, max_lines=40):
    """Return a random `Program`."""
    random = Random(seed)
    program = Program()
    count = random.randint(min_lines, max_lines)
    for _ in range(random.randint(2, 4)):
        program.add(_source(random))
    attempts = 0
    while len(program.lines) < count and attempts < 50 * max_lines:
        program.add(_expression(random, program))
        attempts += 1
    return program
