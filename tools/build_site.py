"""Builds the documentation: ``python tools/build_site.py`` writes docs/_build.

Needs ``pip install '.[docs]'``. Runs the scripts of the gallery and the pages of the tutorial for
their pictures, writes the pages of the API reference to docs/generated, and runs Sphinx, for which
warnings, such as broken links between pages, are errors.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import indent
from typing import Any

from numpy_reference import NUMPY_PAGES, write_numpy_reference

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GENERATED = DOCS / "generated"
GALLERY = ROOT / "examples" / "gallery"
#: Modules of the reference, with their titles.
MODULES = {
    "metalloid": "Kernels, arrays and transforms",
    "metalloid.linalg": "Linear algebra",
    "metalloid.differentiate": "Gradients of kernels",
    "metalloid.fft": "Fourier transforms",
    "metalloid.random": "Random numbers",
    "metalloid.nn": "Neural networks",
    "metalloid.metal": "Apple GPUs",
    "metalloid.compat.guide": "In place of the Guide to Hacking",
    "metalloid.compat.metalcompute": "In place of metalcompute",
    "metalloid.compat.metalpy": "In place of MetalPy",
}


def run(*command: str, cwd: Path) -> None:
    """Run a command; where it fails, its output is the error."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def run_all(commands: list[list[str]], folder: Path) -> None:
    """Run commands in a folder, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: run(*command, cwd=folder), commands))


def write_gallery() -> None:
    """Run each script, and write a page with its picture, its kernels and itself."""
    folder = GENERATED / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.stem for path in GALLERY.glob("*.metal"))
    index = [
        "Gallery", "=======", "",
        "Each picture is drawn by the Metal kernels on its page, when this site is built.",
        "The scripts are in ``examples/gallery``.", "",
        ".. container:: gallery", "",
    ]  # fmt: skip
    scripts = [[sys.executable, str(GALLERY / f"{name}.py"), f"{name}.png"] for name in names]
    run_all(scripts, folder)
    for name in names:
        about = ast.get_docstring(ast.parse((GALLERY / f"{name}.py").read_text("utf-8"))) or ""
        title = name.replace("_", " ").capitalize()
        listings = [
            f".. literalinclude:: /../examples/gallery/{name}.{kind}\n   :language: {language}\n"
            for kind, language in (("metal", "cpp"), ("py", "python"))
        ]
        picture = f".. image:: {name}.png\n   :alt: {title}\n"
        page = [title, "=" * len(title), "", about, "", picture, *listings]
        (folder / f"{name}.rst").write_text("\n".join(page), "utf-8")
        index += [
            f"   .. figure:: {name}.png", f"      :alt: {title}",
            f"      :target: {name}.html", "", f"      :doc:`{title} <{name}>`", "",
        ]  # fmt: skip
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in names), ""]
    (folder / "index.rst").write_text("\n".join(index), "utf-8")


def write_tutorial_pictures() -> None:
    """Run the pages of the tutorial, which save pictures in the current folder."""
    folder = GENERATED / "tutorial"
    folder.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, str(ROOT / "tools" / "run_page.py")]
    run_all(
        [[*program, str(page)] for page in sorted((DOCS / "tutorial").glob("[0-9]*.md"))], folder
    )


def public_names(module: str) -> Iterator[tuple[str, Any]]:
    """Each public name of a module and its value: functions, classes, dtypes and constants."""
    namespace = importlib.import_module(module)
    # `metalloid` adds the functions of arrays to its `__all__`.
    names = dir(namespace) if module == "metalloid" else namespace.__all__
    for name in sorted(names):
        value = getattr(namespace, name)
        if not name.startswith("_") and not inspect.ismodule(value):
            yield name, value


def more_examples() -> dict[str, str]:
    """Examples of names whose docstrings have none, by the full name."""
    blocks = (DOCS / "reference_examples.txt").read_text("utf-8").strip().split("\n\n")
    return {name: text for name, _, text in (block.partition("\n") for block in blocks)}


def run_examples() -> None:
    """Run `more_examples`; `tests/test_docstrings.py` runs those of docstrings."""
    import numpy

    import metalloid

    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name, text in more_examples().items():
        names = {"mtl": metalloid, "np": numpy}
        test = doctest.DocTestParser().get_doctest(text + "\n", names, name, None, None)
        assert test.examples, name
        runner.run(test)
    if runner.failures:
        raise SystemExit(f"{runner.failures} examples of docs/reference_examples.txt failed")


def has_example(value: Any) -> bool:
    """Whether a docstring of an object, or of a member of a class, has an example."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    if not callable(value):
        return False  # their docstrings are those of their types
    return any(test.examples for test in finder.find(inspect.unwrap(value), "name"))


def names_without_examples(module: str) -> list[str]:
    """The public names of a module without an example."""
    more = more_examples()
    return [
        name
        for name, value in public_names(module)
        if f"{module}.{name}" not in more and not has_example(value)
    ]


def write_reference() -> None:
    """Write a page for each module, with all public names."""
    folder = GENERATED / "api"
    folder.mkdir(parents=True, exist_ok=True)
    examples = more_examples()
    for module, title in MODULES.items():
        heading = f"{module}: {title}"
        lines = [heading, "=" * len(heading), ""]
        for name, value in public_names(module):
            lines += [name, "-" * len(name), ""]
            if inspect.isclass(value):
                lines += [f".. autoclass:: {module}.{name}", "   :members:", ""]
            elif callable(value):
                lines += [f".. autofunction:: {module}.{name}", ""]
            else:
                about = f"{type(value).__name__}: ``{value!r}``"
                if "\n" in about:
                    about = inspect.getdoc(value).partition("\n")[0]
                lines += [f".. py:data:: {module}.{name}", "", f"   {about}", ""]
            if example := examples.get(f"{module}.{name}"):
                lines += ["", ".. code-block:: pycon", "", *indent(example, "   ").split("\n"), ""]
        (folder / f"{module}.rst").write_text("\n".join(lines), "utf-8")
    names = (f"   {name}" for name in (*MODULES, *NUMPY_PAGES))
    toctree = [".. toctree::", "   :maxdepth: 1", "", *names, ""]
    title = "API reference"
    (folder / "index.rst").write_text("\n".join([title, "=" * len(title), "", *toctree]), "utf-8")


def write_numpy_pages() -> None:
    """Write the reference of `metalloid.numpy`."""
    write_numpy_reference(GENERATED / "api")


def print_examples() -> None:
    """Print how many public names have an example."""
    for module in MODULES:
        count, without = len(list(public_names(module))), names_without_examples(module)
        print(f"{module}: {count - len(without)} of {count} names have an example")
        if without:
            print("  without:", ", ".join(without))


def main() -> None:
    """Build the site, and print the time of each part."""
    parts = (
        write_gallery, write_tutorial_pictures, run_examples, write_reference, write_numpy_pages,
        print_examples,
    )  # fmt: skip
    for part in parts:
        started = time.perf_counter()
        part()
        print(f"{part.__name__}: {time.perf_counter() - started:.1f} s", flush=True)
    command = [
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "auto",
        str(DOCS),
        str(DOCS / "_build"),
    ]
    started = time.perf_counter()
    code = subprocess.run([sys.executable, *command], check=False, env=os.environ).returncode
    print(f"sphinx: {time.perf_counter() - started:.1f} s")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
