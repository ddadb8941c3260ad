"""Types of MSL, as clang's syntax tree names them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: Names of clang by those of MSL.
_SCALARS = {
    "float": "float", "double": "double", "_Float16": "half", "half": "half", "__bf16": "bfloat",
    "bfloat": "bfloat", "bool": "bool", "char": "char", "signed char": "char",
    "unsigned char": "uchar", "short": "short", "unsigned short": "ushort", "int": "int",
    "unsigned int": "uint", "long": "long", "unsigned long": "ulong", "long long": "long",
    "unsigned long long": "ulong", "void": "void", "uint": "uint", "uchar": "uchar",
    "ushort": "ushort", "ulong": "ulong", "uint8_t": "uchar", "uint16_t": "ushort",
    "uint32_t": "uint", "int32_t": "int", "size_t": "ulong", "int8_t": "char", "int16_t": "short",
    "int64_t": "long", "uint64_t": "ulong", "float16_t": "half", "bfloat16_t": "bfloat",
    "metal::bfloat": "bfloat", "ptrdiff_t": "long",
}  # fmt: skip
_BYTES = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "bfloat": 2, "long": 8,
    "ulong": 8, "double": 8,
}  # fmt: skip
_SPACES = {"__global_device": "device", "__global": "constant", "__local": "threadgroup"}
_VECTOR = re.compile(r"(?:metal::)?(packed_)?vec<(.+), (\d)>$")
_ATOMIC = re.compile(r"^(?:metal::)?_?atomic(?:_|<)(\w+)>?$")
_NAMED_VECTOR = re.compile(r"(packed_)?(\w+?)([234])$")
_MATRIX = re.compile(r"(?:metal::)?matrix<(\w+), (\d), (\d)>$")
_NAMED_MATRIX = re.compile(r"(half|float)([234])x([234])$")
_SIMDGROUP_MATRIX = re.compile(r"(?:metal::)?simdgroup_(?:matrix<)?(\w+?)(?:8x8|(?:, 8)*>)$")
_QUALIFIERS = re.compile(r"volatile |const |\s*__restrict\b")
_EXTENT = re.compile(r"\[(\d+)\]")
_TEXTURE = re.compile(
    r"(?:metal::)?((?:texture|depth)[\w]+)<([\w ]+)(?:, (?:metal::)?access::(\w+))?"
)
FLOATS = ("float", "half", "bfloat", "double")


@dataclass(frozen=True)
class Type:
    """The type of a value, of an array, or of what a pointer points to.

    Attributes
    ----------
    scalar : str
        Of an element, in MSL: ``"float"``; empty for types that are not differentiated.
    lanes : int
        Of a vector, or of a column of a matrix; 1 of a scalar.
    extents : tuple of int
        Of an array.
    space : str
        ``"device"``, ``"constant"``, ``"threadgroup"`` of memory that several threads see; empty
        of a thread's own.
    is_pointer : bool
    is_packed : bool
        Of a packed vector.
    columns : int
        Of a matrix.
    record : str
        The name of a struct.
    text : str
        As clang has it.
    """

    scalar: str
    lanes: int = 1
    extents: tuple[int, ...] = ()
    space: str = ""
    is_pointer: bool = False
    is_packed: bool = False
    columns: int = 0
    record: str = ""
    text: str = ""

    @property
    def is_float(self) -> bool:
        """Whether it has a derivative."""
        return self.scalar in FLOATS

    @property
    def texture(self) -> tuple[str, str, str] | None:
        """The kind, the scalar and the access of a texture; None if it is none.

        Examples
        --------
        >>> parse_type("metal::texture2d<_Float16, metal::access::write>").texture
        ('texture2d', 'half', 'write')
        """
        match = _TEXTURE.match(self.record)
        return (match[1], _SCALARS.get(match[2], ""), match[3] or "") if match else None

    @property
    def record_name(self) -> str:
        """The name of a struct without its namespaces.

        Examples
        --------
        >>> parse_type("metal::Pair<metal::vec<float, 2>>").record_name
        'Pair<metal::vec<float, 2>>'
        """
        head, bracket, arguments = self.record.partition("<")
        return head.rpartition("::")[2] + bracket + arguments

    @property
    def is_depth(self) -> bool:
        """Whether it is a depth texture, whose texels are numbers."""
        return self.texture is not None and self.texture[0].startswith("depth")

    @property
    def is_reference(self) -> bool:
        """Whether it is a reference."""
        return self.is_pointer and ("(&)" in self.text or self.text.endswith("&"))

    @property
    def is_pointer_reference(self) -> bool:
        """Whether it is a reference to a pointer."""
        return self.is_reference and "*" in self.text

    @property
    def is_sampler(self) -> bool:
        """Whether it is a sampler."""
        return self.record in ("sampler", "metal::sampler")

    @property
    def is_handle(self) -> bool:
        """Whether values of it stand for memory: a pointer, a texture or a sampler."""
        return self.is_pointer or self.is_sampler or self.texture is not None

    @property
    def has_texel_derivatives(self) -> bool:
        """Whether it is a texture of floating-point numbers."""
        return self.texture is not None and self.texture[1] in FLOATS

    @property
    def element(self) -> Type:
        """The type of an element, or of what a pointer points to."""
        return replace(self, extents=(), is_pointer=False, space="")

    @property
    def msl(self) -> str:
        """The name of an element."""
        if self.texture is not None:
            kind, scalar, access = self.texture
            return f"{kind}<{scalar}{f', access::{access}' if access else ''}>"
        if self.record:
            return self.record
        if self.columns:
            return f"{self.scalar}{self.columns}x{self.lanes}"
        if self.lanes == 1:
            return self.scalar
        return f"{'packed_' if self.is_packed else ''}{self.scalar}{self.lanes}"

    @property
    def is_aggregate(self) -> bool:
        """Whether its elements are structs or matrices."""
        return bool(self.columns or self.record)

    @property
    def column(self) -> Type:
        """The type of a column of a matrix."""
        return replace(self.element, columns=0, text="")

    @property
    def scalar_bytes(self) -> int:
        """Bytes of a number."""
        return _BYTES.get(self.scalar, 4)

    @property
    def adjoint(self) -> Type:
        """The type of its adjoint."""
        return replace(self, scalar="float", is_packed=False, is_pointer=False, space="", text="")

    @property
    def stride(self) -> int:
        """The floats from one element to the next, of a buffer of adjoints."""
        return 4 if self.lanes == 3 and not self.is_packed else self.lanes

    def lane(self) -> Type:
        """The type of a component."""
        return replace(self.element, lanes=1, is_packed=False)


def parse_type(text: str) -> Type:
    """A type of clang: ``"const __global_device float *"``, ``"metal::vec<float, 4>"``."""
    words = _QUALIFIERS.sub("", text).strip()
    space = ""
    for name, own in _SPACES.items():
        if name in words.split():
            space = own
            words = " ".join(word for word in words.split() if word != name)
    is_pointer = words.endswith(("*", "&", "*const"))
    words = re.sub(r"\s*(?:\* ?&|[*&])(const)?$", "", words).removesuffix(" const").strip()
    extents = tuple(map(int, _EXTENT.findall(words)))
    words = _EXTENT.sub("", words).strip()
    if words.endswith("(&)"):  # to an array
        is_pointer, words = True, words.removesuffix("(&)").strip()
    words = _ATOMIC.sub(r"\1", words)
    vector = _VECTOR.match(words)
    lanes, is_packed = 1, False
    if vector is not None:
        is_packed, words, lanes = bool(vector[1]), vector[2], int(vector[3])
    if (held := _SIMDGROUP_MATRIX.match(words)) is not None:  # the elements of a thread
        words, lanes = held[1], 2
    scalar = _SCALARS.get(words, "")
    named = _NAMED_VECTOR.match(words)
    if named is not None and named[2] in _SCALARS:
        is_packed, scalar, lanes = bool(named[1]), _SCALARS[named[2]], int(named[3])
    matrix = _MATRIX.match(words) or _NAMED_MATRIX.match(words)
    columns = 0
    if matrix is not None:
        scalar, columns, lanes = _SCALARS.get(matrix[1], ""), int(matrix[2]), int(matrix[3])
    record = "" if scalar else words
    return Type(scalar, lanes, extents, space, is_pointer, is_packed, columns, record, text)
