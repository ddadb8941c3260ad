"""Kernels: called like functions, with the size of the grid."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.errors import ArgumentError, LaunchError, MetalloidError, TracedArgument
from metalloid.kernels.derivatives import Differentiable, launch_traced
from metalloid.msl.signature import Signature
from metalloid.runtime.arguments.signature_binder import SignatureBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import (
    Arguments,
    Launch,
    clear_seen_failures,
    nanoseconds,
    note_first_writes,
)
from metalloid.runtime.launch.program import Program, Size

if TYPE_CHECKING:
    from metalloid.kernels.proven_launches import ProvenLaunches
    from metalloid.runtime.launch.refutation import Refutation

_MAX_EXTENT = 2**32 - 1  # ids are 32-bit
_MAX_THREADGROUPS = 2**63 - 1
_SIZES_REMEMBERED = 1024


_UNNAMED: Mapping[str, Any] = {}


class Kernel(Differentiable):
    """A kernel of a library, ready to run on the library's device.

    Call it with its arguments, in the order of their buffer indices or by name, and with the number
    of threads:

    ``kernel(*args, threads, group_size=None, wait=None, timeout=None, check=None, **named)``

    Attributes
    ----------
    name : str
    device : Device
    """

    __slots__ = ("_fast_launch",)  # which native functions read (kernel_calls.py)

    def __init__(
        self,
        program: Program,
        device: Device,
        source: str,
        recipe: tuple[Any, ...],
        refutation: Refutation | None = None,
    ) -> None:
        self._program, self.device, self._source = program, device, source
        self._recipe = recipe  # how pickle makes it
        self.name = program.signature.name
        self._binder = SignatureBinder(program.signature, device)
        self._sizes: dict[object, tuple[Size, Size]] = {}
        plain = self._binder.plain()
        self._refutation = refutation
        self._proven: ProvenLaunches | None = None
        self._fast_launch = (
            None if plain is None else device.fast_launcher(program, plain, self._sizes)
        )
        if refutation is not None and plain is not None and self._fast_launch is not None:
            from metalloid.kernels.proven_launches import ProvenLaunches

            self._proven = ProvenLaunches(program, device, plain, refutation)
            self._fast_launch = self._proven.launch

    @property
    def signature(self) -> Signature:
        """The parameters of the kernel, with their types and indices."""
        return self._program.signature

    @property
    def source(self) -> str:
        """The MSL source of its library."""
        return self._source

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of every stage of compilation: ``"cpp"``, ``"ll"``, and assembly (``"x86"``)."""
        return self._program.asm

    @property
    def modules(self) -> Mapping[str, bytes]:
        """Binary stages of compilation by name: ``"spv"``, the SPIR-V; empty on other devices."""
        return self._program.modules

    @property
    def engine(self) -> str:
        """The engine that runs it, and the reason."""
        return self._program.engine

    @property
    def max_group_size(self) -> int:
        """Maximum number of threads of a threadgroup."""
        return self._program.max_group_size

    @property
    def threadgroup_bytes(self) -> int:
        """Bytes of the kernel's threadgroup variables; 0 if the device does not report them."""
        return self._program.threadgroup_bytes

    def stub(self) -> str:
        """The signature as a function of a Python stub file, for type checkers and editors.

        Examples
        --------
        >>> import metalloid as mtl
        >>> lib = mtl.library("kernel void fill(device int *x, constant int &n) { *x = n; }")
        >>> print(lib.fill.stub())
        def fill(
            x: np.ndarray | mtl.Array | mtl.Buffer,  # device int *x
            n: int | np.ndarray | mtl.Array | mtl.Buffer,  # constant int &n
            *,
            threads: int | tuple[int, ...],
            group_size: int | tuple[int, ...] | None = None,
        ) -> mtl.Event: ...
        """
        from metalloid.kernels.stubs import stub_of

        return stub_of(self.signature)

    def dtype(self, parameter: str | int) -> np.dtype[Any]:
        """NumPy's dtype of the element type of a pointer or reference parameter.

        Parameters
        ----------
        parameter : str or int
            Its name, or its position among the arguments.

        Raises
        ------
        ArgumentError
            If there is no such parameter, or it is a texture or a sampler.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library('''
        ... struct Body { float3 position; float mass; };
        ... kernel void fall(device Body* bodies, uint i [[thread_position_in_grid]])
        ... { bodies[i].position.y -= bodies[i].mass; }
        ... ''')
        >>> bodies = np.zeros(2, lib.fall.dtype("bodies"))
        >>> bodies["mass"] = 1, 2
        >>> event = lib.fall(bodies, threads=2)
        >>> bodies["position"][:, 1].tolist()
        [-1.0, -2.0]
        """
        from metalloid.runtime.arguments.struct_dtypes import dtype_of

        arguments = (*self.signature.arguments, *self.signature.threadgroup)
        for index, known in enumerate(arguments):
            if parameter in (known.name, index) and known.layout.form not in ("texture", "sampler"):
                return dtype_of(known.layout)
        names = ", ".join(p.name for p in arguments if p.layout.form not in ("texture", "sampler"))
        raise ArgumentError(
            f"[{self.name}] has no parameter {parameter!r} with elements; those with elements: "
            f"{names or 'none'}."
        )

    def _call(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        wait: bool | None = None,
        timeout: float | None = None,
        check: bool | None = None,
        **named: Any,
    ) -> Event:
        """Run the kernel once per thread of a grid.

        Parameters
        ----------
        *args, **named
            Arrays (NumPy, `Buffer`, DLPack, buffer protocol; used in place), numbers, structs, and
            `threadgroup_memory`.
        threads : int or sequence of 1 to 3 ints
            Threads of the grid, (x, y, z). Exactly that many run; 0 does nothing.
        group_size : int or sequence of 1 to 3 ints, optional
            Threads of a threadgroup. Without it the device chooses: what the text requires
            (``[[required_threads_per_threadgroup(x, y, z)]]``), or else a size that suits the grid,
            which differs between devices, grids and versions. So a kernel that is written for one
            size, for example with a threadgroup array of an element for each thread, must be given
            it, or require it.
        wait : bool, optional
            Whether to return only when the launch has ended. By default it waits if one of the
            arguments is a NumPy array or a tensor of the CPU; launches that use only `mtl.Buffer`s
            return at once.
        timeout : float, optional
            Seconds that the launch may run before it is ended; ``math.inf``: as long as it takes.
            By default `config.timeout`. It is looked at about every 50 ms, for short limits every
            4 ms.
        check : bool, optional
            Whether to look for data races and uninitialised memory, on the CPU; see
            `metalloid.checking`. By default as ``metalloid.config.check`` says.

        Returns
        -------
        Event

        Raises
        ------
        ArgumentError
            If anything does not fit the signature; nothing was run.
        LaunchError
            If the device has no memory for it, or cannot count its threadgroups.
        KernelFault
            If the kernel failed and was waited for, or is sure to fail; then nothing was run.
        SanitizerError
            If a checked launch has found defects.
        LaunchTimeout
            If it ran for longer than `timeout` and was waited for.
        """
        fast, usual = self._fast_launch, timeout is None and not named and not check
        if fast is not None and usual and (wait is None or wait is True or wait is False):
            event = fast(args, threads, group_size, wait)
            if event is not None:
                return event.wait() if wait else event
        if threads is None:
            self._binder.check_names(named)
            raise ArgumentError(
                f"[{self.name}] expects threads=: the number of threads of the grid, "
                "an int or up to three (x, y, z)."
            )
        is_known = _is_size(threads) and _is_size(group_size)
        sizes = self._sizes.get((threads, group_size)) if is_known else None
        grid, group = sizes = sizes or self._check_sizes(threads, group_size)
        try:
            arguments = self._binder.bind(args, named)
        except TracedArgument as error:
            values = self._binder.values(args, named)
            return launch_traced(self, values, grid, group, error, timeout, check)
        if timeout is not None:
            arguments.limit_ns = nanoseconds(self._seconds(timeout))
        if check:
            self._require_checks()
            arguments.check = True
        if self._refutation is not None:
            needs = self._refutation.check(arguments, grid, group)
            if self._proven is not None and usual and is_known:
                self._fast_launch = self._proven.add(args, threads, group_size, sizes, needs)
        device = self.device
        if device.recording is not None:
            recorded = device.recording.record(self._program, arguments, grid, group)
            if recorded is not None:
                return recorded
        if wait is None:
            wait = arguments.host_memory
        event = device.launch(self._program, arguments, grid, group, wait)
        if arguments.buffers:
            mark_used(self._program, arguments, event)
        return event

    if TYPE_CHECKING:  # for checkers `threads` has no default: it must be given

        def __call__(  # noqa: D102
            self,
            *args: Any,
            threads: int | Sequence[int],
            group_size: int | Sequence[int] | None = None,
            wait: bool | None = None,
            timeout: float | None = None,
            check: bool | None = None,
            **named: Any,
        ) -> Event: ...
    else:
        __call__ = _call

    def _require_checks(self) -> None:
        if not self.device.can_check:
            raise ArgumentError(
                f"[{self.name}] check=True needs the CPU, got {self.device.name!r}. Compile the "
                "library with device='cpu'."
            )

    def _seconds(self, timeout: float) -> float:
        try:
            seconds = float(timeout)
        except (TypeError, ValueError):
            seconds = math.nan
        if seconds > 0:
            return seconds
        raise ArgumentError(
            f"[{self.name}] timeout must be a number of seconds greater than 0, got {timeout!r}."
        )

    def _run(
        self, args: tuple[Any, ...], threads: int | Size, group_size: int | Size | None
    ) -> None:
        """Run the kernel as a call does that waits; faster."""
        fast = self._fast_launch
        event = None if fast is None else fast(args, threads, group_size, True)
        if event is None:
            self._call(*args, threads=threads, group_size=group_size, wait=True)
        else:
            event.wait()

    run = _run

    def sized(
        self, threads: int | Sequence[int], group_size: int | Sequence[int] | None = None
    ) -> Callable[..., Launch]:
        """A function from arguments to a launch of a grid of this size, for `launch_batch`.

        It takes the arguments by position, and those by name as a mapping.
        """
        program, bind = self._program, self._binder.bind
        grid, group = self._check_sizes(threads, group_size)
        refutation = self._refutation

        def launch(args: Sequence[Any], named: Mapping[str, Any] = _UNNAMED) -> Launch:
            arguments = bind(args, named)
            if refutation is not None:
                refutation.check(arguments, grid, group)
            return Launch(program, arguments, grid, group)

        return launch

    def _check_sizes(
        self, threads: int | Sequence[int], group_size: int | Sequence[int] | None
    ) -> tuple[Size, Size]:
        """Grid and threadgroup as three numbers each, remembered for the next launch."""
        grid = self._size("threads", threads, 0)
        required = self.signature.limits.size
        if group_size is None:
            group = required or self._program.default_group_size(grid)
        else:
            group = self._size("group_size", group_size, 1)
        if required and group != required:
            raise ArgumentError(
                f"[{self.name}] group_size {group} differs from what the kernel requires, "
                f"{required}. Omit it."
            )
        count, max_threads = math.prod(group), self._program.group_limit(grid, group)
        if count > max_threads:
            raise ArgumentError(
                f"[{self.name}] group_size {group} has {count} threads; "
                f"a threadgroup of this kernel has at most {max_threads}."
            )
        if math.prod(-(-n // g) for n, g in zip(grid, group, strict=True)) > _MAX_THREADGROUPS:
            raise LaunchError(
                f"[{self.name}] the grid has more than {_MAX_THREADGROUPS} threadgroups."
            )
        if len(self._sizes) >= _SIZES_REMEMBERED:
            self._sizes.clear()
        if _is_size(threads) and _is_size(group_size):
            self._sizes[threads, group_size] = grid, group
        return grid, group

    def _size(self, name: str, value: int | Sequence[int], least: int) -> Size:
        try:
            extents = (operator.index(value),)  # type: ignore[arg-type]
        except TypeError:
            try:
                extents = tuple(operator.index(extent) for extent in value)  # type: ignore
            except TypeError:
                raise ArgumentError(
                    f"[{self.name}] {name} expects an int or up to three, got {value!r}."
                ) from None
        if not 1 <= len(extents) <= 3:
            raise ArgumentError(f"[{self.name}] {name} expects 1 to 3 numbers, got {value!r}.")
        for extent in extents:
            if not least <= extent <= _MAX_EXTENT:
                raise ArgumentError(
                    f"[{self.name}] {name} {value!r} is out of range: each is at least {least} "
                    f"and at most {_MAX_EXTENT}."
                )
        x, y, z = (*extents, 1, 1)[:3]
        return (x, y, z)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._recipe

    def _repr_html_(self) -> str:
        from metalloid.display import html_table, html_tabs

        rows = [
            ("signature", self.signature), ("device", self.device.name), ("engine", self.engine),
            ("threads of a threadgroup", f"at most {self.max_group_size}"),
            ("threadgroup variables", f"{self.threadgroup_bytes} bytes"),
        ]  # fmt: skip
        stages = {"source": self.source}
        with contextlib.suppress(MetalloidError):  # a kernel of a bundle has no text
            stages |= self.asm
        return html_table(self.name, rows) + html_tabs(stages)

    def __repr__(self) -> str:
        return f"<Kernel {self.signature} on {self.device.name}>"


def _is_size(value: Any) -> bool:
    """Whether it is an int, some of them, or None: a float equal to one is not a size."""
    if type(value) is tuple:
        return all(type(extent) is int for extent in value)
    return value is None or type(value) is int


def launch_batch(device: Device, launches: Sequence[Launch], wait: bool) -> None:
    """Run what `Kernel.sized` has prepared, one after another."""
    recording = device.recording
    if recording is not None:
        launches = [launch for launch in launches if recording.record(*launch) is None]
    if len(launches) == 1:  # as quickly as possible
        (launch,) = launches
        mark_used(launch.program, launch.arguments, device.launch(*launch, wait))
        return
    for launch, event in zip(launches, device.launch_batch(launches, wait), strict=True):
        mark_used(launch.program, launch.arguments, event)


def mark_used(program: Program, arguments: Arguments, event: Event) -> None:
    """Tell the buffers of a launch that it uses them."""
    for buffer in arguments.buffers:
        buffer.used_by(event)
        if buffer.failure is not None:
            clear_seen_failures(program.signature, arguments)
    if arguments.first_writes:
        note_first_writes(arguments)
