"""Metal's resource limits, checked here because drivers end the process when one is exceeded."""

from __future__ import annotations

from typing import Any

from metalloid.backends.metal.compile.diagnostics import error_at
from metalloid.errors import ArgumentError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.portable.kernels import INDICES
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.program import Size

#: Textures of a kernel, by the first family of GPUs that has so many; older ones have 31.
_TEXTURES = {"Apple6": 128, "Mac2": 128, "Apple4": 96}
#: Alignment of the offset of ``constant`` memory in a buffer.
_OF_APPLE, _OF_OTHERS = 4, 256
#: Kinds that Metal can copy to; it has no such copies of the others.
TEXTURE_KINDS = {"1d": "1D", "1d_array": "1DArray", "2d": "2D", "2d_array": "2DArray", "3d": "3D",
         "cube": "Cube", "cube_array": "CubeArray"}  # fmt: skip
#: Maximum size of data that is copied into a command.
MAX_INLINE_BYTES = 4096
#: Minimum size of a threadgroup parameter: Metal takes one of 0 bytes for a missing one.
LEAST_THREADGROUP_BYTES = 16


class Limits:
    """The limits of one GPU.

    Attributes
    ----------
    group : Size
        Threads of a threadgroup along each axis.
    threadgroup_bytes : int
        Memory of a threadgroup.
    constant_alignment : int
        Alignment of the offset of ``constant`` memory in a buffer.
    """

    def __init__(self, gpu: Any, module: Any) -> None:
        def belongs(family: str) -> bool:
            return bool(gpu.supportsFamily_(getattr(module, f"MTLGPUFamily{family}")))

        self._name = str(gpu.name())
        self._indices = INDICES | {
            "texture": next((n for family, n in _TEXTURES.items() if belongs(family)), 31)
        }
        max_threads = gpu.maxThreadsPerThreadgroup()
        self.group: Size = (int(max_threads.width), int(max_threads.height), int(max_threads.depth))
        self.threadgroup_bytes = int(gpu.maxThreadgroupMemoryLength())
        self.constant_alignment = _OF_APPLE if belongs("Apple1") else _OF_OTHERS

    def check_indices(self, signature: Signature, entry: EntryPoint) -> None:
        """Refuse parameters beyond the last index.

        Raises
        ------
        CompileError
            At the kernel's line.
        """
        for parameter in (*signature.arguments, *signature.threadgroup):
            kind, layout = parameter.resource, parameter.layout
            count = max(layout.count, 1) if layout.form in ("texture", "sampler") else 1
            count_limit = self._indices[kind]
            if parameter.index + count > count_limit:
                advice = (
                    "Divide one among them."
                    if kind == "threadgroup"
                    else "Make them members of a struct (an argument buffer): "
                    "'constant Arguments& arguments'."
                )
                further_launches = f" and {count - 1} behind it" if count > 1 else ""
                raise error_at(
                    entry,
                    f"{parameter.label}{further_launches}: a kernel has [[{kind}(0)]] to "
                    f"[[{kind}({count_limit - 1})]] on {self._name}. {advice}",
                )

    def check_group(self, name: str, group: Size) -> None:
        """Refuse a threadgroup that is too long along an axis.

        Raises
        ------
        ArgumentError
        """
        if any(size > limit for size, limit in zip(group, self.group, strict=True)):
            raise ArgumentError(
                f"[{name}] group_size {group} exceeds the limit of {self._name}: "
                f"{self.group} threads along the axes."
            )

    def check_threadgroup_memory(self, name: str, given: int, own: int) -> None:
        """Refuse a launch that brings more threadgroup memory than the kernel's `own` leaves.

        Raises
        ------
        ArgumentError
        """
        if own + given > self.threadgroup_bytes:
            raise ArgumentError(
                f"[{name}] requests {given} bytes of threadgroup memory in addition to the {own} "
                f"bytes of its own variables; {self._name} has {self.threadgroup_bytes}."
            )
