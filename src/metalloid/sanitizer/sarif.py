"""Findings as SARIF 2.1.0, which shows them at their lines: on GitHub, in editors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from metalloid.runtime.launch.findings import (
    CONVERSION,
    INACTIVE_LANE,
    MISALIGNED,
    NAN,
    RACE,
    SHIFT,
    TEXEL,
    UNINITIALISED,
    Finding,
    Participant,
)

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    RACE: "Two threads access the same memory without order, and one of them writes.",
    UNINITIALISED: "A thread reads memory that has not been written.",
    INACTIVE_LANE: "A simdgroup function reads a lane that does not take part.",
    CONVERSION: "A floating-point number is converted to an integer type that does not have it.",
    MISALIGNED: "An address is no multiple of the alignment of the accessed type.",
    SHIFT: "A number is shifted by as many bits as its type has, or more.",
    TEXEL: "A thread reads or writes a texel that the texture does not have.",
    NAN: "An operation of floating-point numbers has no value.",
}


def sarif_text(findings: Iterable[Finding]) -> str:
    """The text of a SARIF file with the findings."""
    rules = [
        {"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()
    ]  # fmt: skip
    driver = {"name": "metalloid", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def write_sarif(path: str | os.PathLike[str], findings: Iterable[Finding]) -> None:
    """Write findings to a SARIF file.

    Parameters
    ----------
    path : path-like
    findings : iterable of Finding
    """
    Path(path).write_text(sarif_text(findings), encoding="utf-8")


def _result(finding: Finding) -> dict[str, Any]:
    *related, last = finding.accesses
    return {
        "ruleId": finding.kind,
        "level": "error",
        "message": {"text": f"[{finding.kernel}] {finding.summary}. {finding.hint}"},
        "locations": [_location(last)],
        "relatedLocations": [_location(access) for access in related],
    }


def _location(access: Participant) -> dict[str, Any]:
    """The position of an access; of a text without a file, the name that messages give it."""
    text = f"thread {access.thread} of threadgroup {access.threadgroup}: {access.access}"
    location: dict[str, Any] = {"message": {"text": text}}
    if access.file is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": Path(access.file).as_posix()},
            "region": {"startLine": access.line, "startColumn": access.column},
        }
    return location
