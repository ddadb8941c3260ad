"""``python -m metalloid.compat.mlx program.py [arguments]``: run an MLX program on metalloid.

``--has-metal`` before the program lets it run its kernels in Metal; see `install`.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from metalloid.compat.mlx.installation import install

_USAGE = "usage: python -m metalloid.compat.mlx [--has-metal] (program.py | -m module) [arguments]"


def main(arguments: Sequence[str]) -> None:
    """Run a program, or a module after ``-m``, where ``mlx.core`` is metalloid's."""
    has_metal = list(arguments[:1]) == ["--has-metal"]
    arguments = arguments[has_metal:]
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit(_USAGE if not arguments else print(_USAGE))
    install(has_metal)
    if arguments[0] == "-m":
        if len(arguments) < 2:
            raise SystemExit(_USAGE)
        sys.argv[:] = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv[:] = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
