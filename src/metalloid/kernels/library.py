"""Libraries: MSL source, compiled for a device, whose kernels are attributes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from metalloid.compiler.frontend.unit import (
    BOUNDS,
    PROGRAM_SOURCE,
    Bounds,
    Options,
    ResolvedBounds,
)
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.compiler.toolchain.target import MATH_MODES, MathMode
from metalloid.errors import (
    ArgumentError,
    CompileError,
    MetalloidError,
    UnknownFunction,
)
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.kernel_calls import use_native_calls
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device, get_target
from metalloid.runtime.launch.program import Program
from metalloid.settings import settings

if TYPE_CHECKING:  # bundles of kernels load without them
    from metalloid.msl.diagnostics import Diagnostic
    from metalloid.msl.function_constants import FunctionConstant
    from metalloid.runtime.launch.refutation import Refutation, ThreadCode


class Library:
    """The kernels of one MSL source; made by `library`.

    Every kernel is an attribute (``lib.saxpy``) and an item (``lib["saxpy"]``). A kernel is
    compiled on first access; the whole text is checked when the library is created.

    Libraries and their kernels can be pickled, as text and settings. They are compiled again where
    they are unpickled, on the device of the same name; included files must exist there.

    Attributes
    ----------
    device : Device
    source : str
        The MSL source.
    warnings : tuple of Diagnostic
        The compiler's warnings.
    """

    #: Whether what Apple's compiler is known to refuse is refused, or leads to warnings: these.
    _requires_portable = _warns_of_portability = False
    _not_portable: tuple[Diagnostic, ...] = ()

    def __init__(
        self, source: str, file: str, options: Options, device: Device, portable: bool = False
    ) -> None:
        from metalloid.compiler.frontend.translate import translate  # here and below: bundles
        from metalloid.runtime.devices.offline import OfflineDevice  # load without them

        self.device, self.source = device, source
        self._requires_portable = portable
        self._warns_of_portability = not portable and not options.is_generated and (
            options.check or settings.check
        )  # fmt: skip
        is_here = not isinstance(device, OfflineDevice)
        self._recipe: tuple[Any, ...] = (source, file, options, device.name, is_here, portable)
        self._unit = translate(source, file, options, device.target, shared_cache())
        self._kernels: dict[tuple[str, tuple[tuple[int, str], ...]], Kernel] = {}
        self._file = file

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The compiler's warnings, at lines of the user's text."""
        return (*self._unit.warnings, *self._not_portable)

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the kernels, in source order."""
        return tuple(self._unit.kernels)

    @property
    def constants(self) -> tuple[FunctionConstant, ...]:
        """The text's function constants: each has a name, an index and a type."""
        return self._unit.constants

    def uses(self, word: str) -> bool:
        """Whether the text, with what it includes and without what it leaves out, has a word."""
        return re.search(rf"\b{re.escape(word)}\b", self._unit.text) is not None

    def function(self, name: str, constants: Mapping[Any, Any] | None = None) -> Kernel:
        """Return the kernel `name`.

        Parameters
        ----------
        name : str
            Its ``host_name``, or the function's own.
        constants : mapping, optional
            Values of function constants, by name or index.

        Raises
        ------
        UnknownFunction
            If there is no kernel of that name.
        CompileError
            If a template cannot be instantiated.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library('''
        ... constant int step [[function_constant(0)]];
        ... kernel void count(device int* x, uint i [[thread_position_in_grid]])
        ... { x[i] = i * step; }
        ... ''')
        >>> x = np.zeros(4, np.int32)
        >>> event = lib.function("count", {"step": 3})(x, threads=4)
        >>> x.tolist()
        [0, 3, 6, 9]
        """
        return self._function(name, self._constant_values(constants or {}))

    def _function(self, name: str, values: Mapping[int, str]) -> Kernel:
        key = (name, tuple(sorted(values.items())))
        if key not in self._kernels:
            entry = self._entry(name)
            program = self._program(entry, values)
            if self._requires_portable:
                from metalloid.compiler.frontend.portability import require_portable_memory

                require_portable_memory(self._unit, entry, program.threadgroup_bytes)
            elif self._warns_of_portability:
                from metalloid.compiler.frontend.portability import memory_warnings
                from metalloid.kernels.compile_warnings import show_warnings

                excess = memory_warnings(self._unit, entry, program.threadgroup_bytes)
                self._not_portable += tuple(excess)
                show_warnings(excess)
            recipe = self._kernel_recipe(name, values)
            refutation = self._refutation(program, entry, values)
            self._kernels[key] = Kernel(program, self.device, self.source, recipe, refutation)
            use_native_calls()
        return self._kernels[key]

    def _entry(self, name: str) -> EntryPoint:
        if name not in self:
            raise self._unknown(name)
        return self._unit.kernels[name]

    def _program(self, entry: EntryPoint, values: Mapping[int, str]) -> Program:
        program = self.device.compile(self._unit, entry, values)
        program.origin = self._unit, entry, values
        return program

    def _kernel_recipe(self, name: str, values: Mapping[int, str]) -> tuple[Any, ...]:
        return _restored_kernel, (self._recipe, name, dict(values))

    def _refutation(
        self, program: Program, entry: EntryPoint, values: Mapping[int, str]
    ) -> Refutation | None:
        """Refuses launches of a kernel that does not check its accesses; None if nothing does."""
        unit = self._unit
        if unit.options.bounds == "unchecked" or self.device.checks_accesses:
            return None
        if program.signature.textures:  # whose functions take seconds to compile
            return None
        from metalloid.runtime.launch.refutation import Refutation

        def code() -> ThreadCode | None:
            try:
                return get_device("cpu").thread_code(unit, entry, values)
            except MetalloidError:  # no compiler for this machine, or not for this kernel
                return None

        return Refutation(program.signature, code)

    def _require_kernels(self) -> None:
        """Refuse a text that has functions of the render pipeline only.

        Raises
        ------
        CompileError
            At the first of them.
        """
        if self.functions or not self._unit.other_stages:
            return
        name, stage = next(iter(self._unit.other_stages.items()))
        lines = self.source.splitlines()
        head = re.compile(rf"\b{re.escape(name)}\s*\(")
        matches = ((line, at) for line, text in enumerate(lines, 1) if (at := head.search(text)))
        line, at = next(matches, (1, None))
        message = (
            f"{stage} functions ({name!r}) are not supported: metalloid runs compute kernels only"
        )
        from metalloid.msl.diagnostics import Diagnostic

        column = at.start() + 1 if at else 1
        shown = lines[line - 1] if lines else ""
        refused = Diagnostic("error", self._file, line, column, message, shown)
        raise CompileError(str(refused), [refused])

    def _constant_values(self, constants: Mapping[Any, Any]) -> dict[int, str]:
        known: dict[str | int, FunctionConstant] = {}
        for constant in self._unit.constants:
            known[constant.name] = known[constant.index] = constant
        values = {}
        for name, value in constants.items():
            if name not in known:
                names = ", ".join(f"{c.name} ({c.index})" for c in self._unit.constants)
                raise ArgumentError(
                    f"[library] unknown function constant {name!r}; known: {names or 'none'}."
                )
            values[known[name].index] = known[name].literal(value)
        return values

    def _unknown(self, name: str) -> UnknownFunction:
        stage = self._unit.other_stages.get(name)
        if stage:
            return UnknownFunction(
                f"[library] {name!r} is a {stage} function; only kernel functions can run here."
            )
        if not self.functions:
            return UnknownFunction(
                f"[library] unknown kernel {name!r}: the source has no kernel function. "
                "Declare one: kernel void name(...)."
            )
        import difflib  # here, as few programs need it

        near = difflib.get_close_matches(name, self.functions, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(self.functions[:20])
        more = f" and {len(self.functions) - 20} more" if len(self.functions) > 20 else ""
        return UnknownFunction(f"[library] unknown kernel {name!r}.{hint} Known: {shown}{more}.")

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            kernel = self.function(name)
        except UnknownFunction as error:
            error.name, error.obj = name, None  # else Python adds the same suggestion
            raise
        self.__dict__[name] = kernel  # found without us the next time
        return kernel

    def __getitem__(self, name: str) -> Kernel:
        return self.function(name)

    def __contains__(self, name: object) -> bool:
        return name in self._unit.kernels

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self.functions if name.isidentifier())]

    def __repr__(self) -> str:
        count = len(self.functions)
        shown = ", ".join(self.functions[:8]) + (", ..." if count > 8 else "")
        others = [f"{stage} {name}" for name, stage in self._unit.other_stages.items()]
        more = f"; cannot run here: {', '.join(others[:8])}" if others else ""
        return f"<Library {self._file}: {count} kernel{'s' * (count != 1)} ({shown}){more}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._recipe


def _restored(
    source: str, file: str, options: Options, device: str, is_here: bool, portable: bool
) -> Library:
    """A library that was pickled: its text, compiled again or found in the cache."""
    where = get_device(device) if is_here else get_target(device)
    return Library(source, file, options, where, portable)


def _restored_kernel(recipe: tuple[Any, ...], name: str, values: Mapping[int, str]) -> Kernel:
    return _restored(*recipe)._function(name, values)


def library(
    source: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    include_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    math_mode: MathMode = "safe",
    defines: Mapping[str, Any] | None = None,
    device: str | Device | None = None,
    target: str | None = None,
    portable: bool = False,
    bounds: Bounds | None = None,
    check: bool = False,
) -> Library:
    """Compile MSL source to a library of kernels.

    Parameters
    ----------
    source : str
        The text; alternatively pass `path`.
    path : path-like, optional
        A ``.metal`` file. ``#include "..."`` searches its folder.
    include_dirs : path-like or sequence of path-like, optional
        Folders that are searched for includes.
    math_mode : {"safe", "relaxed", "fast"}, optional
        ``safe`` (default) is IEEE arithmetic; ``relaxed`` may fuse and reorder operations; ``fast``
        also uses the shorter functions of ``metal::fast`` and defines ``__FAST_MATH__``.
    defines : mapping, optional
        Macros by name; True means 1, None a macro without a value.
    device : str or Device, optional
        The device that will run the kernels; by default the default device.
    target : str, optional
        Architecture to compile for instead of a device, such as ``"cuda:sm_90"``,
        ``"cpu:x86-64-v3"`` or ``"cpu:aarch64"``; this machine need not have one. The result is
        ``kernel.asm["ptx"]`` (``"x86"``, ``"arm64"``); such a kernel cannot be launched.
    portable : bool, optional
        Refuse code that Apple's Metal compiler is known to refuse, although it would run here, such
        as ``double``, pointers without an address space, and more than 32 KB of threadgroup
        variables (the CPU has no such limit).
    bounds : {"checked", "unchecked"}, optional
        Whether an access outside of an argument, a threadgroup array or a private array ends the
        launch with `KernelFault`. By default as ``metalloid.config.bounds`` says; if it is not set,
        kernels check their accesses on the CPU, and other devices refuse launches that are sure to
        access memory outside of an argument. On NVIDIA GPUs and OpenCL devices ``"checked"``
        compiles the checks into the kernel; on Apple's GPUs it asks for Metal's shader validation.
    check : bool, optional
        Whether all launches look for data races and uninitialised memory, which is slow, and raise
        `SanitizerError`; on the CPU only. See `checking`. What Apple's compiler is known to refuse
        is a warning.

    Returns
    -------
    Library

    Raises
    ------
    CompileError
        If the text has errors; the exception lists all of them, at lines of the text.
    FileNotFoundError
        If `path` does not exist.

    Warns
    -----
    CompileWarning
        With the compiler's warnings, and if `bounds` does nothing on the device.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... #include <metal_stdlib>
    ... using namespace metal;
    ... kernel void saxpy(device float* y, device const float* x, constant float& a,
    ...                   uint i [[thread_position_in_grid]]) { y[i] = fma(a, x[i], y[i]); }
    ... ''')
    >>> x, y = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    >>> event = lib.saxpy(y, x, 2.5, threads=3)
    >>> y.tolist()
    [2.5, 3.5, 4.5]
    """
    from metalloid.kernels.compile_warnings import show_warnings, warn_if_unchecked
    from metalloid.kernels.library_arguments import (
        file_and_text,
        include_folders,
        macro_definitions,
    )

    file, text = file_and_text(source, path)
    if math_mode not in MATH_MODES:
        raise ArgumentError(
            f"[library] math_mode must be one of {', '.join(map(repr, MATH_MODES))}, "
            f"got {math_mode!r}."
        )
    options = Options(
        math_mode, include_folders(include_dirs),
        macro_definitions({} if defines is None else defines),
        resolve_bounds(bounds, "library"), bool(check),
    )  # fmt: skip
    if target is not None and device is not None:
        raise ArgumentError("[library] expects device= or target=, not both.")
    where = get_target(target) if target else get_device(device)
    if check and not where.can_check:
        raise ArgumentError(
            f"[library] check=True needs the CPU, got {where.name!r}. Use device='cpu'."
        )
    warn_if_unchecked(options.bounds, where)
    result = Library(text, file, options, where, portable)
    if portable:
        from metalloid.compiler.frontend.portability import require_portable

        require_portable(result._unit, file, where.target, shared_cache())
    elif result._warns_of_portability:
        from metalloid.compiler.frontend.portability import portability_warnings

        result._not_portable += tuple(
            portability_warnings(result._unit, file, where.target, shared_cache())
        )
    result._require_kernels()
    show_warnings(result.warnings)
    return result


def generated_library(text: str, macros: Mapping[str, Any], device: Device) -> Library:
    """Compile MSL of the array library, which is right and whose accesses are inside."""
    from metalloid.kernels.library_arguments import macro_definitions

    options = Options(defines=macro_definitions(macros), bounds="unchecked", is_generated=True)
    return Library(text, PROGRAM_SOURCE, options, device)


def compiled_library(
    text: str, math_mode: MathMode, bounds: ResolvedBounds, device: Device
) -> Library:
    """Compile MSL that a builder of kernels has generated around what the user wrote."""
    from metalloid.kernels.compile_warnings import show_warnings, warn_if_unchecked

    warn_if_unchecked(bounds, device)
    result = Library(text, PROGRAM_SOURCE, Options(math_mode, bounds=bounds), device)
    show_warnings(result.warnings)
    return result


def resolve_bounds(bounds: Bounds | None, where: str) -> ResolvedBounds:
    """Whether accesses are checked; by default as the setting says, if it is set.

    Raises
    ------
    ArgumentError
        For another value.
    """
    if bounds is None and not settings.is_set("bounds"):
        return "default"
    resolved = settings.bounds if bounds is None else bounds
    if resolved not in BOUNDS:
        raise ArgumentError(
            f"[{where}] bounds must be one of {', '.join(map(repr, BOUNDS))}, got {bounds!r}."
        )
    return cast(ResolvedBounds, resolved)
