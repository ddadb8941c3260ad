"""The disk cache: atomic, checksummed, capped, shared by processes; never an obstacle."""

import errno
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.compiler.frontend import stdlib_pch
from metalloid.compiler.toolchain import fingerprint
from metalloid.compiler.toolchain.cache import Cache, digest, read_text

FILES = {"kernel.so": b"\x7fELF" + bytes(1000), "kernel.ll": "define void @f()\n"}


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_digests_of_different_parts_differ(left, right):
    assert (digest(*left) == digest(*right)) == (left == right)


def test_what_is_saved_is_loaded(tmp_path):
    cache = Cache(tmp_path, 2**20)
    assert cache.load("abc") is None
    saved = cache.save("abc", FILES)
    loaded = Cache(tmp_path, 2**20).load("abc")
    assert loaded == saved
    assert loaded["kernel.so"].read_bytes() == FILES["kernel.so"]
    assert loaded["kernel.ll"].read_text() == FILES["kernel.ll"]


def test_texts_of_kernels_are_compressed(tmp_path):
    text = "  %v = fadd <16 x float> %a, %b\n" * 1000 + "\udc80"
    files = {"kernel.ll": text, "kernel.cpp": text, "header.h": text, "prelude.pch": text}
    cache = Cache(tmp_path, 2**20)
    saved = cache.save("abc", files)
    loaded = cache.load("abc")
    assert loaded == saved
    for name in ("kernel.ll", "kernel.cpp"):
        assert read_text(loaded[name]) == text
        assert loaded[name].stat().st_size < len(text) / 10
    for name in ("header.h", "prelude.pch"):  # programs load these
        assert loaded[name].read_text("utf-8", "surrogatepass") == text


@pytest.mark.parametrize(
    "damage", ["truncate", "flip", "remove file", "bad manifest", "no manifest"]
)
def test_a_damaged_entry_is_not_loaded_but_replaced(tmp_path, damage):
    cache = Cache(tmp_path, 2**20)
    files = cache.save("abc", FILES)
    manifest = files["kernel.so"].parent / "manifest.json"
    if damage == "truncate":
        files["kernel.so"].write_bytes(FILES["kernel.so"][:-1])
    elif damage == "flip":
        files["kernel.so"].write_bytes(b"X" + FILES["kernel.so"][1:])
    elif damage == "remove file":
        files["kernel.so"].unlink()
    elif damage == "bad manifest":
        manifest.write_text(json.dumps([1, 2]))
    else:
        manifest.unlink()
    assert cache.load("abc") is None
    cache.save("abc", FILES)
    assert cache.load("abc")["kernel.so"].read_bytes() == FILES["kernel.so"]


def test_an_entry_that_changed_after_it_was_read_is_not_loaded(tmp_path, monkeypatch):
    cache = Cache(tmp_path, 2**20)
    file = cache.save("abc", FILES)["kernel.so"]
    assert cache.load("abc")
    with monkeypatch.context() as patch:
        patch.setattr("metalloid.compiler.toolchain.cache.digest", None)
        assert cache.load("abc")  # its checksums are known
    file.write_bytes(b"X" + FILES["kernel.so"][1:])
    os.utime(file, (0, 0))  # another time than before, however coarse the clock is
    assert cache.load("abc") is None


def test_nothing_is_left_when_writing_fails(tmp_path):
    cache = Cache(tmp_path, 2**20)
    with pytest.raises(TypeError):
        cache.save("abc", {"good": b"1", "bad": 3})
    assert cache.load("abc") is None
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_the_least_recently_used_entries_go_first(tmp_path):
    cache = Cache(tmp_path, 2**20)
    for number in range(4):
        folder = cache.save(f"{number}{number}", {"data": bytes(1000)})["data"].parent
        os.utime(folder / "manifest.json", (number, number))
    cache.load("00")  # a use
    assert cache.trim(limit=2500) == 2
    assert [cache.load(key) is not None for key in ("00", "11", "22", "33")] == [
        True, False, False, True,
    ]  # fmt: skip


def test_a_large_cache_is_counted_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr("metalloid.compiler.toolchain.cache._SAVES_BETWEEN_TRIMS", 1)
    cache, counts = Cache(tmp_path, 2**20), []
    trim = cache.trim
    monkeypatch.setattr(cache, "trim", lambda: counts.append(len(cache.entries())) or trim())
    for number in range(100):
        cache.save(f"{number:02}", {"data": b""})
    assert counts[:16] == list(range(1, 17))  # each, and then
    assert counts[16:] == [18, 20, 22, 24, 27, 30, 33, 37, 41, 46, 51, 57, 64, 72, 81, 91]


def test_a_folder_that_cannot_be_written_is_replaced_for_this_process(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = Cache(blocked, 2**20)
    files = cache.save("abc", FILES)
    assert files["kernel.so"].read_bytes() == FILES["kernel.so"]
    assert cache.load("abc") == files
    assert blocked.read_text() == "not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    cache = Cache(tmp_path, 2**20)
    assert cache.load("abc") is None
    assert cache.load("abc") == cache.save("abc", FILES)


def test_a_limit_of_zero_writes_nothing_to_disk(tmp_path):
    cache = Cache(tmp_path / "cache", 0)
    files = cache.save("abc", FILES)
    assert cache.load("abc") == files
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_was_cleared_is_still_usable(tmp_path):
    first, second = Cache(tmp_path, 2**20), Cache(tmp_path, 2**20)
    first.save("abc", FILES)
    assert second.clear() == 1
    files = first.save("abc", FILES)
    assert second.load("abc") == files
    assert str(files["kernel.so"]).startswith(str(tmp_path))


def test_no_space_on_any_disk_is_an_error_that_says_so(tmp_path, monkeypatch):
    expected = pytest.raises(mtl.MetalloidError, match=r"^\[cache\] .*\(No space left on device\)")
    with monkeypatch.context() as patch, expected:
        patch.setattr("tempfile.mkdtemp", _no_space)
        Cache(tmp_path, 2**20).save("abc", FILES)


def _no_space(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parents_temporary_cache(tmp_path):
    script = f"""
import os, pathlib, sys
from metalloid.compiler.toolchain.cache import Cache
cache = Cache(pathlib.Path({str(tmp_path)!r}), 0)
file = cache.save("abc", {{"data": b"1"}})["data"]
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(file.read_bytes(), file.parent.parent.parent)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    contents, folder = done.stdout.split()
    assert contents == "b'1'"
    assert not Path(folder).exists()  # the parent removes it


# -- permission to write to it


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_folders_are_for_their_user_alone(tmp_path):
    cache = Cache(tmp_path / "new", 2**20)
    entry = cache.save("abc", FILES)["kernel.so"].parent
    for folder in (tmp_path / "new", cache.folder, entry.parent, entry):
        assert mode(folder) == 0o700


@pytest.mark.usefixtures("no_umask")
def test_a_folder_of_ours_that_others_may_write_to_is_narrowed(tmp_path):
    cache = Cache(tmp_path / "ours", 2**20, is_ours=True)
    cache.folder.mkdir(parents=True, mode=0o777)
    entry = cache.save("abc", FILES)["kernel.so"].parent
    assert [mode(folder) for folder in (tmp_path / "ours", cache.folder)] == [0o700, 0o700]
    entry.chmod(0o770)  # another user may have written to it
    assert Cache(tmp_path / "ours", 2**20).load("abc") is None


def refused(folder, caplog):
    """Why a cache there is not used."""
    cache = Cache(folder, 2**20)
    files = cache.save("abc", FILES)
    assert not str(files["kernel.so"]).startswith(str(folder))  # kept aside
    assert cache.load("abc") == files
    (record,) = caplog.records
    assert cache.refusal in record.getMessage()
    assert "Set METALLOID_CACHE_DIR" in record.getMessage()
    return cache.refusal


def test_a_folder_that_others_may_write_to_is_refused(tmp_path, caplog):
    tmp_path.chmod(0o777)
    assert refused(tmp_path, caplog) == f"other users may write to {tmp_path} (mode 0777)"


def test_a_folder_of_another_user_is_refused(tmp_path, caplog, monkeypatch):
    Cache(tmp_path, 2**20).save("abc", FILES)
    tmp_path.chmod(0o1777)  # as /tmp is: the cache in it was made first by another user
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + 1000)
    assert "this process to user" in refused(tmp_path, caplog)


def test_an_entry_of_another_user_is_not_loaded(tmp_path, monkeypatch):
    cache = Cache(tmp_path, 2**20)
    files = cache.save("abc", FILES)
    assert cache.load("abc") == files
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + 1000)
    assert cache.load("abc") is None


def test_a_link_instead_of_the_folder_is_refused(tmp_path, caplog):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "v1").symlink_to(tmp_path / "elsewhere")
    assert refused(tmp_path, caplog) == f"{tmp_path / 'v1'} is not a folder"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_two_users_do_not_run_each_others_code(tmp_path):
    """The first one prepares an entry with good checksums in a folder for all."""
    tmp_path.chmod(0o1777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)

    def act(user, script):
        text = f"""
import logging, os, shutil, tempfile  # the users cannot read the interpreter's folder
from pathlib import Path
from metalloid.compiler.toolchain.cache import Cache
os.setuid({user})
cache = Cache(Path({str(tmp_path)!r}), 2**20)
{script}
"""
        command = [sys.executable, "-B", "-c", text]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    act(54321, "cache.save('abc', {'kernel.so': b'evil'}); cache.folder.chmod(0o777)")
    done = act(54322, "print(cache.load('abc'))")
    assert done.stdout == "None\n"
    assert "belongs to user 54321, this process to user 54322" in done.stderr


def _race(folder, barrier, results):
    cache = Cache(folder, 2**20)
    barrier.wait()
    for number in range(50):
        key = f"{number:02d}"
        files = cache.load(key) or cache.save(key, {"data": f"{number}" * 1000})
        results.put(files["data"].read_text() == f"{number}" * 1000)


def test_many_processes_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_race, args=(tmp_path, barrier, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    answers = [results.get(timeout=60) for _ in range(200)]
    for worker in workers:
        worker.join()
    assert all(answers)
    assert len(Cache(tmp_path, 2**20).entries()) == 50
    assert not list(tmp_path.rglob("tmp-*"))


def test_installations_that_share_a_cache_have_headers_of_their_own(monkeypatch, tmp_path):
    """Messages about a precompiled header name its folder, by which they are told apart."""
    keys = []
    shared = types.SimpleNamespace(load=lambda key: {"prelude.pch": keys.append(key)})
    stdlib_pch.precompiled_header(shared, mtl.Device("cpu").target, "safe")
    copy = shutil.copytree(stdlib_pch.include_folder(), tmp_path / "include")
    monkeypatch.setattr(stdlib_pch, "include_folder", lambda: copy)
    stdlib_pch.precompiled_header(shared, mtl.Device("cpu").target, "safe")
    assert len(set(keys)) == 2


def test_an_entry_that_another_process_removes_is_not_there(monkeypatch, tmp_path):
    missing = {"fingerprint.txt": tmp_path / "fingerprint.txt"}
    cache = types.SimpleNamespace(load=lambda key: missing, limit=0)
    monkeypatch.setattr(fingerprint, "shared_cache", lambda: cache)
    expected = fingerprint.compiler_fingerprint()
    assert fingerprint.compiler_fingerprint.__wrapped__() == expected
