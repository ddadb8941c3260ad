"""Compare the code that two versions of the compiler emit.

``python tools/emitted_code.py write OUT.json [--mlx FOLDER] [--count N]`` compiles the kernels of
``benchmarks/cpu.py``, and N kernels of a checkout of MLX, for this CPU and for NVIDIA's sm_90.
``python tools/emitted_code.py compare OLD.json NEW.json`` prints kernels whose code differs in more
than the names of symbols, labels and virtual registers.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import metalloid as mtl

_OWN = Path(mtl.__file__).parent / "bench" / "kernels.metal"
_MLX = Path("mlx/backend/metal/kernels")
_GPU = "cuda:sm_90"
_NAME = re.compile(r"(?:\.L|\$L_*|mtl[._])[\w.$]+|%\w+|\$[A-Za-z]\w*|_ZN?\w+")
_DIGEST = re.compile(r"\b[0-9a-f]{16,}\b")
_COMMENT = re.compile(r"[ \t]*(?:#|//).*$", re.M)
_X86_REGISTER = re.compile(
    r"%(?:[re]?[abcd][xhl]|[re]?[sd]i|[sd]il|[re]?[sb]p|[re]?ip|r\d+[bwd]?|[xyz]mm\d+|k\d|st|[c-g]s)$"
)


def kernels(mlx: Path | None, count: int, device: str) -> Iterator[tuple[str, str]]:
    """Name and assembly of each kernel."""
    where = {"target": device} if device == _GPU else {"device": device}

    def library(path: Path, **options: list[Path]) -> mtl.Library:
        return mtl.library(path=path, **where, **options)

    own = library(_OWN)
    for name in own:
        yield name, _assembly(own, name)
    paths = sorted((mlx / _MLX).rglob("*.metal")) if mlx else []
    libraries = {
        path: library(path, include_dirs=[mlx]) for path in paths if "_nax" not in path.stem
    }
    entries = [(path, name) for path, of_file in libraries.items() for name in of_file]
    for path, name in random.Random(1).sample(entries, count if entries else 0):
        yield name, _assembly(libraries[path], name)


def _assembly(library: mtl.Library, name: str) -> str:
    try:
        stages = dict(library.function(name).asm)
    except mtl.MetalloidError as error:  # function constants are missing, say
        return f"{type(error).__name__}: {error}"
    return next(text for stage, text in stages.items() if stage in ("x86", "arm64", "ptx"))


def normalized(assembly: str) -> list[str]:
    """Lines without comments, and with names by the order in which they occur."""
    numbers: dict[str, str] = {}
    fresh = (f"name{n}" for n in itertools.count())

    def number(match: re.Match[str]) -> str:
        if _X86_REGISTER.match(match[0]):
            return match[0]
        if match[0] not in numbers:
            numbers[match[0]] = next(fresh)
        return numbers[match[0]]

    text = _DIGEST.sub("digest", _COMMENT.sub("", assembly))
    return [_NAME.sub(number, line) for line in text.splitlines() if line.strip()]


def write(out: Path, mlx: Path | None, count: int) -> None:
    """Save the code of all kernels as JSON."""
    codes = {device: dict(kernels(mlx, count, device)) for device in ("cpu", _GPU)}
    out.write_text(json.dumps(codes))
    print({device: len(of_device) for device, of_device in codes.items()})


def compare(old: Path, new: Path) -> int:
    """Print what differs; how many kernels do."""
    before, after = (json.loads(path.read_text()) for path in (old, new))
    count = 0
    for device, of_device in before.items():
        for name, text in of_device.items():
            first, second = normalized(text), normalized(after[device].get(name, ""))
            if first != second:
                count += 1
                pairs = itertools.zip_longest(first, second, fillvalue="")
                line, pair = next((n, p) for n, p in enumerate(pairs) if p[0] != p[1])
                print(
                    f"{device}, {name}: {len(first)} and {len(second)} lines; line {line}: {pair}"
                )
        print(f"{device}: {len(of_device)} kernels compared")
    return count


def main() -> int:
    """Run the command line; 1 if code differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    writing = actions.add_parser("write")
    writing.add_argument("out", type=Path)
    writing.add_argument("--mlx", type=Path)
    writing.add_argument("--count", type=int, default=50)
    comparing = actions.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.action == "compare":
        return int(compare(given.old, given.new) > 0)
    write(given.out, given.mlx, given.count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
