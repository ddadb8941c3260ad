"""Random calls of the functions of NumPy, as text, for `test_random_numpy_calls`.

`SIGNATURES` has the arguments of each function. In braces are random arrays and other values:

* arrays: `r` of real numbers, `z` of real or complex ones, `n` of numbers that are not bool, `f` of floats, `i` of
  integers, `b` of bool, `o` of floats from 0 to 1; `rv`, `fv`, `iv` along one axis; `rm` matrices, `sq` square ones;
* arrays like the last one: `y` that broadcasts with it, `s` of its shape, `mask` of its shape, `along` integers
  that index its first axis;
* `axis` of the last array or None, `one` axis, `bool`, `k` from -2 to 2, `p` from 1 to 4, `dtype`, `real` numbers.
"""

from random import Random

import numpy

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64")
FLOATS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
INTEGERS = ("int8", "uint8", "int32", "int64")
KINDS = {"r": DTYPES, "z": DTYPES + COMPLEX, "n": DTYPES[1:], "f": FLOATS, "i": INTEGERS,
         "b": ("bool",), "o": FLOATS}  # fmt: skip

_ALIKE = {
    "{z}": "absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh conj "
    "conjugate cos cosh exp expm1 exp2 isfinite isinf isnan log log10 log1p log2 logical_not ones_like "
    "positive_of real imag angle rint sign sin sinh sqrt square tan tanh zeros_like isreal "
    "iscomplex abs argwhere flatnonzero nonzero ravel shape size ndim copy array asarray asanyarray "
    "ascontiguousarray atleast_1d atleast_2d atleast_3d iscomplexobj isrealobj fliplr_of matrix_transpose_of "
    "sort_complex real_if_close transpose squeeze unique nan_to_num astype_of isscalar typename_of "
    "asarray_chkfinite_of asfortranarray array_repr array_str array2string common_type_of min_scalar_type",
    "{r}": "ceil floor trunc fix signbit deg2rad degrees rad2deg radians cbrt fabs "
    "isneginf isposinf sinc i0_of unique_counts unique_values unique_inverse unique_all modf frexp spacing",
    "{n}": "negative positive reciprocal_of",
    "{i}": "bitwise_count bitwise_invert bitwise_not invert",
    "{z}, {y}": "add multiply equal not_equal logical_and logical_or logical_xor true_divide divide "
    "isclose allclose array_equal array_equiv outer append vecdot_of result_type promote_types_of",
    "{r}, {y}": "arctan2 atan2 copysign fmax fmin greater greater_equal hypot less less_equal logaddexp "
    "logaddexp2 maximum minimum heaviside nextafter union1d setxor1d setdiff1d intersect1d isin remainder mod fmod",
    "{n}, {y}": "subtract",
    "{i}, {y}": "bitwise_and bitwise_or bitwise_xor gcd lcm",
    "{i}, {p}": "left_shift right_shift bitwise_left_shift bitwise_right_shift floor_divide divmod",
    "{z}, axis={axis}, keepdims={bool}": "sum prod any all mean var std nansum nanprod nanmean nanvar nanstd "
    "count_nonzero",
    "{r}, axis={axis}, keepdims={bool}": "max min amax amin ptp argmax argmin nanmax nanmin nanargmax nanargmin "
    "median nanmedian",
    "{z}, axis={axis}": "cumsum cumprod nancumsum nancumprod flip trim_zeros_of",
    "{z}, axis={one}": "diff cumulative_sum_of cumulative_prod_of delete_of",
    "{r}, axis={axis}, kind='stable'": "sort argsort",
    "{z}, {k}": "tri_of tril triu diagflat_of",
    "{p}": "bartlett blackman hamming hanning identity diag_indices ones zeros arange fft.fftfreq fft.rfftfreq "
    "tril_indices triu_indices",
    "{sq}": "linalg.det linalg.inv linalg.slogdet linalg.eigvals_of linalg.matrix_rank linalg.pinv linalg.cond "
    "linalg.svdvals linalg.trace linalg.diagonal linalg.matrix_transpose linalg.matrix_norm trace diagonal "
    "diag tril_indices_from triu_indices_from diag_indices_from",
    "{z}, axis={one} ": "fft.fft fft.ifft fft.hfft_of",
    "{r}, axis={one} ": "fft.rfft fft.ihfft",
    "{f}": "fft.fftn fft.ifftn fft.rfftn fft.fftshift fft.ifftshift",
}  # fmt: skip

#: Arguments by function; alternatives are separated by "|".
SIGNATURES = {
    name: template.strip() for template, names in _ALIKE.items() for name in names.split()
    if not name.endswith("_of")
} | {
    "apply_along_axis": "lambda v: v.sum(), {one}, {r}",
    "apply_over_axes": "np.sum, {n}, [0]",
    "argpartition": "[{real}, 9], 1, axis=None, kind='introselect'",
    "around": "{f}, {k}",
    "array_split": "{z}, {p}, axis={one}",
    "average": "{n}, axis={axis}|{f}, axis={axis}, weights={s}",
    "astype": "np.array({z}), {dtype}",
    "bincount": "np.abs({iv}), minlength={p}",
    "block": "[[{rm}]]|[{rv}, {rv}]",
    "broadcast_arrays": "{z}, {y}",
    "broadcast_shapes": "({p}, 1), (1, {p})",
    "broadcast_to": "{rv}, np.broadcast_shapes({last}.shape, (2, 1))",
    "can_cast": "'{name}', '{name}'",
    "choose": "np.abs({iv}) % 2, [{y}, 7]",
    "clip": "{n}, {real}, 3|{i}, {k}, 5|{f}, {y}, None",
    "column_stack": "[{rv}, {s}]",
    "compress": "[True, False, True][:{last_extent}], {r}, axis={one}",
    "concat": "[{z}, {s}], axis={one}",
    "concatenate": "[{z}, {s}], axis={axis}",
    "convolve": "{rv}, {rv}|{fv}, {fv}, 'same'|{iv}, {fv}, 'valid'",
    "correlate": "{rv}, {rv}|{fv}, {fv}, 'same'|{iv}, {fv}, 'full'",
    "corrcoef": "{fm}",
    "cov": "{fm}|{rm}, rowvar=False, ddof=0",
    "cross": "{fm}[:, :3], {s}[:, :3]",
    "cumulative_prod": "{rv}, include_initial={bool}",
    "cumulative_sum": "{z}, axis={one}, include_initial={bool}",
    "delete": "{z}, 0, axis={one}|{rv}, [0, -1]",
    "digitize": "{f}, [-1., 0, 2.5]|{i}, [3, 1, 0], right={bool}",
    "dot": "{rv}, {s}|{sq}, {s}|{sq}, 2",
    "dstack": "[{z}, {s}]",
    "dsplit": "np.atleast_3d({z}), [1]",
    "ediff1d": "{n}|{fv}, to_begin=-1",
    "einsum": "'ij,kj->ik', {rm}, {last}|'ij->j', {rm}|'i,i', {fv}, {s}|'...i->...', {n}",
    "einsum_path": "'ij,jk->ik', {sq}, {s}",
    "expand_dims": "{z}, {one}",
    "extract": "{mask_of_r}, {last}",
    "eye": "{p}, {p}, {k}",
    "fliplr": "{rm}",
    "flipud": "{z}",
    "float_power": "np.abs({n}) + 1, {real}",
    "floor_divide": "{f}, {p}|{i}, {p}",
    "divmod": "{f}, {p}|{i}, {p}",
    "fromfunction": "lambda i, j: i * 3 + j, ({p}, {p})",
    "fromiter": "range({p}), {dtype}",
    "full": "({p}, {p}), {real}",
    "full_like": "{z}, 3",
    "empty": "({p}, 0)",
    "empty_like": "{z}[:0]",
    "geomspace": "1, {p} + 1, {p}",
    "gradient": "{f}|{n}, {p}, axis={one}|{fv}, np.arange({last_extent}) * 2.0",
    "histogram": "{f}, {p}|{n}, [-2, 0, 1, 4]|{f}, {p}, (-1, 2)",
    "histogram2d": "{fv}, {s}, {p}, [(-3, 3), (-3, 3)]",
    "histogramdd": "{fm}, 3, [(-3, 3)] * {last}.shape[1]",
    "histogram_bin_edges": "{f}, {p}",
    "hsplit": "np.atleast_2d({z}), [1]",
    "hstack": "[{z}, {s}]",
    "i0": "{f}",
    "indices": "({p}, {p})",
    "inner": "{rv}, {s}|{rm}, {s}",
    "insert": "{z}, 0, 1, axis={one}|{rv}, [0, 1], [5, 6]",
    "interp": "{fv}, [-1., 0, 2], [3., 5, -1]|{fv}, [-1., 0, 2], [3., 5, -1], left=7, period=None",
    "issubdtype": "'{name}', np.floating",
    "isdtype": "np.dtype('{name}'), 'integral'",
    "isfortran": "{z}",
    "iterable": "{z}",
    "ix_": "{iv}, [0, 2]",
    "kaiser": "{p}, {real}",
    "kron": "{rm}, {rv}|{n}, {p}",
    "ldexp": "{f}, {k}",
    "lexsort": "[{rv}, {s}]",
    "linspace": "{real}, {real}, {p}|{k}, 5, {p}, endpoint={bool}|{f}, {s}, {p}, axis=0",
    "logspace": "{k}, 2, {p}",
    "mask_indices": "{p}, np.triu",
    "matmul": "{sq}, {s}|{rm}, {last}.T",
    "matrix_transpose": "{rm}",
    "matvec": "{sq}, {last}[0]",
    "vecmat": "{sq}[0], {last}",
    "vecdot": "{r}, {s}",
    "meshgrid": "{rv}, {fv}, indexing='ij'|{rv}, {rv}, sparse={bool}",
    "mintypecode": "['f', 'd']",
    "moveaxis": "{z}, 0, -1",
    "nanpercentile": "{f}, [25, {p}], axis={axis}",
    "nanquantile": "{f}, 0.{p}, axis={axis}",
    "packbits": "{b}, axis={one}, bitorder='little'|{b}",
    "pad": "{z}, {p}|{n}, ({p}, 1), 'edge'|{f}, 1, 'reflect'|{n}, {p}, 'wrap'|{n}, {p}, 'maximum'",
    "partition": "np.sort({rv}), 0",
    "percentile": "{n}, [25, {p}], axis={axis}|{f}, {p}, method='lower'",
    "quantile": "{n}, 0.{p}, axis={axis}, keepdims={bool}|{f}, [0.2, 0.{p}], method='hazen'",
    "permute_dims": "{z}, tuple(range({last}.ndim))[::-1]",
    "piecewise": "{f}, [{last} < 0], [-1, lambda v: v * 2]",
    "poly": "{fv}",
    "polyadd": "{n1}, {n1}",
    "polysub": "{n1}, {n1}",
    "polymul": "{n1}, {n1}",
    "polydiv": "{n1}, [2., 1]",
    "polyder": "{n1}",
    "polyint": "{n1}",
    "polyval": "{n1}, {f}",
    "polyfit": "np.arange(5.), np.arange(5.) ** 2, {p} % 3",
    "roots": "[1., {real}, {k}]",
    "pow": "{f}, {p}|{i}, {p}",
    "power": "{f}, {p}|{i}, {p}|np.abs({f}), {real}",
    "put_along_axis": "",
    "ravel_multi_index": "(np.abs({iv}) % 3, np.abs({s}) % 2), (3, 2)",
    "unravel_index": "np.abs({iv}) % 6, (3, 2)",
    "reciprocal": "{f}",
    "repeat": "{z}, {p}, axis={axis}|{rv}, np.arange({last_extent})",
    "require": "{r}, {dtype}",
    "reshape": "{z}, (-1,)|{z}, ({last}.size, 1), order='F'",
    "resize": "{r}, ({p}, {p})",
    "roll": "{z}, {k}, axis={axis}",
    "rollaxis": "{z}, -1",
    "rot90": "{rm}, {k}",
    "round": "{f}, {k}|{z}",
    "row_stack": "[{z}, {s}]",
    "searchsorted": "np.sort({rv}), {last}, side='{side}'",
    "select": "[{f} > 0, {last} < -1], [{last}, 9], 4",
    "split": "{z}, [1, 2], axis={one}",
    "stack": "[{z}, {s}], axis={one}",
    "swapaxes": "{z}, 0, -1",
    "take": "{z}, [0, -1], axis={axis}|{z}, {iv}, mode='wrap'",
    "take_along_axis": "{r}, np.argsort({last}, axis=-1, kind='stable'), -1",
    "tensordot": "{sq}, {s}, {p} % 3",
    "tile": "{z}, ({p}, 2)",
    "trapezoid": "{n}, dx={real}, axis={one}|{fv}, np.arange({last_extent}) * 2.0",
    "tri": "{p}, {p}, {k}",
    "trim_zeros": "{rv}",
    "typename": "'d'",
    "diagflat": "{rv}, {k}",
    "unpackbits": "np.asarray({b}, 'uint8'), axis={one}",
    "unstack": "{z}, axis={one}",
    "unwrap": "{f}, axis={one}",
    "vander": "{n1}, {p}",
    "vdot": "{z}, {s}",
    "vsplit": "np.atleast_2d({z}), [1]",
    "vstack": "[{z}, {s}]",
    "where": "{r}, {y}, 3|{z}",
    "common_type": "{f}",
    "promote_types": "'{name}', '{name}'",
    "linalg.cholesky": "{sq} @ {last}.T + 9 * np.eye({last_extent})",
    "linalg.eigh": "({sq} + {last}.T)",
    "linalg.eigvalsh": "({sq} + {last}.T)",
    "linalg.eigvals": "({sq} + {last}.T)",
    "linalg.eig": "np.diag({fv})",
    "linalg.lstsq": "{sq} + 9 * np.eye({last_extent}), np.ones({last_extent})",
    "linalg.solve": "{sq} + 9 * np.eye({last_extent}), np.ones({last_extent})",
    "linalg.tensorsolve": "np.eye(6).reshape(2, 3, 6) * 2, {fm}[:1, :1] + np.ones((2, 3))",
    "linalg.tensorinv": "np.eye(6).reshape(2, 3, 6) * {p}, 2",
    "linalg.matrix_power": "{sq}, {p}",
    "linalg.multi_dot": "[{sq}, {s}, {s}]",
    "linalg.norm": "{f}|{fv}, {p}|{f}, axis={one}|{sq}, 'nuc'|{sq}, 1",
    "linalg.vector_norm": "{z}, axis={axis}|{fv}, ord={p}",
    "linalg.cross": "np.ones(3), [1., {real}, {k}]",
    "linalg.outer": "{fv}, {fv}",
    "linalg.matmul": "{sq}, {s}",
    "linalg.tensordot": "{sq}, {s}, axes={p} % 3",
    "linalg.vecdot": "{f}, {s}",
    "linalg.qr": "{sq} + 9 * np.eye({last_extent}), 'r'",
    "linalg.svd": "{fm}, compute_uv=False",
    "fft.fft2": "{fm}",
    "fft.ifft2": "{fm}",
    "fft.rfft2": "{fm}",
    "fft.irfft": "{fv}, {p} + 1",
    "fft.irfft2": "{fm}, ({p}, {p} + 1)",
    "fft.irfftn": "{fm}, ({p}, {p} + 1)",
    "fft.hfft": "{fv}, {p} + 1",
}  # fmt: skip
del SIGNATURES["put_along_axis"]

#: Functions without such calls, and the reason.
OTHERS = {
    "text, files, calendars and settings": "asmatrix base_repr binary_repr bmat busday_count busday_offset "
    "datetime_as_string datetime_data format_float_positional format_float_scientific from_dlpack frombuffer "
    "fromfile fromregex fromstring frompyfunc genfromtxt get_include get_printoptions getbufsize geterr geterrcall "
    "info is_busday isnat load loadtxt nested_iters printoptions save savetxt savez savez_compressed "
    "set_printoptions setbufsize seterr seterrcall show_config show_runtime test",
    "about memory": "may_share_memory shares_memory",
    "bind their operand to other values": "copyto fill_diagonal place put put_along_axis putmask",
    "NumPy raises before it computes": "asarray_chkfinite",
}  # fmt: skip


class Call:
    """The text of a call, and the arrays that it names."""

    def __init__(self, name: str, seed: int) -> None:
        self._random = Random(f"{name} {seed}")
        self.arrays: dict[str, numpy.ndarray] = {}
        template = self._random.choice(SIGNATURES[name].split("|"))
        text, rest = "", template
        while "{" in rest:
            before, rest = rest.split("{", 1)
            token, rest = rest.split("}", 1)
            text += before + self._value(token)
        self.text = f"np.{name}({text}{rest})"

    @property
    def _last(self) -> numpy.ndarray:
        return list(self.arrays.values())[-1]

    def _value(self, token: str) -> str:
        random = self._random
        if token in _VALUES:
            return str(_VALUES[token](random))
        if token == "last":
            return f"a{len(self.arrays) - 1}"
        if token == "last_extent":
            return str(self._last.shape[-1]) if self.arrays else "3"
        if token in ("axis", "one"):
            axes = [*range(-self._last.ndim, self._last.ndim)] if self.arrays else [0]
            return str(random.choice(axes + [None] * (token == "axis")))
        return self._array(token)

    def _array(self, token: str) -> str:
        random = self._random
        if token in ("y", "s"):
            last = self._last
            kind = {"b": "b", "u": "i", "i": "i", "f": "n", "c": "z"}[last.dtype.kind]
            shape = [1 if token == "y" and random.random() < 0.2 else n for n in last.shape]
            shape = shape[random.randrange(len(shape)) :] if token == "y" else shape
            kind = {"n": "f"}.get(kind, kind) if token == "s" else kind
            dtypes = [last.dtype.name] if token == "s" else KINDS[kind]
            return self._add(random.choice(dtypes), shape)
        if token == "mask_of_r":
            name = self._add("bool", [random.randint(1, 5)])
            self._add(random.choice(DTYPES), self._last.shape)
            return name
        kinds = {"rv": "r", "fv": "f", "iv": "i", "rm": "n", "fm": "f", "sq": "f", "n1": "f"}
        dtype = random.choice(KINDS[kinds.get(token, token)])
        if token in ("rv", "fv", "iv", "n1"):
            shape = [random.randint(2, 7)]
        elif token == "sq":
            shape = [random.randint(2, 4)] * 2
        elif token in ("rm", "fm"):
            shape = [random.randint(2, 4), random.randint(3, 5)]
        else:
            shape = [random.choice((1, 2, 3, 5)) for _ in range(random.randint(1, 3))]
        return self._add(dtype, shape)

    def _add(self, dtype: str, shape: list[int] | tuple[int, ...]) -> str:
        """A new array: small multiples of 1/4, which are exact in sums and products."""
        rng = numpy.random.default_rng(self._random.randrange(2**32))
        numbers = rng.integers(-12, 13, tuple(shape))
        if dtype == "bool":
            value = numbers > 0
        elif dtype.startswith("complex"):
            value = (numbers / 4 + 1j * rng.integers(-12, 13, tuple(shape)) / 4).astype(dtype)
        elif dtype.startswith("float"):
            value = (numbers / 4).astype(dtype)
        else:
            value = (numpy.abs(numbers) if dtype[0] == "u" else numbers).astype(dtype)
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        return name


_VALUES = {
    "bool": lambda random: random.choice((True, False)),
    "k": lambda random: random.randint(-2, 2),
    "p": lambda random: random.randint(1, 4),
    "real": lambda random: random.choice((-1.5, 0.5, 2.25)),
    "dtype": lambda random: f"np.{random.choice(DTYPES[1:])}",
    "name": lambda random: random.choice(DTYPES + COMPLEX),
    "side": lambda random: random.choice(("left", "right")),
}
