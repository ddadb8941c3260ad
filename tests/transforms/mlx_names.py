"""MLX's names over this package's arrays, so far as MLX's own tests of transforms need them."""

import contextlib
import sys
import types

import numpy as np

import metalloid as mtl
from metalloid.arrays.array import Array, Update

core = types.ModuleType("mlx.core")


class _ArrayType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Array)


class array(metaclass=_ArrayType):
    def __new__(cls, value, dtype=None):
        if isinstance(value, Array):
            return value.copy() if dtype is None else value.astype(dtype)
        array = mtl.asarray(value, dtype=dtype)
        # Integers of Python are int32 in MLX.
        is_wide = dtype is None and array.dtype == mtl.int64 and not isinstance(value, np.ndarray)
        return array.astype(mtl.int32) if is_wide else array


def _shaped(function):
    def sample(*args, shape=(), dtype=mtl.float32, **options):
        shape = args[-1] if args and isinstance(args[-1], list | tuple) else shape
        low, high = options.get("low", 0), options.get("high", 1)
        if len(args) >= 2 and not isinstance(args[0], list | tuple):
            low, high = args[:2]
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        result = function(shape=shape).astype(dtype)
        return result * (high - low) + low if function is mtl.random.uniform else result

    return sample


def _reduced(name):
    return lambda x, axis=None, keepdims=False: getattr(mtl, name)(
        array(x), axis=axis, keepdims=keepdims
    )


def _eval(*trees):
    from metalloid.transforms.tree import flatten

    mtl.eval(*(leaf for leaf in flatten(list(trees))[0] if isinstance(leaf, Array)))


def _scan(name, first=None):
    function = getattr(mtl, name)

    def scan(x, axis=None, reverse=False, inclusive=True):
        if axis is None:
            x, axis = x.flatten(), 0
        x = mtl.flip(x, axis=axis) if reverse else x
        if inclusive:
            y = function(x, axis=axis)
        else:
            y = function(x, axis=axis) if first else function(x, axis=axis, include_initial=True)
            y = y[tuple(slice(0, -1) if k == axis % x.ndim else slice(None) for k in range(x.ndim))]
            if first:
                start = tuple(1 if k == axis % x.ndim else n for k, n in enumerate(x.shape))
                y = mtl.concat([mtl.full(start, first, dtype=y.dtype), y], axis=axis)
        return mtl.flip(y, axis=axis) if reverse else y

    return scan


def _softmax(x, axis=-1):
    e = mtl.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _logsumexp(x, axis=None, keepdims=False):
    top = x.max(axis=axis, keepdims=True)
    total = mtl.log(mtl.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdims else total.reshape(total.sum(axis=axis).shape)


def _allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return mtl.asarray(np.allclose(np.asarray(a), np.asarray(b), rtol, atol, equal_nan))


def _array_equal(a, b, equal_nan=False):
    a, b = array(a), array(b)
    if a.shape != b.shape:
        return mtl.asarray(False)
    equal = a == b
    return mtl.all(equal | ((a != a) & (b != b)) if equal_nan else equal)


def _of_truth_values(name):
    return lambda *arrays: getattr(mtl, name)(*(array(x) != 0 for x in arrays))


def _diag(x, k=0):
    """For diagonals that are not above the main one."""
    values = mtl.concat([x, mtl.zeros(-k, dtype=x.dtype)])
    return mtl.eye(len(values), k=k, dtype=x.dtype) * values


def _svd(x, compute_uv=True, stream=None):
    return mtl.linalg.svd(x) if compute_uv else mtl.linalg.svdvals(x)


def _take(x, indices, axis=None):
    indices = array(indices)
    return (
        mtl.take(x.flatten(), indices, axis=0) if axis is None else mtl.take(x, indices, axis=axis)
    )


def _put_along_axis(x, indices, values, axis=None):
    rank = x.ndim
    axis %= rank
    shape = tuple(indices.shape[k] if k == axis else n for k, n in enumerate(x.shape))
    indices = mtl.broadcast_to(indices, shape)
    at = tuple(
        indices if k == axis
        else mtl.broadcast_to(mtl.arange(n).reshape([-1 if j == k else 1 for j in range(rank)]), shape)
        for k, n in enumerate(x.shape)
    )  # fmt: skip
    return x.at[at].set(values)


def _flatten(x, start_axis=0, end_axis=-1):
    end = end_axis % x.ndim + 1
    return x.reshape(*x.shape[:start_axis], -1, *x.shape[end:])


class _Random(types.SimpleNamespace):
    uniform = staticmethod(_shaped(mtl.random.uniform))
    normal = staticmethod(_shaped(mtl.random.normal))
    seed = staticmethod(mtl.random.seed)
    permutation = staticmethod(mtl.random.permutation)
    state = mtl.random.state


class _Linalg(types.SimpleNamespace):
    svd = staticmethod(_svd)
    inv = staticmethod(lambda x, stream=None: mtl.linalg.inv(x))
    norm = staticmethod(
        lambda x, ord=None: (
            mtl.linalg.vector_norm(x) if ord is None else mtl.linalg.matrix_norm(x, ord=ord)
        )
    )

    def __getattr__(self, name):
        return getattr(mtl.linalg, name)


NAMES = {
    "array": array, "eval": _eval, "random": _Random(), "linalg": _Linalg(), "fft": mtl.fft,
    "allclose": _allclose, "array_equal": _array_equal, "take": _take, "softmax": _softmax,
    "logsumexp": _logsumexp, "put_along_axis": _put_along_axis, "arctan2": mtl.atan2,
    "concatenate": lambda arrays, axis=0: mtl.concat(arrays, axis=axis), "bool_": mtl.bool,
    "cumsum": _scan("cumulative_sum"), "cumprod": _scan("cumulative_prod"),
    "cummax": _scan("cummax", -np.inf), "cummin": _scan("cummin", np.inf),
    "topk": lambda x, k, axis=-1: mtl.flip(mtl.top_k(x, k, axis=axis)[0], axis=axis),
    "partition": lambda x, k, axis=-1: mtl.sort(x, axis=axis),
    "argpartition": lambda x, k, axis=-1: mtl.argsort(x, axis=axis),
    "divmod": lambda a, b: (mtl.floor_divide(a, b), mtl.remainder(a, b)),
    "addmm": lambda c, a, b, alpha=1.0, beta=1.0: beta * c + alpha * (a @ b),
    "default_device": mtl.default_device, "cpu": "cpu", "set_default_device": lambda device: None,
    "clear_streams": lambda: None, "synchronize": lambda: None,
    "stream": lambda device: contextlib.nullcontext(),
    "metal": types.SimpleNamespace(is_available=lambda: False),
    "power": mtl.pow, "rsqrt": lambda x: 1 / mtl.sqrt(x), "sigmoid": lambda x: 1 / (1 + mtl.exp(-x)),
    "degrees": lambda x: x * (180 / np.pi), "radians": lambda x: x * (np.pi / 180),
    **{name: _of_truth_values(name) for name in ("logical_not", "logical_and", "logical_or")},
    "eye": lambda n, m=None, k=0, dtype=mtl.float32: mtl.eye(n, m, k=k, dtype=dtype),
    "diag": _diag,
    "flatten": _flatten, "negative": mtl.negative,
    "full": lambda shape, value=None, dtype=None, **o: mtl.zeros(
        shape, dtype=dtype or array(o.get("vals", value)).dtype) + array(o.get("vals", value)),
    "unflatten": lambda x, axis, shape: x.reshape(
        *x.shape[:axis], *shape, *x.shape[axis % x.ndim + 1 :]),
    "ones": lambda shape, dtype=mtl.float32: mtl.ones(shape, dtype=dtype),
    "zeros": lambda shape, dtype=mtl.float32: mtl.zeros(shape, dtype=dtype),
    "split": lambda x, n, axis=0: x.split(n, axis),
    "get_active_memory": lambda: mtl.memory_info()["live_bytes"] if hasattr(mtl, "memory_info") else 0,
    **{name: _reduced(name) for name in ("sum", "mean", "max", "min", "prod", "any", "all")},
    "argmax": lambda x, axis=None, keepdims=False: mtl.argmax(x, axis=axis, keepdims=keepdims),
    "sort": lambda x, axis=-1: mtl.sort(x, axis=axis),
}  # fmt: skip


def _split(x, n, axis=0):
    axis %= x.ndim
    step = x.shape[axis] // n
    return [x[(slice(None),) * axis + (slice(k * step, k * step + step),)] for k in range(n)]


METHODS = {
    "square": lambda x: x * x, "split": _split, "exp": lambda x: mtl.exp(x),
    "abs": lambda x: mtl.abs(x), "sin": lambda x: mtl.sin(x), "cos": lambda x: mtl.cos(x),
    "moveaxis": lambda x, a, b: mtl.moveaxis(x, a, b),
}  # fmt: skip


def install():
    """Make ``import mlx.core`` find these names."""

    def missing(name):
        return getattr(mtl, name)

    core.__getattr__ = missing
    for name, value in NAMES.items():
        setattr(core, name, value)
    for name, method in METHODS.items():
        if not hasattr(Array, name):
            setattr(Array, name, method)
    Update.maximum, Update.minimum = Update.max, Update.min
    package = types.ModuleType("mlx")
    package.core = core
    sys.modules["mlx"], sys.modules["mlx.core"] = package, core
