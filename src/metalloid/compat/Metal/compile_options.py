"""Options of a library's compilation."""

from __future__ import annotations

from typing import Any

from metalloid.compat.Metal.constants import (
    MTLLanguageVersion4_0,
    MTLLibraryOptimizationLevelDefault,
    MTLLibraryTypeExecutable,
    MTLMathFloatingPointFunctionsFast,
    MTLMathModeFast,
    MTLMathModeRelaxed,
    MTLMathModeSafe,
)
from metalloid.compat.Metal.conversions import unsigned

_MATH_MODES = {
    MTLMathModeSafe: "safe",
    MTLMathModeRelaxed: "relaxed",
    MTLMathModeFast: "fast",
}


class MTLCompileOptions:
    """Options of `newLibraryWithSource_options_error_`, with Metal's defaults."""

    __slots__ = (
        "_functions",
        "_language_version",
        "_library_type",
        "_macros",
        "_math_mode",
        "_optimization_level",
        "_preserves_invariance",
    )

    def __init__(self) -> None:
        self._math_mode = MTLMathModeFast
        self._functions = MTLMathFloatingPointFunctionsFast
        self._language_version = MTLLanguageVersion4_0
        self._library_type = MTLLibraryTypeExecutable
        self._optimization_level = MTLLibraryOptimizationLevelDefault
        self._macros: dict[str, Any] | None = None
        self._preserves_invariance = False

    @classmethod
    def alloc(cls) -> MTLCompileOptions:
        """A new one, before `init`."""
        return cls()

    new = alloc

    def init(self) -> MTLCompileOptions:
        """Itself."""
        return self

    def as_keywords(self) -> dict[str, Any]:
        """The keyword arguments for `metalloid.library`."""
        return {"math_mode": _MATH_MODES[self._math_mode], "defines": self._macros or {}}

    def fastMathEnabled(self) -> bool:
        """Whether the mode is fast."""
        return self._math_mode == MTLMathModeFast

    def setFastMathEnabled_(self, enabled: bool) -> None:
        """Choose the fast or the safe mode."""
        self._math_mode = MTLMathModeFast if enabled else MTLMathModeSafe

    def mathMode(self) -> int:
        """``MTLMathModeSafe``, ``Relaxed`` or ``Fast``."""
        return self._math_mode

    def setMathMode_(self, mode: int) -> None:
        """Choose a mode."""
        if unsigned(mode) not in _MATH_MODES:
            raise ValueError(f"{mode} is not an MTLMathMode")
        self._math_mode = mode

    def mathFloatingPointFunctions(self) -> int:
        """Fast or precise functions."""
        return self._functions

    def setMathFloatingPointFunctions_(self, functions: int) -> None:
        """Remembered; the functions follow the mode."""
        self._functions = unsigned(functions)

    def languageVersion(self) -> int:
        """The version of the language."""
        return self._language_version

    def setLanguageVersion_(self, version: int) -> None:
        """Remembered; every text is compiled as the newest."""
        self._language_version = unsigned(version)

    def libraryType(self) -> int:
        """Executable or dynamic."""
        return self._library_type

    def setLibraryType_(self, library_type: int) -> None:
        """Remembered; every library is executable."""
        self._library_type = unsigned(library_type)

    def optimizationLevel(self) -> int:
        """The optimisation goal."""
        return self._optimization_level

    def setOptimizationLevel_(self, level: int) -> None:
        """Remembered; everything is optimised for speed."""
        self._optimization_level = unsigned(level)

    def preserveInvariance(self) -> bool:
        """Whether positions of vertices come out the same."""
        return self._preserves_invariance

    def setPreserveInvariance_(self, preserve: bool) -> None:
        """Remembered; there are no vertices."""
        self._preserves_invariance = bool(preserve)

    def preprocessorMacros(self) -> dict[str, Any] | None:
        """Macros by name."""
        return self._macros

    def setPreprocessorMacros_(self, macros: dict[str, Any] | None) -> None:
        """Define macros: numbers or texts."""
        if macros is not None and not all(isinstance(name, str) for name in macros):
            raise ValueError("macros must be a dictionary from strings to numbers or strings")
        self._macros = None if macros is None else dict(macros)
