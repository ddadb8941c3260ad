"""Kernels as Metal's compiler makes them."""

from __future__ import annotations

import functools
import platform
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from metalloid.backends.metal.compile.archive import Archive
from metalloid.backends.metal.compile.diagnostics import compile_error, error_at
from metalloid.backends.metal.compile.limits import TEXTURE_KINDS, Limits
from metalloid.backends.metal.compile.source import inline_includes
from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.backends.metal.pyobjc.constants import constant_values
from metalloid.compiler.frontend.parameter_table import parameter_table
from metalloid.compiler.frontend.stdlib_pch import include_folder
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import CompileError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.layout import Layout
from metalloid.msl.signature import Signature, build_signature
from metalloid.runtime.launch.program import Program, Size, spread
from metalloid.settings import settings

#: Threads per threadgroup where the launch does not say: whole simdgroups, several on each core.
_USUAL_GROUP = 256
#: A kernel by which Metal shows what pipelines it makes.
_EMPTY = "kernel void empty() {}"


def front_end_target() -> Target:
    """The target for which our own front end compiles to find the parameters.

    It has the name of the processor, so texts that were checked for the CPU are not checked again.
    """
    arm = platform.machine().lower() in ("arm64", "aarch64")
    flags = ("-target", f"{'aarch64' if arm else 'x86_64'}-unknown-linux-gnu",
             "-Xclang", "-ffake-address-space-map")  # fmt: skip
    return Target("aarch64" if arm else "x86_64", flags, include_folder() / "kernel_entry.h")


class MetalProgram(Program):
    """A compute pipeline.

    Attributes
    ----------
    pipeline : MTLComputePipelineState
    logs : bool
        Whether it may log.
    is_validated : bool
        Whether Metal checks its accesses.
    file, text : str
        The user's.
    groups : set of Size
        Sizes of threadgroups that were checked.
    """

    def __init__(
        self,
        pipeline: Any,
        signature: Signature,
        unit: TranslationUnit,
        source: str,
        limits: Limits,
        software: bool,
        is_validated: bool,
    ) -> None:
        self.pipeline, self.signature, self._source = pipeline, signature, source
        self.is_validated = is_validated
        ((self.file, self.text),) = unit.sources.items()
        self._limits, self.groups = limits, set[Size]()
        self.logs = may_log(source)
        self.threadgroup_bytes = pipeline.staticThreadgroupMemoryLength()
        self.max_group_size = pipeline.maxTotalThreadsPerThreadgroup()
        if signature.limits.max_total:
            self.max_group_size = min(self.max_group_size, signature.limits.max_total)
        width = pipeline.threadExecutionWidth()
        self.engine = f"{'software' if software else 'metal'}: simdgroups of {width} threads"
        self.buffers = tuple(
            (p.position, p.index, not p.layout.read_only, p.layout) for p in signature.buffers
        )
        self.resources = tuple(
            (p.position, p.index, p.layout) for p in (*signature.textures, *signature.samplers)
        )
        self.threadgroup = tuple((p.position, p.index) for p in signature.threadgroup)

    @property
    def asm(self) -> Mapping[str, str]:
        """The text that Metal's compiler was given; it keeps its own stages to itself."""
        return {"metal": self._source}

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        left = min(self.max_group_size, _USUAL_GROUP)
        x, y, z = map(min, spread(grid, left), self._limits.group)
        return (x, y, z)


class Programs:
    """Compiles kernels for one GPU."""

    def __init__(self, gpu: Any, binding: Binding, target: Target, limits: Limits) -> None:
        self._gpu, self._binding, self._target, self._limits = gpu, binding, target, limits
        self._archive = Archive(gpu, binding)
        self._libraries: dict[tuple[str, str], tuple[Any, str]] = {}
        self._lock = threading.Lock()

    def make(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> MetalProgram:
        """A kernel ready to run.

        Raises
        ------
        CompileError
        """
        table = parameter_table(unit, entry, constants, self._target, shared_cache())
        signature = build_signature(entry, table)
        _refuse_what_is_not_bound(signature, entry)
        self._limits.check_indices(signature, entry)
        is_validated = unit.options.bounds == "checked" and self.can_validate
        with self._binding.pool():
            library, text = self._library(unit)
            function = self._function(library, entry, constants)
            try:
                pipeline = self._archive.pipeline(function, is_validated)
            except CompileError as error:
                raise error_at(entry, str(error)) from None
        software = self._binding.is_software
        return MetalProgram(pipeline, signature, unit, text, self._limits, software, is_validated)

    @functools.cached_property
    def can_validate(self) -> bool:
        """Whether Metal checks the accesses of a pipeline that asks for it (macOS 15)."""
        module = self._binding.module
        if not hasattr(module, "MTLShaderValidationEnabled"):
            return False
        with self._binding.pool():
            options = module.MTLCompileOptions.alloc().init()
            library, _ = self._gpu.newLibraryWithSource_options_error_(_EMPTY, options, None)
            pipeline = self._archive.pipeline(library.newFunctionWithName_("empty"), True)
        is_enabled: bool = pipeline.shaderValidation() == module.MTLShaderValidationEnabled
        return is_enabled

    def _library(self, unit: TranslationUnit) -> tuple[Any, str]:
        ((file, source),) = unit.sources.items()
        key = (unit.key, settings.metal_language)
        with self._lock:
            known = self._libraries.get(key)
        if known is not None:
            return known
        text = inline_includes(source, file, unit.options, shared_cache())
        library, error = self._gpu.newLibraryWithSource_options_error_(
            text, self._options(unit, may_log(text)), None
        )
        if library is None:
            raise compile_error(str(error.localizedDescription()), file, source)
        with self._lock:
            return self._libraries.setdefault(key, (library, text))

    def _options(self, unit: TranslationUnit, logs: bool) -> Any:
        module = self._binding.module
        options = module.MTLCompileOptions.alloc().init()
        mode = unit.options.math_mode
        if hasattr(options, "setMathMode_"):  # macOS 15
            modes = {
                "safe": module.MTLMathModeSafe,
                "relaxed": module.MTLMathModeRelaxed,
                "fast": module.MTLMathModeFast,
            }
            options.setMathMode_(modes[mode])
            options.setMathFloatingPointFunctions_(
                module.MTLMathFloatingPointFunctionsFast
                if mode == "fast"
                else module.MTLMathFloatingPointFunctionsPrecise
            )
        else:
            options.setFastMathEnabled_(mode == "fast")
        if logs and hasattr(options, "setEnableLogging_"):  # macOS 15
            options.setEnableLogging_(True)
        if unit.options.defines:
            options.setPreprocessorMacros_(dict(unit.options.defines))
        if settings.metal_language:
            name = f"MTLLanguageVersion{settings.metal_language.replace('.', '_')}"
            options.setLanguageVersion_(getattr(module, name))
        return options

    def _function(self, library: Any, entry: EntryPoint, constants: Mapping[int, str]) -> Any:
        function = library.newFunctionWithName_(entry.name)
        error = None
        if function is not None and len(function.functionConstantsDictionary()):
            values = constant_values(self._binding.module, function, constants)
            function, error = library.newFunctionWithName_constantValues_error_(
                entry.name, values, None
            )
        if function is None:
            why = "Metal's library has no such function" if error is None else str(
                error.localizedDescription()
            )  # fmt: skip
            raise error_at(entry, f"{entry.name}: {why}")
        return function


def may_log(text: str) -> bool:
    """Whether kernels of a text may log."""
    return "os_log" in text


def _refuse_what_is_not_bound(signature: Signature, entry: EntryPoint) -> None:
    for parameter in signature.arguments:
        for layout in _with_members(parameter.layout):
            what = ""
            if layout.form == "tensor":
                what = "tensors"
            elif layout.texture is not None and layout.texture.kind not in TEXTURE_KINDS:
                what = "multisampled textures or texture buffers"
            elif layout is parameter.layout and layout.count and layout.form == "pointer":
                what = "arrays of pointers, except in structs"
            if what:
                raise error_at(
                    entry,
                    f"{parameter.label} is a {layout}: metalloid's Metal device does not support "
                    f"{what} (device='cpu' does)",
                )


def _with_members(layout: Layout) -> Iterator[Layout]:
    yield layout
    for member in layout.members:
        yield from _with_members(member)
