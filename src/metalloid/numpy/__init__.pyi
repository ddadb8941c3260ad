"""NumPy's names: written by tools/numpy_stub.py. Those of NumPy 2.4."""

from builtins import bool as _bool
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.lowering.reductions import Axis
from metalloid.numpy import fft as fft
from metalloid.numpy import host as host
from metalloid.numpy import linalg as linalg
from metalloid.numpy import polynomial as polynomial
from metalloid.numpy import random as random
import numpy.char as char
import numpy.ctypeslib as ctypeslib
import numpy.dtypes as dtypes
import numpy.exceptions as exceptions
import numpy.ma as ma
import numpy.strings as strings
import numpy.testing as testing
import numpy.typing as typing
from metalloid.numpy.array import ndarray as ndarray
from metalloid.numpy.ufunc import ufunc as ufunc
from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import busday_count as busday_count
from numpy import busday_offset as busday_offset
from numpy import busdaycalendar as busdaycalendar
from numpy import byte as byte
from numpy import bytes_ as bytes_
from numpy import cdouble as cdouble
from numpy import character as character
from numpy import clongdouble as clongdouble
from numpy import complex128 as complex128
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import datetime64 as datetime64
from numpy import datetime_as_string as datetime_as_string
from numpy import datetime_data as datetime_data
from numpy import double as double
from numpy import dtype as dtype
from numpy import e as e
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import flexible as flexible
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import generic as generic
from numpy import get_include as get_include
from numpy import get_printoptions as get_printoptions
from numpy import getbufsize as getbufsize
from numpy import geterr as geterr
from numpy import geterrcall as geterrcall
from numpy import half as half
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import info as info
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import is_busday as is_busday
from numpy import isnat as isnat
from numpy import issubdtype as issubdtype
from numpy import little_endian as little_endian
from numpy import long as long
from numpy import longdouble as longdouble
from numpy import longlong as longlong
from numpy import mintypecode as mintypecode
from numpy import nan as nan
from numpy import ndindex as ndindex
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import object_ as object_
from numpy import pi as pi
from numpy import printoptions as printoptions
from numpy import sctypeDict as sctypeDict
from numpy import set_printoptions as set_printoptions
from numpy import setbufsize as setbufsize
from numpy import seterr as seterr
from numpy import seterrcall as seterrcall
from numpy import short as short
from numpy import show_config as show_config
from numpy import show_runtime as show_runtime
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import str_ as str_
from numpy import test as test
from numpy import timedelta64 as timedelta64
from numpy import typecodes as typecodes
from numpy import typename as typename
from numpy import ubyte as ubyte
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort
from numpy import void as void
from numpy.lib import scimath as emath

CHAPTERS: tuple[Any, ...]
COUNTERPARTS: dict[Any, Any]
__all__: list[str]
__version__: str
__array_api_version__: str
def __array_namespace_info__() -> Any: ...
def __dir__() -> list[str]: ...
abs: ufunc
absolute: ufunc
acos: ufunc
acosh: ufunc
add: ufunc
def all(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Whether all elements along axes are nonzero."""
    ...
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all numbers are close; see `isclose`."""
    ...
def amax(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Maximum along axes, or of all elements; NaN if there is one."""
    ...
def amin(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Minimum along axes, or of all elements; see `max`."""
    ...
def angle(z: Any, deg: _bool = False) -> ndarray:
    """Angle of complex numbers, in radians or degrees."""
    ...
def any(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Whether any element along axes is nonzero."""
    ...
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Join values to the end of an array."""
    ...
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function with every vector along an axis."""
    ...
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """Call a function of an array and an axis for each axis; results keep their axes."""
    ...
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None, like: Any = None) -> ndarray:
    """Evenly spaced numbers in a half-open interval."""
    ...
arccos: ufunc
arccosh: ufunc
arcsin: ufunc
arcsinh: ufunc
arctan: ufunc
arctan2: ufunc
arctanh: ufunc
def argmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first largest element; NaN is the largest."""
    ...
def argmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first smallest element; see `argmax`."""
    ...
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = 'introselect', order: Any = None) -> ndarray:
    """Indices of a `partition`."""
    ...
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> ndarray:
    """Indices that sort elements along an axis; equal elements keep their order."""
    ...
def argwhere(a: Any) -> ndarray:
    """Indices of the nonzero elements, one row each."""
    ...
def around(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, to the even one of two."""
    ...
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = 'K', subok: _bool = False, ndmin: int = 0, like: Any = None, device: Any = None) -> ndarray:
    """Convert an object to an array."""
    ...
def array2string(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None, separator: Any = ' ', prefix: Any = '', *, formatter: Any = None, threshold: Any = None, edgeitems: Any = None, sign: Any = None, floatmode: Any = None, suffix: Any = '', legacy: Any = None) -> Any:
    """``numpy.array2string``, which NumPy computes on the host."""
    ...
def array_equal(a1: Any, a2: Any, equal_nan: _bool = False) -> _bool:
    """Whether two arrays have the same shape and elements."""
    ...
def array_equiv(a1: Any, a2: Any) -> _bool:
    """Whether two arrays have the same elements after they are broadcast."""
    ...
def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Any:
    """``numpy.array_repr``, which NumPy computes on the host."""
    ...
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split an array at indices, or into sections of almost equal length."""
    ...
def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Any:
    """``numpy.array_str``, which NumPy computes on the host."""
    ...
def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> ndarray:
    """Convert an object to an array; see `array`."""
    ...
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> ndarray:
    """Convert an object to an array; see `array`."""
    ...
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """Convert an object to an array, and check that all numbers are finite."""
    ...
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """Convert an object to a row-major array of at least one axis."""
    ...
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """Convert an object to a column-major array of at least one axis."""
    ...
asin: ufunc
asinh: ufunc
def asmatrix(data: Any, dtype: Any = None) -> Any:
    """``numpy.asmatrix``, which NumPy computes on the host."""
    ...
def astype(x: Any, dtype: Any, /, *, copy: _bool = True, device: Any = None) -> ndarray:
    """Convert to another type."""
    ...
atan: ufunc
atan2: ufunc
atanh: ufunc
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least 1 axes; see ``numpy.atleast_1d``."""
    ...
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least 2 axes; see ``numpy.atleast_2d``."""
    ...
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least 3 axes; see ``numpy.atleast_3d``."""
    ...
def average(a: Any, axis: Axis = None, weights: Any = None, returned: _bool = False, *, keepdims: Any = False) -> Any:
    """Weighted mean along axes."""
    ...
def bartlett(M: int) -> ndarray:
    """Triangular window of `M` numbers, whose ends are 0; see ``numpy.bartlett``."""
    ...
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> ndarray:
    """Count the occurrences of each integer from 0 to the largest."""
    ...
bitwise_and: ufunc
bitwise_count: ufunc
bitwise_invert: ufunc
bitwise_left_shift: ufunc
bitwise_not: ufunc
bitwise_or: ufunc
bitwise_right_shift: ufunc
bitwise_xor: ufunc
def blackman(M: int) -> ndarray:
    """Window of `M` numbers, a sum of three cosines; see ``numpy.blackman``."""
    ...
def block(arrays: Any) -> Any:
    """Join nested lists of blocks: the innermost lists along the last axis."""
    ...
def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> Any:
    """``numpy.bmat``, which NumPy computes on the host."""
    ...
broadcast: Any
def broadcast_arrays(*args: Any, subok: _bool = False) -> tuple[ndarray, ...]:
    """Broadcast arrays to their common shape."""
    ...
def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """Shape that shapes broadcast to."""
    ...
def broadcast_to(array: Any, shape: Any, subok: _bool = False) -> ndarray:
    """Broadcast to a shape."""
    ...
c_: Any
def can_cast(from_: Any, to: Any, casting: Any = 'safe') -> _bool:
    """Whether a type converts to another one by a rule."""
    ...
cbrt: ufunc
ceil: ufunc
def choose(a: Any, choices: Any, out: Any = None, mode: str = 'raise') -> Any:
    """Elements of several arrays, of which an array of indices chooses one each."""
    ...
def clip(a: Any, a_min: Any = ..., a_max: Any = ..., out: Any = None, *, min: Any = ..., max: Any = ..., **options: Any) -> Any:
    """Limit elements to an interval."""
    ...
def column_stack(tup: Any) -> Any:
    """Join vectors as the columns of a matrix."""
    ...
def common_type(*arrays: Any) -> Any:
    """Float type to which all arrays convert."""
    ...
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Subarrays along an axis where a condition is true."""
    ...
def concat(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Join arrays along an axis, or flattened if it is None."""
    ...
def concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Join arrays along an axis, or flattened if it is None."""
    ...
conj: ufunc
conjugate: ufunc
def convolve(a: Any, v: Any, mode: str = 'full') -> ndarray:
    """Convolution of two vectors."""
    ...
def copy(a: Any, order: str = 'K', subok: _bool = False) -> ndarray:
    """Return a copy."""
    ...
copysign: ufunc
def copyto(dst: Any, src: Any, casting: Any = 'same_kind', where: Any = True) -> None:
    """Copy values into an array, where a mask is true."""
    ...
def corrcoef(x: Any, y: Any = None, rowvar: _bool = True, *, dtype: Any = None) -> ndarray:
    """Matrix of correlation coefficients of variables; see `cov`."""
    ...
def correlate(a: Any, v: Any, mode: str = 'valid') -> ndarray:
    """Cross-correlation of two vectors; `v` is conjugated. See `convolve`."""
    ...
cos: ufunc
cosh: ufunc
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: Any = False) -> Any:
    """Count the nonzero elements."""
    ...
def cov(m: Any, y: Any = None, rowvar: _bool = True, bias: _bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *, dtype: Any = None) -> ndarray:
    """Covariance matrix of variables, which are rows."""
    ...
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> ndarray:
    """Cross product of vectors of three elements; two are completed by 0."""
    ...
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product along an axis, or of the flattened array."""
    ...
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum along an axis, or of the flattened array."""
    ...
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: _bool = False) -> Any:
    """Cumulative product along an axis; see `metalloid.cumulative_prod`."""
    ...
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: _bool = False) -> Any:
    """Cumulative sum along an axis; see `metalloid.cumulative_sum`."""
    ...
deg2rad: ufunc
degrees: ufunc
def delete(arr: Any, obj: Any, axis: int | None = None) -> ndarray:
    """Return an array without some subarrays along an axis."""
    ...
def diag(v: Any, k: int = 0) -> ndarray:
    """Diagonal of a matrix, or the matrix of a diagonal."""
    ...
def diag_indices(n: int, ndim: int = 2) -> tuple[ndarray, ...]:
    """Indices of the main diagonal."""
    ...
def diag_indices_from(arr: Any) -> tuple[ndarray, ...]:
    """Indices of the main diagonal of an array."""
    ...
def diagflat(v: Any, k: int = 0) -> ndarray:
    """Matrix whose diagonal is the flattened array."""
    ...
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """Diagonal of matrices, along a new last axis."""
    ...
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = ..., append: Any = ...) -> Any:
    """Return the `n`-th differences of adjacent elements along an axis."""
    ...
def digitize(x: Any, bins: Any, right: _bool = False) -> ndarray:
    """Indices of the bins of values."""
    ...
divide: ufunc
divmod: ufunc
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Product over the last axis of `a` and the last but one of `b`."""
    ...
def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split an array along axis 2; see `split`."""
    ...
def dstack(tup: Any) -> Any:
    """Join arrays along the third axis."""
    ...
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of adjacent elements of the flattened array, between given numbers."""
    ...
def einsum(*operands: Any, out: Any = None, dtype: Any = None, order: str = 'K', casting: str = 'safe', optimize: Any = False) -> Any:
    """Sum of products by Einstein's convention; see `metalloid.einsum`."""
    ...
def einsum_path(*operands: Any, optimize: Any = 'greedy', einsum_call: Any = False) -> Any:
    """``numpy.einsum_path``, which NumPy computes on the host."""
    ...
def empty(shape: Any, dtype: Any = None, order: str = 'C', *, device: Any = None, like: Any = None) -> ndarray:
    """Array of zeros: lazy arrays are never uninitialised."""
    ...
def empty_like(a: Any, dtype: Any = None, order: str = 'K', subok: _bool = True, shape: Any = None, *, device: Any = None) -> ndarray:
    """`zeros` with the shape and type of another array by default."""
    ...
equal: ufunc
def eval(*values: Any) -> None:
    """Evaluate arrays immediately; common subexpressions are computed once."""
    ...
exp: ufunc
exp2: ufunc
def expand_dims(a: Any, axis: Any) -> ndarray:
    """Insert axes of extent 1 at these positions of the result."""
    ...
def explain(*values: Any) -> str:
    """Describe the evaluation of arrays: kernels, launches, traffic, and why each is materialized."""
    ...
expm1: ufunc
def extract(condition: Any, arr: Any) -> Any:
    """Elements where a condition is true, of the flattened array."""
    ...
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, order: str = 'C', *, device: Any = None, like: Any = None) -> ndarray:
    """Matrix with ones on its `k`-th diagonal."""
    ...
fabs: ufunc
def fill_diagonal(a: Any, val: Any, wrap: _bool = False) -> None:
    """Set the main diagonal."""
    ...
def finfo(dtype: Any) -> Any:
    """Limits of a float type."""
    ...
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    ...
def flatnonzero(a: Any) -> ndarray:
    """Indices of the nonzero elements of the flattened array."""
    ...
def flip(m: Any, axis: Any = None) -> ndarray:
    """Reverse the elements along axes, or along all axes."""
    ...
def fliplr(m: Any) -> ndarray:
    """Reverse the columns."""
    ...
def flipud(m: Any) -> ndarray:
    """Reverse the rows."""
    ...
float_power: ufunc
floor: ufunc
floor_divide: ufunc
fmax: ufunc
fmin: ufunc
fmod: ufunc
frexp: ufunc
def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> ndarray:
    """Array that shares the memory of another library's array; see `metalloid.from_dlpack`."""
    ...
def frombuffer(buffer: Any, dtype: Any = ..., count: int = -1, offset: int = 0, *, like: Any = None) -> ndarray:
    """Array of the bytes of a buffer, copied."""
    ...
def fromfile(file: Any, dtype: Any = None, count: Any = -1, sep: Any = '', offset: Any = 0, *, like: Any = None) -> Any:
    """``numpy.fromfile``, which NumPy computes on the host."""
    ...
def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = ..., like: Any = None, **options: Any) -> Any:
    """Call a function with the indices of each element, as arrays."""
    ...
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> ndarray:
    """Array of the numbers of an iterator."""
    ...
def frompyfunc(func: Any, /, nin: Any, nout: Any, **kwargs: Any) -> Any:
    """``numpy.frompyfunc``, which NumPy computes on the host."""
    ...
def fromregex(file: Any, regexp: Any, dtype: Any, encoding: Any = None) -> Any:
    """``numpy.fromregex``, which NumPy computes on the host."""
    ...
def fromstring(*args: Any, **kwargs: Any) -> Any:
    """``numpy.fromstring``, which NumPy computes on the host."""
    ...
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = 'C', *, device: Any = None, like: Any = None) -> ndarray:
    """Array filled with a number, or with an array that is broadcast."""
    ...
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = 'K', subok: _bool = True, shape: Any = None, *, device: Any = None) -> ndarray:
    """`full` with the shape and type of another array by default."""
    ...
gcd: ufunc
def genfromtxt(fname: Any, dtype: Any = ..., comments: Any = '#', delimiter: Any = None, skip_header: Any = 0, skip_footer: Any = 0, converters: Any = None, missing_values: Any = None, filling_values: Any = None, usecols: Any = None, names: Any = None, excludelist: Any = None, deletechars: Any = " !#$%&'()*+,-./:;<=>?@[\\]^{|}~", replace_space: Any = '_', autostrip: Any = False, case_sensitive: Any = True, defaultfmt: Any = 'f%i', unpack: Any = None, usemask: Any = False, loose: Any = True, invalid_raise: Any = True, max_rows: Any = None, encoding: Any = None, *, ndmin: Any = 0, like: Any = None) -> Any:
    """``numpy.genfromtxt``, which NumPy computes on the host."""
    ...
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: _bool = True, dtype: Any = None, axis: int = 0) -> ndarray:
    """Numbers with a constant ratio, of an interval."""
    ...
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives by central differences, one-sided at the edges."""
    ...
greater: ufunc
greater_equal: ufunc
def hamming(M: int) -> ndarray:
    """Raised cosine of `M` numbers, whose ends are 0.08; see ``numpy.hamming``."""
    ...
def hanning(M: int) -> ndarray:
    """Raised cosine of `M` numbers, whose ends are 0; see ``numpy.hanning``."""
    ...
heaviside: ufunc
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[ndarray, ndarray]:
    """Numbers of elements in bins, and the edges of the bins."""
    ...
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[ndarray, ndarray, ndarray]:
    """Numbers of points in the bins of two coordinates, and the edges of both."""
    ...
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """Edges of the bins of `histogram`."""
    ...
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[ndarray, tuple[ndarray, ...]]:
    """Numbers of points in the bins of a grid, and the edges along each axis."""
    ...
def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split an array along axis 1; see `split`."""
    ...
def hstack(tup: Any, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Join arrays by columns; along the first axis if they have one only."""
    ...
hypot: ufunc
def i0(x: Any) -> ndarray:
    """Modified Bessel function of the first kind, order 0."""
    ...
def identity(n: int, dtype: Any = None, *, like: Any = None) -> ndarray:
    """Identity matrix."""
    ...
def iinfo(type: Any) -> Any:
    """Limits of an integer type."""
    ...
def imag(val: Any) -> ndarray:
    """Imaginary part."""
    ...
index_exp: Any
def indices(dimensions: Any, dtype: Any = ..., sparse: _bool = False) -> Any:
    """Indices of each element along each axis."""
    ...
def inner(a: Any, b: Any, /) -> Any:
    """Product over the last axes."""
    ...
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> ndarray:
    """Insert values before indices along an axis."""
    ...
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation between the points (`xp`, `fp`)."""
    ...
def intersect1d(ar1: Any, ar2: Any, assume_unique: _bool = False, return_indices: _bool = False) -> Any:
    """Sorted elements of both arrays."""
    ...
invert: ufunc
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _bool = False) -> ndarray:
    """Whether numbers differ by at most ``atol + rtol * abs(b)``."""
    ...
def iscomplex(x: Any) -> ndarray:
    """Whether elements have an imaginary part."""
    ...
def iscomplexobj(x: Any) -> _bool:
    """Whether an array has a complex type."""
    ...
def isdtype(dtype: Any, kind: Any) -> _bool:
    """Whether a type is of a kind."""
    ...
isfinite: ufunc
def isfortran(a: Any) -> _bool:
    """Whether elements are in column-major order in memory, and not in row-major order, too."""
    ...
def isin(element: Any, test_elements: Any, assume_unique: _bool = False, invert: _bool = False, *, kind: Any = None) -> ndarray:
    """Whether each element occurs in another array."""
    ...
isinf: ufunc
isnan: ufunc
def isneginf(x: Any, out: Any = None) -> Any:
    """Whether numbers are negative infinity."""
    ...
def isposinf(x: Any, out: Any = None) -> Any:
    """Whether numbers are positive infinity."""
    ...
def isreal(x: Any) -> ndarray:
    """Whether elements have no imaginary part."""
    ...
def isrealobj(x: Any) -> _bool:
    """Whether an array has a real type."""
    ...
def isscalar(element: Any) -> _bool:
    """Whether a value is a number; arrays without axes are, as NumPy's results are scalars."""
    ...
def iterable(y: Any) -> _bool:
    """Whether a value can be iterated over."""
    ...
def ix_(*args: Any) -> tuple[ndarray, ...]:
    """Indices of an open mesh: each along an axis of its own."""
    ...
def kaiser(M: int, beta: float) -> ndarray:
    """Window of `M` numbers by a Bessel function of the first kind; see ``numpy.kaiser``."""
    ...
def kron(a: Any, b: Any) -> ndarray:
    """Kronecker product."""
    ...
lcm: ufunc
ldexp: ufunc
left_shift: ufunc
less: ufunc
less_equal: ufunc
def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """Indices that sort by several keys, of which the last is the most important."""
    ...
lib: Any
def linspace(start: Any, stop: Any, num: int = 50, endpoint: _bool = True, retstep: _bool = False, dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    """Evenly spaced numbers of an interval."""
    ...
def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, fix_imports: Any = True, encoding: Any = 'ASCII', *, max_header_size: Any = 10000) -> Any:
    """``numpy.load``, which NumPy computes on the host."""
    ...
def loadtxt(fname: Any, dtype: Any = ..., comments: Any = '#', delimiter: Any = None, converters: Any = None, skiprows: Any = 0, usecols: Any = None, unpack: Any = False, ndmin: Any = 0, encoding: Any = None, max_rows: Any = None, *, quotechar: Any = None, like: Any = None) -> Any:
    """``numpy.loadtxt``, which NumPy computes on the host."""
    ...
log: ufunc
log10: ufunc
log1p: ufunc
log2: ufunc
logaddexp: ufunc
logaddexp2: ufunc
logical_and: ufunc
logical_not: ufunc
logical_or: ufunc
logical_xor: ufunc
def logspace(start: Any, stop: Any, num: int = 50, endpoint: _bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> ndarray:
    """Powers of a base whose exponents are evenly spaced."""
    ...
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[ndarray, ...]:
    """Indices of the elements that a function such as `triu` leaves."""
    ...
matmul: ufunc
matrix: Any
def matrix_transpose(x: Any, /) -> ndarray:
    """Transpose every matrix."""
    ...
matvec: ufunc
def max(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Maximum along axes, or of all elements; NaN if there is one."""
    ...
maximum: ufunc
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> _bool:
    """Whether the ranges of memory of two arrays overlap; see `shares_memory`."""
    ...
def mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Mean along axes, or of all elements."""
    ...
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, keepdims: Any = False) -> Any:
    """Median along axes, or of all elements; NaN if there is one."""
    ...
def meshgrid(*xi: Any, copy: _bool = True, sparse: _bool = False, indexing: str = 'xy') -> Any:
    """Coordinates of a grid from the coordinates along its axes."""
    ...
mgrid: Any
def min(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Minimum along axes, or of all elements; see `max`."""
    ...
def min_scalar_type(a: Any) -> Any:
    """Smallest type that holds a number; of arrays, their type."""
    ...
minimum: ufunc
mod: ufunc
modf: ufunc
def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """Move axes to other positions."""
    ...
multiply: ufunc
def nan_to_num(x: Any, copy: _bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> ndarray:
    """Replace NaN and infinities by numbers; by default 0 and the largest finite ones."""
    ...
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first largest number that is not NaN."""
    ...
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first smallest number that is not NaN."""
    ...
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product in which NaN counts as 1."""
    ...
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum in which NaN counts as 0."""
    ...
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Maximum of the numbers that are not NaN; NaN if there are none."""
    ...
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Mean of the numbers that are not NaN; NaN if there are none."""
    ...
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, keepdims: Any = False) -> Any:
    """Median of the numbers that are not NaN."""
    ...
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Minimum of the numbers that are not NaN; NaN if there are none."""
    ...
def nanpercentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear', keepdims: Any = False, *, weights: Any = None) -> Any:
    """Percentiles of the numbers that are not NaN; see `quantile`."""
    ...
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Product in which NaN counts as 1."""
    ...
def nanquantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear', keepdims: Any = False, *, weights: Any = None) -> Any:
    """Quantiles of the numbers that are not NaN; see `quantile`."""
    ...
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = ..., correction: Any = ...) -> Any:
    """Standard deviation of the numbers that are not NaN, the square root of `nanvar`."""
    ...
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Sum in which NaN counts as 0."""
    ...
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = ..., correction: Any = ...) -> Any:
    """Variance of the numbers that are not NaN; NaN if there are too few."""
    ...
ndenumerate: Any
def ndim(a: Any) -> int:
    """Number of axes."""
    ...
nditer: Any
negative: ufunc
def nested_iters(op: Any, axes: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: Any = 'K', casting: Any = 'safe', buffersize: Any = 0) -> Any:
    """``numpy.nested_iters``, which NumPy computes on the host."""
    ...
nextafter: ufunc
def nonzero(a: Any) -> tuple[ndarray, ...]:
    """Indices of the nonzero elements, one array per axis."""
    ...
not_equal: ufunc
ogrid: Any
def ones(shape: Any, dtype: Any = None, order: str = 'C', *, device: Any = None, like: Any = None) -> ndarray:
    """Array of ones."""
    ...
def ones_like(a: Any, dtype: Any = None, order: str = 'K', subok: _bool = True, shape: Any = None, *, device: Any = None) -> ndarray:
    """`ones` with the shape and type of another array by default."""
    ...
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Products of all pairs of elements of two flattened arrays."""
    ...
def packbits(a: Any, /, axis: Any = None, bitorder: str = 'big') -> ndarray:
    """Eight elements along an axis as the bits of a byte: whether each is nonzero."""
    ...
def pad(array: Any, pad_width: Any, mode: Any = 'constant', **options: Any) -> ndarray:
    """Add a border to an array."""
    ...
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = 'introselect', order: Any = None) -> ndarray:
    """Reorder elements so that the `kth` is the one of the sorted array, between others."""
    ...
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear', keepdims: Any = False, *, weights: Any = None) -> Any:
    """Percentiles: quantiles by hundredths; see `quantile`."""
    ...
def permute_dims(a: Any, axes: Any = None) -> ndarray:
    """Permute the axes; by default, reverse them."""
    ...
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Results of functions, each for the elements where its condition is true."""
    ...
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Set the elements where a mask is true to successive values, repeatedly."""
    ...
def poly(seq_of_zeros: Any) -> Any:
    """Coefficients of the polynomial with given roots, or of a matrix's characteristic one."""
    ...
poly1d: Any
def polyadd(a1: Any, a2: Any) -> ndarray:
    """Sum of two polynomials."""
    ...
def polyder(p: Any, m: int = 1) -> ndarray:
    """Derivative of a polynomial."""
    ...
def polydiv(u: Any, v: Any) -> tuple[ndarray, ndarray]:
    """Quotient and remainder of two polynomials."""
    ...
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: _bool = False, w: Any = None, cov: Any = False) -> Any:
    """Least squares fit of a polynomial."""
    ...
def polyint(p: Any, m: int = 1, k: Any = None) -> ndarray:
    """Integral of a polynomial, with constants of integration `k`."""
    ...
def polymul(a1: Any, a2: Any) -> ndarray:
    """Product of two polynomials."""
    ...
def polysub(a1: Any, a2: Any) -> ndarray:
    """Difference of two polynomials."""
    ...
def polyval(p: Any, x: Any) -> ndarray:
    """Values of a polynomial, by Horner's method."""
    ...
positive: ufunc
pow: ufunc
power: ufunc
def prod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Product along axes, or of all elements; see `sum`."""
    ...
def promote_types(type1: Any, type2: Any) -> Any:
    """Smallest type to which both types convert."""
    ...
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    """Difference of the maximum and the minimum."""
    ...
def put(a: Any, ind: Any, v: Any, mode: str = 'raise') -> None:
    """Set elements of the flattened array; values are repeated if there are too few."""
    ...
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Set elements along an axis, at indices that vary along the other axes."""
    ...
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Set the elements where a mask is true to the values at the same indices."""
    ...
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear', keepdims: Any = False, *, weights: Any = None) -> Any:
    """Quantiles along axes, or of all elements; NaN if there is one."""
    ...
r_: Any
rad2deg: ufunc
radians: ufunc
def ravel(a: Any, order: str = 'C') -> ndarray:
    """Collapse to one axis."""
    ...
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = 'raise', order: str = 'C') -> ndarray:
    """Convert indices along the axes to indices of the flattened array."""
    ...
def real(val: Any) -> ndarray:
    """Real part."""
    ...
def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """Real part, if all imaginary parts are a few units in the last place of 1 at most."""
    ...
reciprocal: ufunc
remainder: ufunc
def repeat(a: Any, repeats: Any, axis: int | None = None) -> ndarray:
    """Repeat every element."""
    ...
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> ndarray:
    """Convert an object to an array, which is row-major, aligned and writeable anyway."""
    ...
def reshape(a: Any, /, shape: Any, order: str = 'C', *, copy: Any = None) -> ndarray:
    """Change the shape; one extent may be -1."""
    ...
def resize(a: Any, new_shape: Any) -> ndarray:
    """Change the number of elements; the array is repeated if there are too few."""
    ...
def result_type(*arrays_and_dtypes: Any) -> Any:
    """Type of the result of an operation on operands of these types."""
    ...
right_shift: ufunc
rint: ufunc
def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """Shift elements along axes, cyclically."""
    ...
def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """Move an axis before another one."""
    ...
def roots(p: Any) -> ndarray:
    """Roots of a polynomial: the eigenvalues of its companion matrix."""
    ...
def rot90(m: Any, k: int = 1, axes: Sequence[int] = ...) -> ndarray:
    """Rotate by 90 degrees in the plane of two axes, from the first to the second."""
    ...
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, to the even one of two."""
    ...
def row_stack(tup: Any, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Join arrays by rows."""
    ...
s_: Any
def save(file: Any, arr: Any, allow_pickle: Any = True) -> Any:
    """``numpy.save``, which NumPy computes on the host."""
    ...
def savetxt(fname: Any, X: Any, fmt: Any = '%.18e', delimiter: Any = ' ', newline: Any = '\n', header: Any = '', footer: Any = '', comments: Any = '# ', encoding: Any = None) -> Any:
    """``numpy.savetxt``, which NumPy computes on the host."""
    ...
def savez(file: Any, *args: Any, allow_pickle: Any = True, **kwds: Any) -> Any:
    """``numpy.savez``, which NumPy computes on the host."""
    ...
def savez_compressed(file: Any, *args: Any, allow_pickle: Any = True, **kwds: Any) -> Any:
    """``numpy.savez_compressed``, which NumPy computes on the host."""
    ...
def searchsorted(a: Any, v: Any, side: Any = 'left', sorter: Any = None) -> ndarray:
    """Indices at which values would be inserted into a sorted array."""
    ...
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Elements of the array whose condition is the first that is true."""
    ...
def setdiff1d(ar1: Any, ar2: Any, assume_unique: _bool = False) -> ndarray:
    """Sorted elements of the first array that are not in the second."""
    ...
def setxor1d(ar1: Any, ar2: Any, assume_unique: _bool = False) -> ndarray:
    """Sorted elements that are in one of two arrays only."""
    ...
def shape(a: Any) -> tuple[int, ...]:
    """Extent of each axis."""
    ...
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> _bool:
    """Whether elements of two arrays have the same memory; no write to one changes the other."""
    ...
sign: ufunc
signbit: ufunc
sin: ufunc
def sinc(x: Any) -> ndarray:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    ...
sinh: ufunc
def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or extent of an axis."""
    ...
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> ndarray:
    """Sort elements along an axis; NaN is the largest."""
    ...
def sort_complex(a: Any) -> ndarray:
    """Sort by real parts, then by imaginary parts; the result is complex."""
    ...
spacing: ufunc
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split an array at indices, or into sections of equal length."""
    ...
sqrt: ufunc
square: ufunc
def squeeze(a: Any, axis: Any = None) -> ndarray:
    """Remove axes of extent 1."""
    ...
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Stack arrays of one shape along a new axis."""
    ...
def std(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = ..., correction: Any = ...) -> Any:
    """Standard deviation, the square root of `var`."""
    ...
subtract: ufunc
def sum(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ..., where: Any = True) -> Any:
    """Sum along axes, or of all elements."""
    ...
def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Exchange two axes."""
    ...
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = 'raise') -> Any:
    """Elements of the flattened array, or subarrays along an axis, at indices."""
    ...
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Elements along an axis, at indices that vary along the other axes."""
    ...
tan: ufunc
tanh: ufunc
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Product over pairs of axes."""
    ...
def tile(A: Any, reps: Any) -> ndarray:
    """Repeat the whole array along each axis."""
    ...
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """Sum of a diagonal."""
    ...
def transpose(a: Any, axes: Any = None) -> ndarray:
    """Permute the axes; by default, reverse them."""
    ...
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule."""
    ...
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = ..., *, like: Any = None) -> ndarray:
    """Lower triangle of ones."""
    ...
def tril(m: Any, k: int = 0) -> ndarray:
    """Lower triangles of matrices, with zeros above the `k`-th diagonal."""
    ...
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Indices of the lower triangle of a matrix."""
    ...
def tril_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """Indices of the lower triangle of a matrix."""
    ...
def trim_zeros(filt: Any, trim: str = 'fb', axis: Any = None) -> ndarray:
    """Remove zeros at the start and at the end of axes."""
    ...
def triu(m: Any, k: int = 0) -> ndarray:
    """Upper triangles of matrices, with zeros below the `k`-th diagonal."""
    ...
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Indices of the upper triangle of a matrix."""
    ...
def triu_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """Indices of the upper triangle of a matrix."""
    ...
true_divide: ufunc
trunc: ufunc
def union1d(ar1: Any, ar2: Any) -> ndarray:
    """Sorted elements of either array."""
    ...
def unique(ar: Any, return_index: _bool = False, return_inverse: _bool = False, return_counts: _bool = False, axis: int | None = None, *, equal_nan: _bool = True, sorted: _bool = True) -> Any:
    """Sorted distinct elements."""
    ...
def unique_all(x: Any) -> Any:
    """Distinct elements, first indices, inverse, and counts; see `metalloid.unique_all`."""
    ...
def unique_counts(x: Any) -> Any:
    """Distinct elements and their counts."""
    ...
def unique_inverse(x: Any) -> Any:
    """Distinct elements, and the indices that reconstruct the array."""
    ...
def unique_values(x: Any) -> Any:
    """Distinct elements."""
    ...
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = 'big') -> ndarray:
    """The bits of bytes as elements of 0 or 1 along an axis."""
    ...
def unravel_index(indices: Any, shape: Any, order: str = 'C') -> tuple[ndarray, ...]:
    """Convert indices of the flattened array to indices along the axes."""
    ...
def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """Split an array into the subarrays along an axis."""
    ...
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> ndarray:
    """Remove jumps of angles by multiples of the period."""
    ...
def vander(x: Any, N: int | None = None, increasing: _bool = False) -> ndarray:
    """Vandermonde matrix: the powers of numbers."""
    ...
def var(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = ..., correction: Any = ...) -> Any:
    """Variance along axes, or of all elements."""
    ...
def vdot(a: Any, b: Any, /) -> Any:
    """Sum of the products of all elements; those of `a` are conjugated."""
    ...
vecdot: ufunc
vecmat: ufunc
vectorize: Any
def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split an array along axis 0; see `split`."""
    ...
def vstack(tup: Any, *, dtype: Any = None, casting: str = 'same_kind') -> Any:
    """Join arrays by rows."""
    ...
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where a condition is true, and of `y` elsewhere; or its indices."""
    ...
def zeros(shape: Any, dtype: Any = None, order: str = 'C', *, device: Any = None, like: Any = None) -> ndarray:
    """Array of zeros."""
    ...
def zeros_like(a: Any, dtype: Any = None, order: str = 'K', subok: _bool = True, shape: Any = None, *, device: Any = None) -> ndarray:
    """`zeros` with the shape and type of another array by default."""
    ...
