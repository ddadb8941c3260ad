"""Libraries and their functions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import metalloid as mtl
from metalloid.compat.Metal.argument_encoder import MTLArgumentEncoder, argument_encoder
from metalloid.compat.Metal.compile_options import MTLCompileOptions
from metalloid.compat.Metal.constants import (
    MTLFunctionTypeKernel,
    MTLLibraryErrorCompileFailure,
    MTLLibraryErrorFileNotFound,
    MTLLibraryErrorFunctionNotFound,
    MTLLibraryErrorInternal,
    MTLLibraryTypeExecutable,
)
from metalloid.compat.Metal.conversions import instance, text
from metalloid.compat.Metal.failures import NSError
from metalloid.compat.Metal.function_constants import SCALARS, MTLFunctionConstantValues
from metalloid.compat.Metal.objects import MetalObject
from metalloid.compat.metallib import msl_file
from metalloid.compiler.frontend.unit import PROGRAM_SOURCE

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

_DOUBLE = re.compile(r"\bdouble\b")
DOMAIN = "MTLLibraryErrorDomain"
_SIZED = re.compile(r"^(u?)int(8|16|32|64)_t$")
_BY_SIZE = {"8": "char", "16": "short", "32": "int", "64": "long"}


class MTLFunctionConstant:
    """A function constant that a function's library declares."""

    __slots__ = ("_index", "_name", "_type")

    def __init__(self, name: str, index: int, declared: str) -> None:
        word = declared.replace(" ", "").removeprefix("metal::")
        word = _SIZED.sub(lambda sized: f"{sized[1]}{_BY_SIZE[sized[2]]}", word)
        scalar = word.rstrip("234")
        lanes = int(word[len(scalar) :] or 1)
        self._name, self._index = name, index
        self._type = SCALARS[scalar] + lanes - 1 if scalar in SCALARS else 0

    def name(self) -> str:
        """Its name in the text."""
        return self._name

    def index(self) -> int:
        """Its number in the text."""
        return self._index

    def type(self) -> int:
        """Its type: ``MTLDataTypeFloat`` ..."""
        return self._type


class MTLFunction(MetalObject):
    """A kernel function of a library, with the values of its function constants."""

    __slots__ = ("_constants", "_library", "_name")

    def __init__(
        self, device: MTLDevice, library: mtl.Library, name: str, constants: dict[Any, Any]
    ) -> None:
        super().__init__(device)
        self._library, self._name, self._constants = library, name, constants

    def kernel(self) -> mtl.Kernel:
        """The function compiled.

        Raises
        ------
        CompileError
        """
        return self._library.function(self._name, self._constants)

    def name(self) -> str:
        """Its name."""
        return self._name

    def functionType(self) -> int:
        """``MTLFunctionTypeKernel``."""
        return MTLFunctionTypeKernel

    def newArgumentEncoderWithBufferIndex_(self, index: int) -> MTLArgumentEncoder:
        """An encoder for the argument buffer that the function takes at an index."""
        selector = "MTLFunction newArgumentEncoderWithBufferIndex:"
        buffers = self.kernel().signature.buffers
        return argument_encoder(self._device, buffers, index, selector)

    def functionConstantsDictionary(self) -> dict[str, MTLFunctionConstant]:
        """The function constants of its library by name."""
        return {
            c.name: MTLFunctionConstant(c.name, c.index, c.type) for c in self._library.constants
        }


class MTLLibrary(MetalObject):
    """A compiled text."""

    __slots__ = ("_library",)

    def __init__(self, device: MTLDevice, library: mtl.Library) -> None:
        super().__init__(device)
        self._library = library

    def functionNames(self) -> tuple[str, ...]:
        """Names of its kernel functions."""
        return self._library.functions

    def type(self) -> int:
        """``MTLLibraryTypeExecutable``."""
        return MTLLibraryTypeExecutable

    def newFunctionWithName_(self, name: str) -> MTLFunction | None:
        """A function; None if there is none of that name."""
        if text(name) not in self._library:
            return None
        return MTLFunction(self._device, self._library, name, {})

    def newFunctionWithName_constantValues_error_(
        self, name: str, values: MTLFunctionConstantValues, error: None
    ) -> tuple[MTLFunction | None, NSError | None]:
        """A function with values of its function constants; those of others are ignored."""
        given = instance(values, MTLFunctionConstantValues).values
        if text(name) not in self._library:
            missing = f"Function {name} was not found in the library"
            return None, NSError(DOMAIN, MTLLibraryErrorFunctionNotFound, missing)
        known = {key for c in self._library.constants for key in (c.index, c.name)}
        constants = {key: value for key, value in given.items() if key in known}
        return MTLFunction(self._device, self._library, name, constants), None

    def newFunctionWithName_constantValues_completionHandler_(
        self, name: str, values: MTLFunctionConstantValues, handler: Callable[..., Any]
    ) -> None:
        """The same, handed to a function."""
        handler(*self.newFunctionWithName_constantValues_error_(name, values, None))


def library_of_source(
    device: MTLDevice, source: str, options: MTLCompileOptions | None
) -> tuple[MTLLibrary | None, NSError | None]:
    """Compile a text."""
    return _compiled(device, options, source=text(source))


def library_of_file(device: MTLDevice, path: str) -> tuple[MTLLibrary | None, NSError | None]:
    """The library of a file of MSL.

    If a ``.metallib`` does not exist or is for Apple's GPUs, the ``.metal`` of
    the same name in its folder replaces it.
    """
    file = msl_file(text(path))
    if file is not None:
        return _compiled(device, None, path=file)
    source = os.path.splitext(path)[0] + ".metal"
    if os.path.exists(path):
        what = (
            f"Invalid library file: {path} holds code for Apple's GPUs. "
            f"Put the text it was made of beside it, as {os.path.basename(source)}."
        )
        return None, NSError(DOMAIN, MTLLibraryErrorInternal, what)
    what = f"library not found: there is neither {path} nor {source}"
    return None, NSError(DOMAIN, MTLLibraryErrorFileNotFound, what)


def _compiled(
    device: MTLDevice, options: MTLCompileOptions | None, **text_or_path: Any
) -> tuple[MTLLibrary | None, NSError | None]:
    chosen = MTLCompileOptions() if options is None else instance(options, MTLCompileOptions)
    try:
        library = mtl.library(**text_or_path, device=device.metalloid, **chosen.as_keywords())
    except mtl.CompileError as failure:
        return None, NSError(DOMAIN, MTLLibraryErrorCompileFailure, str(failure))
    if refused := _double(library):
        return None, NSError(DOMAIN, MTLLibraryErrorCompileFailure, refused)
    return MTLLibrary(device, library), None


def _double(library: mtl.Library) -> str:
    """The message of Metal's compiler for a text that computes with doubles, or ""."""
    if not library.uses("double"):
        return ""
    lines = [line.split("//", 1)[0] for line in library.source.splitlines()]
    matches = ((number, _DOUBLE.search(line)) for number, line in enumerate(lines, 1))
    number, start = next(((n, match.start()) for n, match in matches if match), (1, 0))
    return f"{PROGRAM_SOURCE}:{number}:{start + 1}: error: 'double' is not supported in Metal"
