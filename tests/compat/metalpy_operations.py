"""The operations of MetalPy but `gather`: arguments, and the same in NumPy's float64."""

import numpy as np
from scipy import special

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.99, 0.99, 100_003).astype(np.float32)
Y = RNG.uniform(0.5, 90, 100_003).astype(np.float32)
ROWS, COLS, INNER = 120, 170, 9
A = RNG.normal(size=(ROWS, COLS)).astype(np.float32)
B = RNG.normal(size=(ROWS, COLS)).astype(np.float32)
LEFT = RNG.normal(size=(ROWS, INNER)).astype(np.float32)
RIGHT = RNG.normal(size=(INNER, COLS)).astype(np.float32)
SIZES = {"rows": ROWS, "cols": COLS}


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


#: Operation: arguments that are arrays, the others, and the same in NumPy.
OPERATIONS = {
    "add": ((X, Y), {}, np.add), "sub": ((X, Y), {}, np.subtract),
    "multiply": ((X, Y), {}, np.multiply), "divide": ((X, Y), {}, np.divide),
    "atan2": ((X, Y), {}, np.arctan2),
    "negate": ((X,), {}, np.negative), "abs": ((X,), {}, np.abs), "square": ((X,), {}, np.square),
    "sqrt": ((Y,), {}, np.sqrt), "exp": ((X,), {}, np.exp), "log": ((Y,), {}, np.log),
    "sin": ((Y,), {}, np.sin), "cos": ((Y,), {}, np.cos), "tan": ((X,), {}, np.tan),
    "asin": ((X,), {}, np.arcsin), "floor": ((Y,), {}, np.floor), "ceil": ((Y,), {}, np.ceil),
    "sign": ((X,), {}, np.sign), "round": ((Y,), {}, np.round), "relu": ((X,), {}, lambda x: np.maximum(x, 0)),
    "sigmoid": ((Y,), {}, special.expit), "tanh": ((X,), {}, np.tanh),
    "softplus": ((X,), {}, lambda x: np.log1p(np.exp(x))),
    "swish": ((X,), {}, lambda x: x * special.expit(x)), "gelu": ((X,), {}, gelu),
    "pow": ((Y,), {"b": 3}, lambda y, b: y**b),
    "leaky_relu": ((X,), {"alpha": 0.2}, lambda x, alpha: np.where(x > 0, x, alpha * x)),
    "clip": ((X,), {"low": -0.5, "high": 0.25}, lambda x, low, high: np.clip(x, low, high)),
    "broadcast_add": ((X, Y[:7]), {}, lambda x, y: x + np.resize(y, x.shape)),
    "broadcast_multiply": ((X, Y[:7]), {}, lambda x, y: x * np.resize(y, x.shape)),
    "sum": ((Y,), {}, np.sum), "product": ((Y[:15],), {}, np.prod), "max": ((X,), {}, np.max),
    "min": ((X,), {}, np.min), "mean": ((Y,), {}, np.mean),
    "argmax": ((X,), {}, lambda x: (np.argmax(x), x.max())),
    "argmin": ((X,), {}, lambda x: (np.argmin(x), x.min())),
    "hadamard": ((A, B), SIZES, lambda a, b, rows, cols: a * b),
    "row_sum": ((A,), SIZES, lambda a, rows, cols: a.sum(axis=1)),
    "col_sum": ((A,), SIZES, lambda a, rows, cols: a.sum(axis=0)),
    "row_scale": ((A, Y[:ROWS]), SIZES, lambda a, s, rows, cols: a * s[:, None]),
    "col_scale": ((A, Y[:COLS]), SIZES, lambda a, s, rows, cols: a * s),
    "transpose": ((A,), SIZES, lambda a, rows, cols: a.T),
    "matmul": ((LEFT, RIGHT), {"M": ROWS, "N": COLS, "K": INNER}, lambda a, b, **sizes: a @ b),
    "slice": ((X,), {"start": 10, "end": 20}, lambda x, start, end: x[start:end]),
}  # fmt: skip
