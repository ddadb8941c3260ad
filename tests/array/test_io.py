"""Arrays in files, read back here and by NumPy."""

import json
import tempfile
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalloid as mtl
from metalloid.arrays.ir.dtypes import ALL, bfloat16, complex128

SUFFIXES = (".npy", ".npz", ".safetensors")


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
    loaded = mtl.load(file)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(np.asarray(loaded[name]), np.asarray(array))


def test_bfloats_and_strided_arrays_as_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    x = mtl.astype(mtl.arange(12).reshape(3, 4), mtl.bfloat16).T[::2]
    mtl.save(file, {"x": x})
    loaded = mtl.load(file)["x"]
    assert loaded.dtype == ml_dtypes.bfloat16
    assert np.asarray(loaded).tolist() == np.asarray(x).tolist()
    size = int.from_bytes(file.read_bytes()[:8], "little")
    header = json.loads(file.read_bytes()[8 : 8 + size])
    assert header == {"x": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}


def same(result, expected):
    """Whether arrays agree in type, shape and every bit."""
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data(), dtype=st.sampled_from(ALL))
def test_every_type_and_shape_comes_back(suffix, data, dtype):
    if (suffix, dtype) == (".safetensors", complex128):
        return  # see test_what_a_format_lacks
    bits = dtype if dtype == complex128 else np.dtype(f"u{dtype.itemsize}")
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    elements = st.integers(0, 1) if dtype == np.bool_ else None
    values = data.draw(hnp.arrays(bits, shape, elements=elements)).view(dtype)
    array = mtl.asarray(values)
    if data.draw(st.booleans()):
        array = array.T
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"x{suffix}"
        mtl.save(file, array if suffix == ".npy" else {"x": array})
        loaded = mtl.load(file)
        same(loaded if suffix == ".npy" else loaded["x"], array)
        if suffix != ".safetensors":  # NumPy as the oracle
            theirs = np.load(file)
            theirs = theirs if suffix == ".npy" else theirs["x"]
            same(theirs.view(bfloat16) if dtype == bfloat16 else theirs, array)


@given(values=hnp.arrays(
    hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64)) | hnp.boolean_dtypes(),
    hnp.array_shapes(min_dims=0, min_side=0)), is_fortran=st.booleans())  # fmt: skip
def test_files_of_numpy_are_read(values, is_fortran):
    """Either byte order, either order of axes."""
    values = np.asarray(values, order="F" if is_fortran else "C")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        np.save(file, values)
        same(mtl.load(file), values.astype(values.dtype.newbyteorder("=")))


@pytest.mark.parametrize("dtype", ["i4,f4", "S3", "U3", "M8[s]", "V3", "longdouble"])
def test_types_of_numpy_that_arrays_lack(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.zeros(2, dtype))
    with pytest.raises(ValueError, match="has elements of unsupported type"):
        mtl.load(tmp_path / "x.npy")


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([print]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"has elements of unsupported type '\|O'"):
        mtl.load(tmp_path / "x.npy")


def test_files_of_other_versions_of_numpy(tmp_path):
    file = tmp_path / "x.npy"
    with open(file, "wb") as out:
        np.lib.format.write_array(out, np.arange(3, dtype=np.int16), version=(2, 0))
    assert mtl.load(file).tolist() == [0, 1, 2]
    contents = file.read_bytes().replace(b"(3,), }", b"(3L,),}")  # by Python 2
    assert b"3L" in contents
    file.write_bytes(contents)
    assert mtl.load(file).tolist() == [0, 1, 2]
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(10_000))
    assert mtl.load(tmp_path / "x.npz")["a"].tolist() == list(range(10_000))


NAMES = ["allow_pickle", "file", "", "a/b", "/", "..", ".npy", "x.npy", "\u00fcml\u00e4ut", "\U0001f600",
         "a\\b", " ", "\n", "a" * 1000, "__metadata", "arr_0"]  # fmt: skip


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_every_name_comes_back(tmp_path, suffix):
    file = tmp_path / f"x{suffix}"
    arrays = {name: mtl.asarray([k]) for k, name in enumerate(NAMES)}
    mtl.save(file, arrays)
    loaded = mtl.load(file)
    assert {name: x.tolist() for name, x in loaded.items()} == {n: [k] for k, n in enumerate(NAMES)}
    assert list(loaded) == NAMES


@settings(max_examples=50)
@given(names=st.sets(st.text(max_size=8).filter(lambda name: "\0" not in name), max_size=5))
def test_any_names_come_back(names):
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".npz", ".safetensors"):
            file = Path(folder) / f"x{suffix}"
            mtl.save(file, {name: mtl.arange(2) for name in names})
            assert set(mtl.load(file)) == names


def test_numpy_reads_the_names_of_an_npz_file(tmp_path):
    names = ["file", "allow_pickle", "a/b", "\u00fc"]
    mtl.save(tmp_path / "x.npz", {name: mtl.arange(3) for name in names})
    with np.load(tmp_path / "x.npz") as file:
        assert sorted(file) == sorted(names)
        assert file["a/b"].tolist() == [0, 1, 2]


def test_metadata_of_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    metadata = {"format": "pt", "\u00fc": ""}
    mtl.save(file, {"x": mtl.arange(3)}, metadata=metadata)
    arrays, loaded = mtl.load(file, return_metadata=True)
    assert (loaded, list(arrays)) == (metadata, ["x"])
    assert list(mtl.load(file)) == ["x"]
    mtl.save(file, arrays)
    assert mtl.load(file, return_metadata=True)[1] == {}


def test_the_widest_elements_of_safetensors_come_first(tmp_path):
    """Readers of other libraries view the bytes in place, which takes aligned ones."""
    file = tmp_path / "x.safetensors"
    arrays = {"b": mtl.asarray([True]), "d": mtl.arange(2), "h": mtl.ones(3, dtype=mtl.float16)}
    mtl.save(file, arrays)
    contents = file.read_bytes()
    size = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + size])
    assert size % 8 == 0
    for name, array in arrays.items():
        assert header[name]["data_offsets"][0] % array.itemsize == 0
        same(mtl.load(file)[name], array)


def test_what_holds_numbers_is_converted(tmp_path):
    arrays = {"list": [1, 2], "number": 2.5, "numpy": np.arange(3, dtype=">i2"), "bytes": b"ab"}
    for suffix in (".npz", ".safetensors"):
        mtl.save(tmp_path / f"x{suffix}", arrays)
        loaded = mtl.load(tmp_path / f"x{suffix}")
        assert {name: x.tolist() for name, x in loaded.items()} == {
            "list": [1, 2], "number": 2.5, "numpy": [0, 1, 2], "bytes": [97, 98]}  # fmt: skip
    mtl.save(tmp_path / "x.npy", [[1.5]])
    assert mtl.load(tmp_path / "x.npy").tolist() == [[1.5]]


@pytest.mark.parametrize("value", ["text", None, object(), [object()], {1, 2}, lambda: 0, ["a", 1],
                                   np.array(["2020"], "M8[D]"), np.zeros(2, "i4,f4")],
                         ids=lambda value: type(value).__name__)  # fmt: skip
def test_nothing_is_pickled(tmp_path, value):
    for suffix in SUFFIXES:
        with pytest.raises(TypeError):
            mtl.save(tmp_path / f"x{suffix}", value if suffix == ".npy" else {"x": value})
    assert list(tmp_path.iterdir()) == []


def test_what_a_format_lacks(tmp_path):
    x = mtl.arange(3)
    for suffix, arrays, error, message in (
        (
            ".safetensors",
            {"x": x.astype(complex128)},
            ValueError,
            "does not support complex128, the type of 'x'",
        ),
        (".safetensors", {"__metadata__": x}, ValueError, "reserves the name '__metadata__'"),
        (".npz", {"a\0b": x}, ValueError, "it contains NUL"),
        (".npz", {"a" * 65_532: x}, ValueError, "names must be shorter than 65536 bytes"),
        (".npz", {"\udc80": x}, ValueError, "is not valid Unicode"),
        (".safetensors", {"\udc80": x}, ValueError, "is not valid Unicode"),
        (".npz", {1: x}, TypeError, "names of arrays must be strings, got 1"),
    ):
        with pytest.raises(error, match=message):
            mtl.save(tmp_path / f"x{suffix}", arrays)
    with pytest.raises(ValueError, match=r"a \.npz file has no metadata"):
        mtl.save(tmp_path / "x.npz", {"x": x}, metadata={})
    with pytest.raises(ValueError, match="metadata must map strings to Unicode strings"):
        mtl.save(tmp_path / "x.safetensors", {"x": x}, metadata={"a": 1})
    assert list(tmp_path.iterdir()) == []
    mtl.save(tmp_path / "x.npz", {"x": x})
    with pytest.raises(ValueError, match=r"has no metadata: not a \.safetensors"):
        mtl.load(tmp_path / "x.npz", return_metadata=True)


def test_longest_names(tmp_path):
    name = "a" * 65_531
    mtl.save(tmp_path / "x.npz", {name: mtl.arange(2)})
    assert list(mtl.load(tmp_path / "x.npz")) == [name]


def test_archives_of_other_things(tmp_path):
    file = tmp_path / "x.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "text")
    with pytest.raises(ValueError, match=r"holds 'readme.txt', which is not an \.npy file"):
        mtl.load(file)


def test_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"is not an \.npy, \.npz or \.safetensors file"):
        mtl.save(tmp_path / "x.txt", mtl.zeros(2))
    with pytest.raises(ValueError, match=r"a \.npy file holds one array"):
        mtl.save(tmp_path / "x.npy", {"x": mtl.zeros(2)})
    with pytest.raises(FileNotFoundError):
        mtl.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"\4\0\0\0\0\0\0\0nope", "is not a safetensors file"),
        (
            {"x": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}},
            "has elements of unsupported type F4",
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
