"""Run pytest in processes of their own, each with a share of the tests; one that ends starts again.

The plug-in `cupy_tree.plugin` chooses the share and writes a row for each test.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_DONE = 0, 1  # exit codes of pytest: all passed, some failed


def run_shares(
    command: Sequence[str],
    options: argparse.Namespace,
    environment: Mapping[str, str],
    key: Callable[[_Row], Any],
) -> list[_Row]:
    """The rows of all tests, sorted; they are also written to ``options.out``.

    Parameters
    ----------
    command : sequence of str
        Runs pytest with the plug-in.
    options : argparse.Namespace
        Has `out`, `workers`, `seconds` in all, and `limit` of seconds for a test.
    environment : mapping
        More variables for the processes.
    key : callable
        The identity of a row: of several with the same, the last one counts.
    """
    variables = os.environ | environment | {
        "CUPY_TREE_END": str(time.time() + options.seconds),
        "CUPY_TREE_LIMIT": str(options.limit),
        "PYTHONHASHSEED": "0",  # all processes find the same tests
    }  # fmt: skip

    def run_share(share: int) -> list[_Row]:
        rows = options.out.with_suffix(f".{share}.jsonl").resolve()
        rows.unlink(missing_ok=True)
        own = {"CUPY_TREE_ROWS": str(rows), "CUPY_TREE_SHARE": f"{share}/{options.workers}"}
        while (
            subprocess.run(command, stdout=sys.stderr, env=variables | own).returncode not in _DONE
        ):
            print(f"process {share} ended, and starts again", file=sys.stderr)
        return [tuple(json.loads(line)) for line in rows.read_text().splitlines()]  # type: ignore[misc]

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        shares = pool.map(run_share, range(options.workers))
        rows = sorted({key(row): row for share in shares for row in share}.values())
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows
