"""Argument descriptors: the members of an argument buffer, told by the program that fills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.compat.Metal import constants
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.descriptors import Descriptor, setting
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.function_constants import size_of
from metalloid.msl.layout import Layout

_FORMS = {
    constants.MTLDataTypePointer: "pointer",
    constants.MTLDataTypeTexture: "texture",
    constants.MTLDataTypeSampler: "sampler",
}
_WORD = 8, 8  # bytes and alignment of a resource


class MTLArgumentDescriptor(Descriptor):
    """A member of an argument buffer."""

    __slots__ = ()

    dataType, setDataType_ = setting("dataType", constants.MTLDataTypeNone, unsigned)
    index, setIndex_ = setting("index", 0, unsigned)
    arrayLength, setArrayLength_ = setting("arrayLength", 0, unsigned)
    access, setAccess_ = setting("access", constants.MTLBindingAccessReadOnly, unsigned)
    textureType, setTextureType_ = setting("textureType", constants.MTLTextureType2D, unsigned)
    constantBlockAlignment, setConstantBlockAlignment_ = setting(
        "constantBlockAlignment", 0, unsigned
    )

    @classmethod
    def argumentDescriptor(cls) -> MTLArgumentDescriptor:
        """A new one."""
        return cls()


def struct_of(descriptors: Sequence[Any]) -> Layout:
    """The struct of such members, as a text would declare it that numbers them so."""
    selector = "MTLDevice newArgumentEncoderWithArguments:"
    members: list[Layout] = []
    end, widest = 0, 1
    for descriptor in descriptors:
        kind = instance(descriptor, MTLArgumentDescriptor).dataType()
        form = _FORMS.get(kind, "value")
        nbytes, alignment = _WORD if kind in _FORMS else size_of(kind, selector)
        offset = -(-end // alignment) * alignment
        count, index = descriptor.arrayLength(), descriptor.index()
        if members and index <= (members[-1].id or 0):
            fail(selector, f"index({index}) must be greater than that of the argument before it.")
        members.append(
            Layout(
                form=form,
                space="device",
                read_only=False,
                kind="O",
                scalar_bytes=1,
                lanes=1,
                columns=1,
                bytes=nbytes,
                alignment=alignment,
                name=f"argument {index}",
                offset=offset,
                count=count,
                id=index,
            )
        )
        end, widest = offset + nbytes * max(count, 1), max(widest, alignment)
    size = -(-end // widest) * widest
    return Layout(
        form="reference",
        space="constant",
        read_only=True,
        kind="O",
        scalar_bytes=size,
        lanes=1,
        columns=1,
        bytes=size,
        alignment=widest,
        members=tuple(members),
    )
