"""Files that are damaged or made up: `load` raises ValueError, whatever their headers say."""

import collections
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

MUTATIONS = 2000
HUGE = (b"-1", b"0", b"999999999999", b"1e30", b"18446744073709551616", b"4611686018427387904",
        b"[]", b"null", b"True", b"1.5")  # fmt: skip


def originals(folder):
    """Files of each kind, by suffix."""
    arrays = {
        "floats": mtl.ones((3, 4)), "a/b": mtl.arange(7), "bfloats": mtl.ones(5, dtype="bfloat16"),
        "bools": mtl.asarray([True, False]), "empty": mtl.zeros((0, 3)),
        "complex": mtl.asarray([1j, 2]),
    }  # fmt: skip
    mtl.save(folder / "x.npz", arrays)
    contents = {".npz": [(folder / "x.npz").read_bytes()], ".npy": []}
    np.savez_compressed(folder / "x.npz", **{k: np.asarray(x) for k, x in arrays.items()})
    contents[".npz"].append((folder / "x.npz").read_bytes())
    mtl.save(folder / "x.safetensors", arrays, metadata={"key": "value"})
    contents[".safetensors"] = [(folder / "x.safetensors").read_bytes()]
    for array in arrays.values():
        mtl.save(folder / "x.npy", array)
        contents[".npy"].append((folder / "x.npy").read_bytes())
    return contents


def mutated(rng, contents):
    """Cut, with other bits and bytes, with more or fewer of them, with other numbers in headers."""
    data = bytearray(contents)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.randrange(6)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[rng.randrange(min(len(data), 256))] = rng.randrange(256)
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randrange(9))
        elif kind == 4:
            del data[at : at + rng.randrange(9)]
        else:
            numbers = list(re.finditer(rb"\d+", bytes(data[:400])))
            if numbers:
                number = rng.choice(numbers)
                data[number.start() : number.end()] = rng.choice(HUGE)
    return bytes(data)


def load_all(folder, seed):
    """Load mutated files in a process that has little memory; print what came of them."""
    files, rng = originals(folder), random.Random(seed)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + 2**29
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    outcomes = collections.Counter()
    for count in range(MUTATIONS):
        suffix = list(files)[count % len(files)]
        contents = mutated(rng, rng.choice(files[suffix]))
        file = folder / f"mutated{suffix}"
        file.write_bytes(contents)
        try:
            loaded = mtl.load(file)
        except ValueError as error:
            if not str(error).startswith("[load] "):
                raise
            outcomes[suffix, "refused"] += 1
        else:
            loaded = loaded.values() if isinstance(loaded, dict) else [loaded]
            assert sum(array.nbytes for array in loaded) <= 2000 * len(contents)
            outcomes[suffix, "loaded"] += 1
    print(json.dumps([[*key, count] for key, count in outcomes.items()]))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory this way")
def test_mutated_files_are_refused(tmp_path):
    code = f"import sys, pathlib; sys.path.insert(0, {str(Path(__file__).parent)!r}); " \
           "import test_malformed_files as t; t.load_all(pathlib.Path(sys.argv[1]), 20261123)"  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True, text=True, timeout=120, env=os.environ | {"METALLOID_DEVICE": "cpu"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    outcomes = {(suffix, what): count for suffix, what, count in json.loads(run.stdout)}
    assert sum(outcomes.values()) == MUTATIONS
    for suffix in (".npy", ".npz", ".safetensors"):
        assert outcomes[suffix, "refused"] > MUTATIONS / 6
        assert outcomes[suffix, "loaded"] > 0  # other elements, say: the test does see good files


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode("latin1")
    length = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + text + data


def header(descr="'<f4'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


NPY = {
    "nothing": (b"", "is not an .npy file"),
    "another version": (npy(header(), bytes(8), b"\x03\x00"), "version 1 or 2"),
    "no header": (b"\x93NUMPY\x01\x00", "the header of .* is damaged"),
    "no dict": (npy("[]"), "the header of .* is damaged"),
    "a call": (npy("print()"), "the header of .* is damaged"),
    "deep": (npy("[" * 5000), "the header of .* is damaged"),
    "a key too many": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"),
                       "the header of .* is damaged"),
    "a negative extent": (npy(header(shape="(-1,)")), "the header of .* is damaged"),
    "a bool as extent": (npy(header(shape="(True,)")), "the header of .* is damaged"),
    "65 axes": (npy(header(shape="(1,) * 65")), "the header of .* is damaged"),
    "a petabyte": (npy(header(shape="(10**15,)")), "the header of .* is damaged"),
    "2^50 elements": (npy(header(shape=f"({2**50},)"), bytes(8)), "but 8 bytes follow it"),
    "2^70 elements": (npy(header(shape=f"({2**70},)"), bytes(8)), "but 8 bytes follow it"),
    "no elements in 2^70 rows": (npy(header(shape=f"({2**70}, 0)")), "but 0 bytes follow it"),
    "cut": (npy(header(), bytes(7)), "but 7 bytes follow it: it is damaged or incomplete"),
    "objects": (npy(header("'|O'"), bytes(16)), r"elements of unsupported type '\|O'"),
    "a structure": (npy(header("[('a', '<f4')]"), bytes(8)), "unsupported type"),
    "a subarray": (npy(header("'(2,)f4'"), bytes(16)), "unsupported type"),
    "no type": (npy(header("'<f3'"), bytes(8)), "unsupported type"),
}  # fmt: skip


@pytest.mark.parametrize("name", NPY)
def test_npy_files_that_are_wrong(tmp_path, name):
    contents, message = NPY[name]
    (tmp_path / "x.npy").write_bytes(contents)
    with pytest.raises(ValueError, match=rf"^\[load\] .*{message}"):
        mtl.load(tmp_path / "x.npy")
    if contents:  # and in an archive
        with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", contents)
        with pytest.raises(ValueError, match=rf"^\[load\] .*{message}"):
            mtl.load(tmp_path / "x.npz")


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


SAFETENSORS = {
    "nothing": (b"", "is not a safetensors file, or is incomplete"),
    "a header of 2^60 bytes": ((2**60).to_bytes(8, "little") + b"{}", "or is incomplete"),
    "no JSON": (safetensors(b"nope"), "is not a safetensors file: its header is not JSON"),
    "UTF-16": (safetensors("{}".encode("utf-16")), "its header is not JSON"),
    "a name twice": (safetensors(b'{"x": {}, "x": {}}'), "a name occurs twice"),
    "deep": (safetensors(b"[" * 100_000), "its header is not JSON"),
    "a list": (safetensors([]), "does not name arrays"),
    "metadata": (safetensors({"__metadata__": {"a": 1}}), "the metadata of .* is not a mapping of strings"),
    "an entry that is text": (safetensors({"x": "y"}), "does not say where 'x' is"),
    "no type": (safetensors({"x": {"shape": [], "data_offsets": [0, 0]}}), "does not say where"),
    "a list as type": (safetensors({"x": entry(dtype=[])}), "does not say where"),
    "an extent of 1.5": (safetensors({"x": entry(shape=(1.5,))}), "does not say where"),
    "three offsets": (safetensors({"x": entry(offsets=(0, 8, 9))}), "does not say where"),
    "a negative offset": (safetensors({"x": entry(offsets=(-8, 0))}), "does not say where"),
    "an unknown type": (safetensors({"x": entry("F8_E4M3")}), "elements of unsupported type F8_E4M3"),
    "another size": (safetensors({"x": entry(shape=(3,))}, bytes(8)), "does not fit the bytes"),
    "2^62 elements": (safetensors({"x": entry(shape=(2**62,), offsets=(0, 2**62))}), "fit"),
    "no elements in 2^62 rows": (
        safetensors({"x": entry(shape=(2**62, 0, 2**62), offsets=(0, 0))}), "does not fit"),
    "cut": (safetensors({"x": entry()}, bytes(7)), "'x' in .* lies beyond the end"),
    "a gap": (safetensors({"x": entry(offsets=(4, 12))}, bytes(12)), "or leaves a gap"),
    "an overlap": (safetensors({"x": entry(), "y": entry(offsets=(4, 12))}, bytes(12)), "overlaps"),
    "more than arrays": (safetensors({"x": entry()}, bytes(9)), "1 bytes that belong to no array"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAFETENSORS)
def test_safetensors_files_that_are_wrong(tmp_path, name):
    contents, message = SAFETENSORS[name]
    (tmp_path / "x.safetensors").write_bytes(contents)
    with pytest.raises(ValueError, match=rf"^\[load\] .*{message}"):
        mtl.load(tmp_path / "x.safetensors")


def archive(*names, data=bytes(8), compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name in names or ("x.npy",):
            members.writestr(zipfile.ZipInfo(name), npy(header(), data), compression)
    return file.getvalue()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is not an .npz file, or is damaged"),
        (archive()[:-1], "is not an .npz file, or is damaged"),
        (archive().replace(bytes(8), b"\1" * 8), "or is damaged"),  # the checksum is another
        (archive("x.npy", "y.npy").replace(b"y.npy", b"x.npy"), "holds two arrays named 'x'"),
        (archive("x"), "holds 'x', which is not an .npy file"),
        (archive(compression=zipfile.ZIP_LZMA), "'x' in .* uses a compression other than deflate"),
        (archive(data=bytes(9)), "'x' in .* is longer than its header says"),
        (archive().replace(b"x.npy", b"y.npy", 1), "or is damaged"),
    ],
)
def test_npz_files_that_are_wrong(tmp_path, contents, message):
    (tmp_path / "x.npz").write_bytes(contents)
    with pytest.raises(ValueError, match=rf"^\[load\] .*{message}"):
        mtl.load(tmp_path / "x.npz")


def test_bytes_of_bools_are_0_or_1_in_memory(tmp_path):
    """Kernels may take a bool for one bit."""
    (tmp_path / "x.npy").write_bytes(npy(header("'|b1'", shape="(4,)"), b"\0\1\2\xff"))
    loaded = mtl.load(tmp_path / "x.npy")
    assert loaded.tolist() == [False, True, True, True]
    assert int(loaded.sum()) == 3


def test_errors_of_the_system_stay_what_they_are(tmp_path):
    for suffix in (".npy", ".npz", ".safetensors"):
        with pytest.raises(FileNotFoundError):
            mtl.load(tmp_path / f"nothing{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(IsADirectoryError):
            mtl.load(tmp_path / f"folder{suffix}")
