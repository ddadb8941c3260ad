"""Ownership of the objects that Metal's ``new...`` methods return, declared to PyObjC.

Objective-C's methods named ``new...`` hand their caller a reference. PyObjC follows that rule for
methods of classes only (pyobjc#690), so it retains once too often what a device, queue or library
makes, and no buffer's memory is ever given back. What is registered here replaces what PyObjC knows
of a method, so the arguments are said again, as its own metadata have them. It must happen before
the first device is made.
"""

from __future__ import annotations

from typing import Any

_OBJECT = {"type": b"@"}
_UNSIGNED = {"type": b"Q"}
_ERROR = {"type": b"^@", "type_modifier": b"o"}

#: Arguments of the methods used here, by position: 0 and 1 are the object and the selector.
OWNED: dict[bytes, dict[int, dict[str, Any]]] = {
    b"newCommandQueue": {},
    b"newBufferWithLength:options:": {2: _UNSIGNED, 3: _UNSIGNED},
    b"newBufferWithBytesNoCopy:length:options:deallocator:": {
        2: {"type": b"^v", "type_modifier": b"n", "c_array_length_in_arg": 3},
        3: _UNSIGNED,
        4: _UNSIGNED,
        5: {
            "type": b"@?",
            "callable": {
                "retval": {"type": b"v"},
                "arguments": {0: {"type": b"^v"}, 1: {"type": b"n^v"}, 2: _UNSIGNED},
            },
        },
    },
    b"newLibraryWithSource:options:error:": {2: _OBJECT, 3: _OBJECT, 4: _ERROR},
    b"newFunctionWithName:": {2: _OBJECT},
    b"newFunctionWithName:constantValues:error:": {2: _OBJECT, 3: _OBJECT, 4: _ERROR},
    b"newComputePipelineStateWithDescriptor:options:reflection:error:": {
        2: _OBJECT,
        3: _UNSIGNED,
        4: {"type": b"^@"},
        5: _ERROR,
    },
    b"newBinaryArchiveWithDescriptor:error:": {2: _OBJECT, 3: _ERROR},
    b"newLogStateWithDescriptor:error:": {2: _OBJECT, 3: _ERROR},
    b"newTextureWithDescriptor:": {2: _OBJECT},
    b"newSamplerStateWithDescriptor:": {2: _OBJECT},
}


def register(objc: Any) -> None:
    """Tell PyObjC, whose module `objc` is, that these methods return what their caller owns."""
    for selector, arguments in OWNED.items():
        objc.registerMetaDataForSelector(
            b"NSObject",
            selector,
            {
                "required": True,
                "retval": {"type": b"@", "already_retained": True},
                "arguments": arguments,
            },
        )
