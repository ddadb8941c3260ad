"""The reference of `metalloid.numpy`: every name with an example, which NumPy computes as well.

`docs/numpy_examples.txt` has a line for each name: statements, of which the last is an expression.
``python tools/numpy_reference.py`` runs all of them and compares what they print with NumPy's; of
random numbers it compares types and shapes. `tools/build_site.py` writes the pages.
"""

from __future__ import annotations

import contextlib
import inspect
import multiprocessing
import operator
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import numpy

import metalloid.numpy as own

#: The pages, by the names of modules and classes.
NUMPY_PAGES = tuple(
    f"metalloid.numpy{part}" for part in ("", ".ndarray", ".linalg", ".fft", ".random.Generator")
)
EXAMPLES = Path(__file__).parents[1] / "docs" / "numpy_examples.txt"


class Example(NamedTuple):
    """An example of a name, such as ``"linalg.solve"``, in a section of the reference."""

    section: str
    name: str
    statements: tuple[str, ...]


def examples() -> Iterator[Example]:
    """All examples, in the order of the file."""
    section = ""
    for line in EXAMPLES.read_text("utf-8").splitlines():
        if line.startswith("# "):
            section = line[2:]
        else:
            name, _, code = line.partition(": ")
            if _has(numpy, name):  # versions of NumPy have different names
                yield Example(section, name, tuple(code.split("; ")))


def _has(namespace: Any, name: str) -> bool:
    try:
        operator.attrgetter(name)(namespace)
    except AttributeError:
        return False
    return True


def value_of(example: Example, namespace: Any) -> Any:
    """The value of the last statement of an example, with a namespace as ``np``."""
    names = {"np": namespace}
    for statement in example.statements[:-1]:
        exec(statement, names)
    return eval(example.statements[-1], names)


@contextlib.contextmanager
def working_folder() -> Iterator[None]:
    """An empty current folder, as some examples write files."""
    former = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(former)


def outputs() -> dict[str, str]:
    """The text that each example prints, by name, after the comparison with NumPy.

    Most of the time goes to compiling kernels, in several processes.
    """
    count = os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        shares = list(pool.map(_outputs_of, ([*examples()][k::count] for k in range(count))))
    differences = [text for _, share in shares for text in share]
    if differences:
        raise SystemExit("\n".join(differences))
    return {name: text for share, _ in shares for name, text in share.items()}


def _outputs_of(share: list[Example]) -> tuple[dict[str, str], list[str]]:
    """The text that examples print, and differences from NumPy's."""
    texts, differences = {}, []
    with working_folder():
        for example in share:
            try:
                value, expected = value_of(example, own), value_of(example, numpy)
            except Exception as error:
                differences.append(f"{example.name}: {error!r}")
                continue
            texts[example.name] = str(value)
            if example.name.startswith("random."):
                same = type_of(value) == type_of(expected)
            else:
                same = str(value) == str(expected)
            if not same:
                differences.append(f"{example.name}: {value!s}, in NumPy {expected!s}")
    return texts, differences


def type_of(value: Any) -> tuple[Any, ...]:
    """The dtype and shape of an array, or the type of another value."""
    if isinstance(value, bytes | int):
        return (type(value),)
    array = numpy.asarray(value)
    return array.dtype, array.shape


def signature_of(value: Any) -> str:
    """The parameters of a function, without types; empty for other objects."""
    if not callable(value) or inspect.isclass(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def summary_of(value: Any) -> str:
    """The first line of a docstring."""
    text = inspect.getdoc(value) if callable(value) or isinstance(value, property) else None
    return re.sub(r"([|*])", r"\\\1", text.splitlines()[0]) if text else ""


def write_numpy_reference(folder: Path) -> None:
    """Write a page for each part of the namespace, with all names and what they print."""
    texts = outputs()
    pages: dict[str, list[str]] = {}
    section = ""
    for example in examples():
        module, _, name = example.name.rpartition(".")
        title = f"metalloid.numpy.{module}".rstrip(".")
        lines = pages.setdefault(title, [f"{title}", "=" * len(title), ""])
        if example.section != section and not module:
            lines += [example.section, "-" * len(example.section), ""]
        section = example.section
        value: Any = own
        for part in example.name.split("."):
            value = inspect.getattr_static(value, part, None) or getattr(value, part)
        shown = f"{name}{signature_of(value)}"
        prompt = "".join(f">>> {statement}\n" for statement in example.statements[:-1])
        prompt += f">>> print({example.statements[-1]})\n{texts[example.name]}\n"
        kind = "function" if "(" in shown else "data"
        lines += [
            f".. py:{kind}:: {shown}", "   :no-index:", "", f"   {summary_of(value)}", "",
            "   .. code-block:: pycon", "", indent(prompt, "      "),
        ]  # fmt: skip
    assert set(pages) == set(NUMPY_PAGES), list(pages)
    folder.mkdir(parents=True, exist_ok=True)
    for title, lines in pages.items():
        (folder / f"{title}.rst").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    print(len(outputs()), "examples print what NumPy prints")
