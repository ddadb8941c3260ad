"""Every setting of metalloid, each with the environment variable that presets it.

Examples
--------
>>> import metalloid as mtl
>>> with mtl.config.scope(cache_bytes=0):
...     pass  # what is compiled here is not kept on disk
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

from metalloid.setting_parsers import Choice, language, parse_size, seconds, seed, truth

_T = TypeVar("_T")
_versions = itertools.count(1)
_PREFIX = "METALLOID_"


def _nearest(name: str, known: Collection[str]) -> str:
    """The known name that `name` was probably meant to be; empty if there is none."""
    import difflib  # rarely needed

    return next(iter(difflib.get_close_matches(name, known, 1, 0.7)), "")


_products = Choice(
    "auto", "host", "kernels", "panels", "dots", "registers", "simdgroups", "sums", "mps", "cublas"
)
_decompositions = Choice("auto", "host", "cusolver")
_transforms = Choice("auto", "host", "kernels", "cufft")
_engine = Choice("simd", "reference")
_bounds = Choice("checked", "unchecked")
_level = Choice("x86-64-v2", "x86-64-v3", "x86-64-v4")
_floats = Choice("float64", "float32")
_host_or_kernels = Choice("auto", "kernels", "host")


class _Setting(Generic[_T]):
    """A setting: read from the environment at each access until a value is set."""

    def __init__(self, variable: str, parse: Callable[[str], _T], default: _T, doc: str) -> None:
        self.variable, self.parse, self.default = variable, parse, default
        self._key = os.environ.encodekey(variable)
        self._parsed: tuple[Any, _T] | None = None  # the variable's bytes, and its value
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> _Setting[_T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> _T: ...
    def __get__(self, instance: Settings | None, owner: type) -> _Setting[_T] | _T:
        if instance is None:
            return self
        if self.name in instance._values:
            value: _T = instance._values[self.name]
            return value
        keys = getattr(os.environ, "_data", None)  # `get` raises and catches an exception first
        if keys is not None and self._key not in keys:
            return self.default
        raw = None if keys is None else keys[self._key]
        if raw is not None and self._parsed is not None and self._parsed[0] == raw:
            return self._parsed[1]
        text = os.environ.get(self.variable)
        if text is None or not text.strip():
            return self.default
        try:
            self._parsed = raw, self.parse(text)
            return self._parsed[1]
        except (ValueError, KeyError):
            raise ValueError(
                f"[config] {self.variable}={text!r} is not a valid value{self._choices}"
            ) from None

    @property
    def _choices(self) -> str:
        choices = getattr(self.parse, "choices", ())
        return f"; it must be one of {', '.join(choices)}" if choices else ""

    def check(self, value: Any) -> None:
        """Refuse a value of the program's that is none of the choices."""
        choices = getattr(self.parse, "choices", ())
        if choices and value not in (*choices, self.default):
            raise ValueError(f"[config] {self.name}={value!r} is not a valid value{self._choices}")

    def __set__(self, instance: Settings, value: _T) -> None:
        self.check(value)
        instance._values[self.name] = value
        instance._notify({self.name})


class Settings:
    """The settings of this process; `metalloid.config` is the one instance."""

    def __init__(self) -> None:
        self._version = 0
        self._values: dict[str, Any] = {}
        self._observers: list[tuple[str, Callable[[Any], None]]] = []

    cache_dir = _Setting(
        "METALLOID_CACHE_DIR",
        str,
        "",
        "Folder of the cache of compiled kernels; empty: in the user's cache folder.",
    )
    cache_bytes = _Setting(
        "METALLOID_CACHE_SIZE",
        parse_size,
        2**30,
        "Maximum size of the cache, such as 512M; 0: nothing is stored on disk.",
    )
    tape_bytes = _Setting(
        "METALLOID_TAPE_SIZE", parse_size, 2**29,
        "Maximum memory of a launch for the values that the gradient of a kernel needs.",
    )  # fmt: skip
    clang = _Setting(
        "METALLOID_CLANG",
        str,
        "",
        "The zig executable to compile with; empty: that of the ziglang package.",
    )
    device = _Setting(
        "METALLOID_DEVICE", str, "", "Default device, such as cpu; empty: the first available one."
    )
    metal_binding = _Setting(
        "METALLOID_METAL_BINDING",
        str,
        "",
        "Module to use as Metal; empty: PyObjC's, on macOS. metalloid.compat.Metal: in software.",
    )
    metal_language = _Setting(
        "METALLOID_METAL_LANGUAGE",
        language,
        "",
        "Version of Metal for Apple's compiler, such as 3.1; empty: the newest it supports.",
    )
    validate = _Setting(
        "METALLOID_VALIDATE",
        truth,
        False,
        "Whether Metal validates calls and memory accesses. Set it before the GPU is used.",
    )
    num_threads = _Setting(
        "METALLOID_NUM_THREADS", int, 0, "CPU threads that a launch may use; 0: all of the process."
    )

    cpu_engine = _Setting(
        "METALLOID_CPU_ENGINE",
        _engine,
        "simd",
        "How the CPU runs kernels: simd (vector code) or reference (one thread at a time).",
    )
    cpu_level = _Setting(
        "METALLOID_CPU_LEVEL",
        _level,
        "",
        "Instruction set for the CPU: x86-64-v2 (SSE4.2), x86-64-v3 (AVX2), x86-64-v4 (AVX-512); "
        "empty: all that it has. Set it before the first use.",
    )
    bounds = _Setting(
        "METALLOID_BOUNDS",
        _bounds,
        "checked",
        "Whether accesses outside of their object end a launch on the CPU, and launches that are "
        "sure to make some are refused on other devices: checked, unchecked. NVIDIA GPUs and "
        "OpenCL devices check accesses only if it is set to checked.",
    )
    check = _Setting(
        "METALLOID_CHECK",
        truth,
        False,
        "Whether launches on the CPU look for data races and uninitialised memory, which is slow.",
    )
    check_nan = _Setting(
        "METALLOID_CHECK_NAN",
        truth,
        False,
        "Whether checked launches also look for operations that make NaN of numbers.",
    )
    check_suspicious = _Setting(
        "METALLOID_CHECK_SUSPICIOUS",
        truth,
        True,
        "Whether checked launches look for what MSL defines and is seldom meant, too: texels "
        "outside of a texture, shifts by more bits than a type has.",
    )
    schedule = _Setting(
        "METALLOID_SCHEDULE",
        seed,
        None,
        "Seed of the order in which launches on the CPU run their threads, which is slow; "
        "empty: the usual order.",
    )
    strict_barriers = _Setting(
        "METALLOID_STRICT_BARRIERS",
        truth,
        True,
        "Whether every thread must reach the same barrier; 0: lenient, like GPUs.",
    )
    timeout = _Setting(
        "METALLOID_TIMEOUT",
        seconds,
        0.0,
        "Seconds after which a launch is stopped with LaunchTimeout; 0: unlimited.",
    )
    cancellable = _Setting(
        "METALLOID_CANCELLABLE",
        truth,
        True,
        "Whether kernels on NVIDIA GPUs can be stopped by Ctrl-C and time limits. Set it before "
        "they are compiled.",
    )
    progress = _Setting(
        "METALLOID_PROGRESS",
        truth,
        True,
        "Whether a line on the terminal reports compilations that take longer than a second.",
    )
    timing = _Setting(
        "METALLOID_TIMING",
        truth,
        True,
        "Whether GPU launches are timed for Event.seconds, which costs about 2 us per launch.",
    )
    products = _Setting(
        "METALLOID_PRODUCTS",
        _products,
        "auto",
        "Backend of matrix products: auto; host (BLAS), mps (Apple), cublas (NVIDIA); kernels, or "
        "one kind of them: registers, simdgroups, sums.",
    )
    decompositions = _Setting(
        "METALLOID_DECOMPOSITIONS",
        _decompositions,
        "auto",
        "Backend of matrix decompositions and solvers: auto; host (NumPy); cusolver (NVIDIA).",
    )
    tf32 = _Setting(
        "METALLOID_TF32",
        truth,
        False,
        "Whether NVIDIA's tensor cores may multiply float32 matrices as TF32 (11 bits).",
    )
    sorting = _Setting(
        "METALLOID_SORTING",
        _host_or_kernels,
        "auto",
        "Backend of sorting and searching on the CPU: auto; host (NumPy); kernels.",
    )
    deterministic = _Setting(
        "METALLOID_DETERMINISTIC",
        truth,
        False,
        "Whether GPUs add floats at repeated indices in the same order each time, which is slower; "
        "like torch.use_deterministic_algorithms.",
    )
    transforms = _Setting(
        "METALLOID_TRANSFORMS",
        _transforms,
        "auto",
        "Backend of Fourier transforms: auto; host (NumPy); kernels; cufft (NVIDIA).",
    )

    numpy_floats = _Setting(
        "METALLOID_NUMPY_FLOATS",
        _floats,
        "float64",
        "Default floats of metalloid.numpy, and the rules of promotion: float64, as in NumPy, on "
        "devices that have them; float32, as in metalloid.",
    )

    verify_passes = _Setting(
        "METALLOID_VERIFY",
        truth,
        False,
        "Whether the compiler verifies its IR after every pass; for developers.",
    )
    print_after = _Setting(
        "METALLOID_PRINT_AFTER",
        str,
        "",
        "Pass after which the compiler prints its IR to stderr, or all; for developers.",
    )
    disable_pass = _Setting(
        "METALLOID_DISABLE_PASS",
        str,
        "",
        "Optional passes that the compiler skips, separated by commas; for developers.",
    )
    pass_limit = _Setting(
        "METALLOID_PASS_LIMIT",
        int,
        -1,
        "Maximum number of optional passes to run, to bisect a defect; -1: all; for developers.",
    )
    time_passes = _Setting(
        "METALLOID_TIME_PASSES",
        truth,
        False,
        "Whether the time of each pass is printed when the process ends; for developers.",
    )

    def observe(self, name: str, observer: Callable[[Any], None]) -> None:
        """Call a function with the value of a setting, now and whenever the program sets it."""
        observer(getattr(self, name))
        self._observers.append((name, observer))

    @property
    def version(self) -> int:
        """A number that changes whenever the program sets something."""
        return self._version

    def _notify(self, changed: Collection[str]) -> None:
        self._version = next(_versions)
        for name, observer in self._observers:
            if name in changed:
                observer(getattr(self, name))

    def given(self, name: str, otherwise: Any) -> Any:
        """A value that the program has set, without a look at the environment, which is slow."""
        return self._values.get(name, otherwise)

    def is_set(self, name: str) -> bool:
        """Whether the program or the environment has set it, even if to the default value."""
        text = os.environ.get(self._setting(name).variable)
        return name in self._values or bool(text and text.strip())

    @contextmanager
    def scope(self, **values: Any) -> Iterator[Settings]:
        """Set some settings for a ``with`` block."""
        before = dict(self._values)
        for name, value in values.items():
            self._setting(name).check(value)
        try:
            self._values.update(values)
            self._notify(values)
            yield self
        finally:
            self._values = before
            self._notify(values)

    def _setting(self, name: str) -> _Setting[Any]:
        setting = getattr(type(self), name, None)
        if isinstance(setting, _Setting):
            return setting
        raise self._unknown(name)

    def _unknown(self, name: str) -> AttributeError:
        hint = f"; did you mean {near!r}?" if (near := _nearest(name, self._all())) else ""
        return AttributeError(f"[config] there is no setting {name!r}{hint}", name=name, obj=None)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            self._setting(name)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:  # what is none
        raise self._unknown(name)

    def __repr__(self) -> str:
        rows = []
        for name, setting in self._all().items():
            try:
                row = f"  {name}={getattr(self, name)!r}"
            except ValueError as error:  # of the environment
                row = f"  {error}"
            if name in self._values:
                row += " (set)"
            elif setting.variable in os.environ:
                row += f" ({setting.variable})"
            rows.append(row)
        return "\n".join(("<metalloid.config", *rows)) + ">"

    def _repr_html_(self) -> str:
        from metalloid.display import html_table

        return html_table("metalloid.config", self.table(), ("name", "variable", "value", ""))

    @classmethod
    def _all(cls) -> dict[str, _Setting[Any]]:
        return {name: value for name, value in vars(cls).items() if isinstance(value, _Setting)}

    def table(self) -> list[tuple[str, str, Any, str]]:
        """Rows of ``(name, variable, value, meaning)``, for reports."""
        return [
            (name, setting.variable, getattr(self, name), setting.__doc__ or "")
            for name, setting in self._all().items()
        ]


settings = Settings()


def _warn_of_misspelt_variables() -> None:
    known = {setting.variable.removeprefix(_PREFIX) for setting in Settings._all().values()}
    unknown = {n.removeprefix(_PREFIX) for n in os.environ if n.startswith(_PREFIX)} - known
    for name in sorted(unknown):
        if near := _nearest(name, known):
            warnings.warn(
                f"the environment variable {_PREFIX}{name} is not a setting of metalloid; "
                f"did you mean {_PREFIX}{near}?",
                stacklevel=2,
            )


_warn_of_misspelt_variables()
