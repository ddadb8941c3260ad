"""Pipelines that are kept on disk: Metal's binary archives, one for each GPU and system."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
from pathlib import Path
from typing import Any

from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.compiler.toolchain.cache import digest, shared_cache
from metalloid.errors import CompileError, MetalloidError


class Archive:
    """A binary archive of compiled functions for one GPU, written to disk when the process ends.

    An archive that Metal does not take any more is begun again: it holds nothing that cannot be
    made from the text.
    """

    def __init__(self, gpu: Any, binding: Binding) -> None:
        self._gpu, self._binding = gpu, binding
        cache = shared_cache()
        key = digest("archive", str(gpu.name()), platform.platform())
        self._path = cache.folder.parent / "metal" / f"{key}.metalarchive"
        self._has_new = False
        is_offered = hasattr(binding.module, "MTLBinaryArchiveDescriptor")
        self._archive: Any = self._opened() if cache.limit and is_offered else None
        if self._archive is not None:
            atexit.register(self.save)

    def _opened(self) -> Any:
        for path in (self._path, None):
            if path is not None and not path.exists():
                continue
            descriptor = self._binding.module.MTLBinaryArchiveDescriptor.alloc().init()
            if path is not None:
                descriptor.setUrl_(self._binding.file_url(str(path)))
            archive, _ = self._gpu.newBinaryArchiveWithDescriptor_error_(descriptor, None)
            if archive is not None:
                return archive
        return None

    def pipeline(self, function: Any, is_validated: bool = False) -> Any:
        """The pipeline of a function.

        Parameters
        ----------
        is_validated : bool
            Whether Metal is to check its accesses (macOS 15); such pipelines are not stored.

        Raises
        ------
        CompileError
            In Metal's words.
        """
        descriptor = self._binding.module.MTLComputePipelineDescriptor.alloc().init()
        descriptor.setComputeFunction_(function)
        if is_validated:
            descriptor.setShaderValidation_(self._binding.module.MTLShaderValidationEnabled)
        elif self._archive is not None:
            descriptor.setBinaryArchives_([self._archive])
            added, _ = self._archive.addComputePipelineFunctionsWithDescriptor_error_(
                descriptor, None
            )
            self._has_new |= bool(added)
        state, *_, error = (
            self._gpu.newComputePipelineStateWithDescriptor_options_reflection_error_(
                descriptor, 0, None, None
            )
        )
        if state is None:
            raise CompileError(
                f"Metal cannot create a pipeline of {function.name()}: "
                f"{error.localizedDescription()}"
            )
        return state

    def save(self) -> None:
        """Write what is new to disk, in one step."""
        if not self._has_new:
            return
        self._has_new = False
        with contextlib.suppress(OSError, MetalloidError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(f"{self._path}.{os.getpid()}")
            url = self._binding.file_url(str(temporary))
            written, _ = self._archive.serializeToURL_error_(url, None)
            if written:
                temporary.replace(self._path)
