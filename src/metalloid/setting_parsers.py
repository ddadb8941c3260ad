"""Read the values of settings from text; what is no value raises ``ValueError`` or ``KeyError``."""

from __future__ import annotations

_SIZES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """Bytes of a text like ``512M``."""
    unit = _SIZES.get(text.strip()[-1:].lower(), 1)
    digits = text.strip().rstrip("kKmMgGtT")
    return int(float(digits) * unit)


def seconds(text: str) -> float:
    """A number of seconds."""
    number = float(text)
    if not number >= 0:  # not a number is refused, too
        raise ValueError(text)
    return number


def seed(text: str) -> int | None:
    """A number of 64 bits."""
    number = int(text)
    if not 0 <= number < 2**64:
        raise ValueError(text)
    return number


def truth(text: str) -> bool:
    """True of ``1`` and ``true``, False of ``0`` and ``false``."""
    return {"1": True, "true": True, "0": False, "false": False}[text.strip().lower()]


class Choice:
    """Parses one of a set of words."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __call__(self, text: str) -> str:
        """The word that the text has."""
        word = text.strip().lower()
        if word not in self.choices:
            raise ValueError(text)
        return word


def language(text: str) -> str:
    """A version of MSL: ``4.0``."""
    major, minor = text.strip().split(".")
    return f"{int(major)}.{int(minor)}"
