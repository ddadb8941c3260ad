"""``metalloid info``: devices, compiler, cache, settings. Works on any machine."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from typing import Any

from metalloid import __version__
from metalloid.errors import MetalloidError
from metalloid.settings import settings

_PACKAGES = ("numpy", "ml_dtypes", "ziglang", "platformdirs", "rich", "pillow",
             "pyobjc-framework-Metal")  # fmt: skip


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "info", help="show devices, compiler, cache and settings"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="print all that is known of each device, as plain text",
    )
    parser.set_defaults(act=_act)


def report() -> str:
    """Versions and devices as plain text, for a report; no path of this machine is in it."""
    from metalloid.runtime.devices.registry import devices

    rows = [*_versions(), *_devices()]
    for device in devices():
        rows += [(f"{device.name} {name}", value) for name, value in device.details().items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _act(options: argparse.Namespace) -> int:
    if options.report:
        print(report())
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for title, rows in _sections():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(name), Text(value))
        console.print(table)
        console.print()
    return 0


def _sections() -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        ("Devices", _devices()),
        ("Compiler", _compiler()),
        ("Cache", _cache()),
        ("Settings", [(name, f"{value!r}: {doc}") for _, name, value, doc in settings.table()]),
        ("Versions", _versions()),
    ]


def _devices() -> list[tuple[str, str]]:
    from metalloid.runtime.devices.registry import absent_devices, devices

    rows = []
    for device in devices():
        information = device.info()
        gigabytes = information.memory_bytes / 2**30
        rows.append((device.name, f"{information.description}, {gigabytes:.1f} GiB"))
    rows += [(f"no {kind}", reason) for kind, reason in absent_devices().items()]
    return rows


def _compiler() -> list[tuple[str, str]]:
    from metalloid.compiler.toolchain import clang

    try:
        return [("clang", clang.version()), ("from", str(clang.executable()))]
    except MetalloidError as error:
        return [("clang", str(error))]


def _cache() -> list[tuple[str, str]]:
    from metalloid.compiler.toolchain.cache import shared_cache

    cache = shared_cache()
    entries = cache.entries()
    used = sum(size for _, size, _ in entries) / 2**20
    return [
        ("folder", f"{cache.folder}{f' (not used: {cache.refusal})' if cache.refusal else ''}"),
        ("entries", f"{len(entries)}, {used:.1f} MiB of {cache.limit / 2**20:.0f}"),
    ]


def _versions() -> list[tuple[str, str]]:
    rows = [("metalloid", __version__), ("Python", platform.python_version())]
    for package in _PACKAGES:
        try:
            rows.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    return [*rows, ("platform", platform.platform())]
