"""Why tests fail: what cannot be, by the reasons of docs/numpy.md, and what is open."""

from __future__ import annotations

import re

#: Reasons of what cannot be, with patterns of the test's name, the statement and the error.
CANNOT = (
    ("objects, text, dates, structured types and long doubles",
     r"arrays do not support|expected numeric data|DescrNewByteOrder|dtype=object|Decimal|isnative|"
     r"has no 'rec|does not fit any integer type|Fraction|newbyteorder|byteorder|byteswapped|"
     r"array of references"),
    ("subclasses, masked arrays, and arrays as a base of other classes",
     r"subclass|[Mm]asked|MyNDArray|isinstance\(.*(SubClass|A|with_wrap|ArrayWrap)\)|"
     r"object\.__new__|\.mask\b|\.info\b|_wrap|priority|ndarray\.__init__"),
    ("views that write through, and their memory",
     r"shares?_memory|\.base\b|OWNDATA|writeable|setflags|read-only|memmap|overlap|inplace_|"
     r"test_(ldexp|frexp|incontiguous_array|permuted_with_strides|sincos|strided_array|output_arg|"
     r"double|float)\b|at_inner_loops|quantile_scalar_nan|flags\.aligned|"
     r" is (x|arr|out|result)\)?$|"
     r"result is (arr|vals)|shuffle_axis_nonsquare"),
    ("order of the elements in memory", r"[Cc]_contiguous|[Ff]_contiguous|_CONTIGUOUS|strides\["),
    ("warnings and errstate", r"DID NOT WARN|FloatingPointError|RuntimeWarning|len\(w\)|fpe error|"
     r"test_warnings|'overflow'"),
    ("streams of bits",
     r"test_generator.*\n.*(desired|expected|_hash|repeatab|== 465|1000\), 479|== res\b)|"
     r"random_raw|bit_generator|PCG64|MT19937|pkl_file|_lam_max|sample, expected"),
    ("results without axes are arrays",
     r"isinstance\(.*np\.(integer|float64|ndarray|bool)|type\((vals|actual|res|out)\)|"
     r"is np\.False_"),
    ("errors about values, raised when the result is evaluated",
     r"test_exceptions_not_invertible|generalized_raise"),
    ("parts inside of NumPy",
     r"resolve_dtypes|_umath_tests|umt\.|_add_newdoc|conv1d|__doc__|metadata|signature|getrefcount|"
     r"array_indexing|functools.partial\(<built-in|GenericAlias|__all__|RuntimeSubscriptable|"
     r"is not subscriptable|the process ended|memory|__array_interface__|lapack_lite|ctypes|"
     r"_multiarray_tests"),
)  # fmt: skip
#: Likewise, of failures that are no wrong number.
OTHERS = (
    ("no error where NumPy has one", r"DID NOT RAISE|not raised"),
    ("another text or class of an error", r"Regex pattern|does not match \"|\" does not match|"
     r"assert_raises|endswith|pytest\.raises|in str\("),
    ("an error where NumPy has none", r"^(?!.*AssertionError)[\w.]*(Error|Exception)\b"),
)  # fmt: skip


def reason_of(name: str, statement: str, error: str) -> tuple[bool, str]:
    """Whether a failure is about what cannot be, and its reason."""
    text = "\n".join((name, statement, error))
    for reason, pattern in CANNOT:
        if re.search(pattern, text):
            return True, reason
    for reason, pattern in OTHERS:
        if re.search(pattern, f"{statement}\n{error}", re.MULTILINE):
            return False, reason
    return False, "another result: value, type or shape"
