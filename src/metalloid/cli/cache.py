"""``metalloid cache``: where compiled kernels are kept, how much, and away with them."""

from __future__ import annotations

import argparse
from typing import Any


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "cache", help="show, trim or clear the cache of compiled kernels"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--clear", action="store_true", help="remove every entry")
    group.add_argument(
        "--trim",
        metavar="SIZE",
        help="remove the oldest entries until the cache has at most this size, such as 512M",
    )
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from metalloid.compiler.toolchain.cache import shared_cache
    from metalloid.errors import ArgumentError
    from metalloid.setting_parsers import parse_size

    cache = shared_cache()
    if options.clear:
        print(f"removed {cache.clear()} entries from {cache.folder}")
    elif options.trim:
        try:
            limit = parse_size(options.trim)
        except ValueError:
            raise ArgumentError(
                f"[cache] {options.trim!r} is not a size; write 512M or 2G."
            ) from None
        print(f"removed {cache.trim(limit)} entries from {cache.folder}")
    else:
        entries = cache.entries()
        used = sum(size for _, size, _ in entries)
        print(f"{cache.folder}: {len(entries)} entries, {used / 2**20:.1f} MiB")
        if cache.refusal:
            print(f"not used: {cache.refusal}")
    return 0
