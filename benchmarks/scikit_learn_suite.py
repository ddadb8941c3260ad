"""scikit-learn's own tests of the array API, with `metalloid` as the namespace.

    pip install pytest scikit-learn
    SCIPY_ARRAY_API=1 python benchmarks/scikit_learn_suite.py [--files metrics/tests/test_common.py]

Prints a table by file, and the error of each failure.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn
from dask_suite import Outcomes, print_table
from sklearn.utils import _array_api

_ROOT = Path(sklearn.__file__).parent


def _namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield "metalloid"


def _combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, None, str]]:
    for dtype in ("float64", "float32"):
        yield "metalloid", None, dtype


def _files() -> list[str]:
    """Test files that use the namespaces."""
    paths = itertools.chain(_ROOT.rglob("tests/test_*.py"), _ROOT.rglob("tests/*/test_*.py"))
    names = ("yield_namespace_device_dtype_combinations", "yield_namespaces")
    return sorted(
        str(path.relative_to(_ROOT))
        for path in set(paths)
        if any(name in path.read_text() for name in names)
    )


def main() -> None:
    """Run the tests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", nargs="*", default=None)
    options = parser.parse_args()
    _array_api.yield_namespaces = _namespaces
    _array_api.yield_namespace_device_dtype_combinations = _combinations
    outcomes = Outcomes()
    for file in options.files or _files():
        module = "sklearn." + file.removesuffix(".py").replace("/", ".")
        outcomes.file = file
        pytest.main(["--pyargs", module, "-q", "-k", "metalloid", "-p", "no:cacheprovider",
                     "--no-summary", "--tb=line", "-W", "ignore"], plugins=[outcomes])  # fmt: skip
        sys.stdout.flush()
    print_table(outcomes)


if __name__ == "__main__":
    main()
