"""The stubs of `metalloid.numpy`: signatures of names that are defined when it is imported.

``python tools/numpy_stub.py`` writes them into the package; a test keeps them current. Type
checkers and editors read them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

import metalloid.numpy as own
from metalloid.arrays.array import Array
from metalloid.numpy import host

FOLDER = Path(own.__file__).parent
NAMESPACE, METHODS = FOLDER / "__init__.pyi", FOLDER / "method_signatures.pyi"
#: Signatures of functions that NumPy computes are those of NumPy's version.
VERSION = f"Those of NumPy {'.'.join(numpy.__version__.split('.')[:2])}."
HEAD = f'''"""{{summary}}: written by tools/numpy_stub.py. {VERSION}"""

from builtins import bool as _bool
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.lowering.reductions import Axis
'''
_SUBMODULES = ("fft", "host", "linalg", "polynomial", "random")
_OBJECTS = ("c_", "mgrid", "ogrid", "r_", "index_exp", "s_")


def _annotation(value: Any, is_result: bool = False) -> str:
    text = "Any" if value is inspect.Parameter.empty else str(value)
    text = re.sub(r"\bShape\b", "Any", text)
    text = re.sub(r"\bbool\b", "_bool", text)  # NumPy has another one
    return re.sub(r"\bArray\b", "ndarray", text) if is_result else text


def _default(value: Any) -> str:
    is_literal = isinstance(value, bool | int | float | str | None)
    return repr(value) if is_literal and value == value else "..."


def parameters(function: Callable[..., Any]) -> str:
    """The parameters of a function, as a stub has them."""
    parts, last = [], None
    for parameter in inspect.signature(function).parameters.values():
        kind = parameter.kind
        if last is parameter.POSITIONAL_ONLY is not kind:
            parts.append("/")
        if kind is parameter.KEYWORD_ONLY and last not in (kind, parameter.VAR_POSITIONAL):
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        text = f"{stars}{parameter.name}: {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        parts.append(text)
        last = kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts)


def definition(name: str, function: Callable[..., Any], indent: str = "") -> str:
    """A function of a stub, with the first sentence of its text."""
    source = function
    if name in host.ON_HOST and indent == "":
        source = getattr(numpy, name)
    try:
        signature = parameters(source)
    except ValueError:  # NumPy's functions in C have none
        signature = "*args: Any, **kwargs: Any"
    result = _annotation(inspect.signature(function).return_annotation, is_result=True)
    summary = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    signature = re.sub(r"^(self|a|x|array)\b[^,]*", "self", signature) if indent else signature
    return (
        f"{indent}def {name}({signature}) -> {result}:\n"
        f'{indent}    """{summary}"""\n{indent}    ...\n'
    )


def namespace() -> str:
    """The stub of the namespace."""
    numpys = [n for n in own.__all__ if n in host.SAME and n not in _OBJECTS]
    modules = [n for n in numpys if isinstance(getattr(numpy, n), ModuleType)]
    lines = [HEAD.format(summary="NumPy's names")]
    lines += [f"from metalloid.numpy import {name} as {name}\n" for name in _SUBMODULES]
    lines += [f"import numpy.{name} as {name}\n" for name in modules if name != "emath"]
    lines.append("from metalloid.numpy.array import ndarray as ndarray\n")
    lines.append("from metalloid.numpy.ufunc import ufunc as ufunc\n")
    for name in numpys:
        if name not in modules:
            lines.append(f"from numpy import {name} as {name}\n")
    lines.append("from numpy.lib import scimath as emath\n\n")
    lines.append("CHAPTERS: tuple[Any, ...]\nCOUNTERPARTS: dict[Any, Any]\n__all__: list[str]\n")
    lines.append("__version__: str\n__array_api_version__: str\n")
    lines.append("def __array_namespace_info__() -> Any: ...\ndef __dir__() -> list[str]: ...\n")
    for name in own.__all__:
        value = getattr(own, name)
        if (name in host.SAME and name not in _OBJECTS) or name in ("ndarray", "ufunc"):
            continue
        if isinstance(value, own.ufunc):
            lines.append(f"{name}: ufunc\n")
        elif inspect.isfunction(value):
            lines.append(definition(name, value))
        else:
            lines.append(f"{name}: Any\n")
    return "".join(lines)


def _members() -> Iterator[str]:
    for name in sorted(dir(own.ndarray)):
        value = inspect.getattr_static(own.ndarray, name)
        if name.startswith("_") or value is inspect.getattr_static(Array, name, None):
            continue
        if isinstance(value, property):
            result = _annotation(inspect.signature(value.fget).return_annotation, is_result=True)  # type: ignore[arg-type]
            yield f"    @property\n    def {name}(self) -> {result}: ...\n"
            if value.fset:
                yield f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n"
        else:
            yield definition(name, value, "    ")


def methods() -> str:
    """The stub of the base class of arrays."""
    text = "# mypy: disable-error-code=override\n" + HEAD.format(summary="Methods of arrays")
    text += (
        "from metalloid.numpy.array import ndarray\nfrom metalloid.numpy.methods import flatiter\n"
    )
    return f"{text}\nclass Methods(Array):\n" + "".join(_members())


STUBS = {NAMESPACE: namespace, METHODS: methods}

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text())
