"""Messages of `save`, `load`, DLPack and indices, word for word.

The texts stand in ``exchange_messages.txt`` (see ``snapshots.py``).
"""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from snapshots import Snapshots

import metalloid as mtl

sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))
from test_dlpack import Theirs

MESSAGES = Snapshots(Path(__file__).with_name("exchange_messages.txt"))
ADD = "kernel void add(device float* x, device const float* y) { x[0] += y[0]; }"

pytestmark = pytest.mark.needs("the process's memory")


def floats():
    return np.arange(6, dtype=np.float32)


def npy(text, data=b""):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


def header(descr, shape):
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}}}"


def tensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def load(name, contents, **options):
    def call():
        Path(name).write_bytes(contents)
        mtl.load(name, **options)

    return call


def archive(name, contents, compression=zipfile.ZIP_STORED):
    def call():
        with zipfile.ZipFile("x.npz", "w", compression) as file:
            for each in name.split():
                file.writestr(each, contents)
        if " " in name:
            data = Path("x.npz").read_bytes()
            Path("x.npz").write_bytes(data.replace(b"b.npy", b"a.npy"))
        mtl.load("x.npz")

    return call


def save(name, arrays, **options):
    return lambda: mtl.save(name, arrays, **options)


X = np.arange(3)
GOOD = npy(header("<f4", "(2,)"), bytes(8))

CALLS = {
    "save: another suffix": save("x.txt", X),
    "save: several as .npy": save("x.npy", {"x": X}),
    "save: one as .npz": save("x.npz", X),
    "save: text": save("x.npy", "text"),
    "save: an object": save("x.npz", {"x": print}),
    "save: a type that arrays lack": save("x.npz", {"x": np.zeros(2, "i4,f4")}),
    "save: complex128 as safetensors": save("x.safetensors", {"x": X.astype(complex)}),
    "save: the name of metadata": save("x.safetensors", {"__metadata__": X}),
    "save: a number as name": save("x.npz", {1: X}),
    "save: half a character as name": save("x.npz", {"\udc80": X}),
    "save: NUL in a name": save("x.npz", {"a\0b": X}),
    "save: a long name": save("x.npz", {"a" * 70_000: X}),
    "save: metadata elsewhere": save("x.npz", {"x": X}, metadata={}),
    "save: metadata that are numbers": save("x.safetensors", {"x": X}, metadata={"a": 1}),
    "load: no .npy file": load("x.npy", b"nope"),
    "load: a damaged header": load("x.npy", npy("{'descr': ")),
    "load: a type that arrays lack": load("x.npy", npy(header("|O", "(2,)"), bytes(16))),
    "load: an incomplete file": load("x.npy", npy(header("<f4", "(2,)"), bytes(7))),
    "load: no archive": load("x.npz", b"nope"),
    "load: a damaged array": archive("a.npy", npy(header("<f4", "(9,)"), bytes(7))),
    "load: more than an array": archive("a.npy", GOOD + b"0"),
    "load: another file in an archive": archive("readme.txt", b"text"),
    "load: two arrays of one name": archive("a.npy b.npy", GOOD),
    "load: another compression": archive("a.npy", GOOD, zipfile.ZIP_BZIP2),
    "load: no safetensors": load("x.safetensors", b"nope"),
    "load: no JSON": load("x.safetensors", tensors(b"nope")),
    "load: a list": load("x.safetensors", tensors([])),
    "load: a name twice": load("x.safetensors", tensors(b'{"x": 1, "x": 2}')),
    "load: metadata": load("x.safetensors", tensors({"__metadata__": {"a": 1}})),
    "load: an entry": load("x.safetensors", tensors({"a": 1})),
    "load: a type of safetensors": load("x.safetensors", tensors({"a": entry("F8_E4M3")})),
    "load: another size": load("x.safetensors", tensors({"a": entry(shape=(3,))}, bytes(8))),
    "load: beyond the end": load("x.safetensors", tensors({"a": entry()}, bytes(7))),
    "load: a gap": load("x.safetensors", tensors({"a": entry(offsets=(4, 12))}, bytes(12))),
    "load: more than arrays": load("x.safetensors", tensors({"a": entry()}, bytes(9))),
    "load: metadata of .npy": load("x.npy", GOOD, return_metadata=True),
    "dlpack: lanes": lambda: mtl.from_dlpack(Theirs(floats(), lanes=4)),
    "dlpack: lanes in a launch": lambda: mtl.library(ADD).add(
        floats(), Theirs(floats(), lanes=4), threads=1),
    "dlpack: an odd start": lambda: mtl.from_dlpack(Theirs(floats(), data=4098)),
    "dlpack: a null pointer": lambda: mtl.from_dlpack(Theirs(floats(), data=None)),
    "dlpack: a shape": lambda: mtl.from_dlpack(Theirs(floats(), ndim=-1)),
    "dlpack: version 2": lambda: mtl.from_dlpack(Theirs(floats(), major=2)),
    "dlpack: no capsule": lambda: mtl.from_dlpack(
        type("Theirs", (Theirs,), {"__dlpack__": lambda *args, **options: 1})(floats())),
    "share: strided": lambda: mtl.from_dlpack(floats()[::2], copy=False),
    "share: another type": lambda: mtl.asarray(floats(), dtype=mtl.int8, copy=False),
    "index: too large": lambda: mtl.arange(3)[mtl.asarray([0, 5])],
    "index: too small": lambda: mtl.zeros((2, 3))[:, mtl.asarray([0, -4])],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_messages(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, BufferError, IndexError)) as caught:
        CALLS[name]()
    MESSAGES.check(name, caught.value, [("<test_dlpack.Theirs object at .*?>", "<Theirs>")])


def test_no_message_is_left_over():
    assert set(MESSAGES.known()) == set(CALLS)
