"""Arrays in files, read back here and by NumPy."""

import json

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl


def test_one_array(tmp_path):
    x = mtl.arange(6, dtype=mtl.float16).reshape(2, 3)
    mtl.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.asarray(x))
    assert mtl.load(tmp_path / "x.npy").dtype == np.float16


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_arrays_by_name(tmp_path, suffix):
    file = tmp_path / f"all{suffix}"
    arrays = {
        "a": mtl.arange(5),
        "b": mtl.ones((2, 0, 3), dtype=mtl.uint8),
        "c": mtl.asarray(2.5),
        "d": mtl.asarray([True, False]),
        "e": mtl.asarray([1 + 2j]),
    }
    mtl.save(file, arrays)
    found = mtl.load(file)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(array))


def test_bfloats_and_strided_arrays_as_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    x = mtl.astype(mtl.arange(12).reshape(3, 4), mtl.bfloat16).T[::2]
    mtl.save(file, {"x": x})
    found = mtl.load(file)["x"]
    assert found.dtype == ml_dtypes.bfloat16
    assert np.asarray(found).tolist() == np.asarray(x).tolist()
    size = int.from_bytes(file.read_bytes()[:8], "little")
    header = json.loads(file.read_bytes()[8 : 8 + size])
    assert header == {"x": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}


def test_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"is no \.npy, \.npz or \.safetensors file"):
        mtl.save(tmp_path / "x.txt", mtl.zeros(2))
    with pytest.raises(ValueError, match=r"a \.npy file holds one array"):
        mtl.save(tmp_path / "x.npy", {"x": mtl.zeros(2)})
    with pytest.raises(FileNotFoundError):
        mtl.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"\4\0\0\0\0\0\0\0nope", "is no safetensors file"),
        (
            {"x": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}},
            "has elements of F4, which arrays lack",
        ),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "beyond the end"),
    ],
)
def test_broken_files(tmp_path, contents, message):
    file = tmp_path / "x.safetensors"
    if isinstance(contents, dict):
        text = json.dumps(contents).encode()
        contents = len(text).to_bytes(8, "little") + text
    file.write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        mtl.load(file)
