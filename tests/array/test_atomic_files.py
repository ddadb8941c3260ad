"""`mtl.save` replaces a file as a whole, or leaves it as it was."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import metalloid as mtl

SUFFIXES = (".npy", ".npz", ".safetensors")
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")


def contents(suffix, array):
    return array if suffix == ".npy" else {"x": array}


def loaded(file):
    arrays = mtl.load(file)
    return arrays["x"].tolist() if isinstance(arrays, dict) else arrays.tolist()


@posix
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_file(tmp_path, suffix):
    """The system refuses to let a file grow beyond a limit, as it does on a full disk."""
    file = tmp_path / f"x{suffix}"
    mtl.save(file, contents(suffix, mtl.arange(5)))
    before = file.read_bytes()
    code = (
        "import resource, sys, metalloid as mtl\n"
        "x = mtl.ones(100_000)\n"
        "mtl.eval(x)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))\n"
        "try: mtl.save(sys.argv[1], x if sys.argv[1].endswith('.npy') else {'x': x})\n"
        "except OSError as error: print(error.errno)\n"
    )
    environment = os.environ | {"METALLOID_DEVICE": "cpu"}  # the child does not know "own"
    run = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert int(run.stdout) in (27, 28)  # EFBIG, ENOSPC
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
def test_an_error_leaves_the_old_file(tmp_path, suffix, error, monkeypatch):
    file = tmp_path / f"x{suffix}"
    mtl.save(file, contents(suffix, mtl.arange(5)))

    def fail(descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error):
        mtl.save(file, contents(suffix, mtl.arange(9)))
    monkeypatch.undo()
    assert loaded(file) == [0, 1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == [file]


def test_an_array_that_cannot_be_computed_leaves_the_old_file(tmp_path):
    file = tmp_path / "x.npz"
    mtl.save(file, {"x": mtl.arange(5)})
    huge = mtl.broadcast_to(mtl.arange(1), (2**50,)) + 1
    with pytest.raises(mtl.OutOfMemory):
        mtl.save(file, {"small": mtl.arange(3), "huge": huge})
    assert loaded(file) == [0, 1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == [file]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (order.append("sync"), fsync(f)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("replace"), replace(a, b)))
    mtl.save(tmp_path / "x.npy", mtl.arange(3))
    assert order == ["sync", "replace", "sync"]  # and then the folder


@posix
def test_permissions(tmp_path):
    file = tmp_path / "x.npy"
    mask = os.umask(0o027)
    try:
        mtl.save(file, mtl.arange(3))
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o755):
            file.chmod(mode)
            mtl.save(file, mtl.arange(3))
            assert stat.S_IMODE(file.stat().st_mode) == mode
    finally:
        os.umask(mask)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    file = tmp_path / "x.npy"
    mtl.save(file, mtl.arange(3))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write all
    with pytest.raises(PermissionError, match=r"x\.npy"):
        mtl.save(file, mtl.arange(9))
    assert loaded(file) == [0, 1, 2]


@posix
def test_an_owner_stays(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    file = tmp_path / "x.npy"
    mtl.save(file, mtl.arange(3))
    os.chown(file, 12345, 23456)
    mtl.save(file, mtl.arange(4))
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)
    assert loaded(file) == [0, 1, 2, 3]


@posix
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / "real.npy", tmp_path / "link.npy"
    link.symlink_to(file)
    for count in (3, 4):  # dangling, then not
        mtl.save(link, mtl.arange(count))
        assert link.is_symlink()
        assert loaded(file) == list(range(count))


def test_a_folder_that_is_not_there_is_named_as_it_was_given(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        mtl.save(tmp_path / "nowhere" / "x.npy", mtl.arange(3))
    assert caught.value.filename == str(tmp_path / "nowhere" / "x.npy")


def test_a_file_is_read_before_it_is_replaced(tmp_path):
    """Arrays of a file do not depend on it any more."""
    file = tmp_path / "x.npz"
    mtl.save(file, {"x": mtl.arange(1000)})
    arrays = mtl.load(file)
    mtl.save(file, {"x": arrays["x"] * 2})
    assert loaded(file) == (np.arange(1000) * 2).tolist()
    assert arrays["x"].tolist() == list(range(1000))
