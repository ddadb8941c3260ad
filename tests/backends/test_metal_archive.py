"""Pipelines on disk: what is asked of Metal's binary archives, by a module that stands for them."""

import contextlib
import types
from pathlib import Path

import pytest
from metal_stand_ins import descriptor

import metalloid as mtl
from metalloid.backends.metal.compile.archive import Archive
from metalloid.backends.metal.pyobjc.binding import Binding


class BinaryArchive:
    def __init__(self, names):
        self.names = names

    def addComputePipelineFunctionsWithDescriptor_error_(self, descriptor, error):
        self.names.append(descriptor.told["ComputeFunction"].name())
        return True, None

    def serializeToURL_error_(self, url, error):
        Path(url).write_text("\n".join(self.names))
        return True, None


class Gpu:
    def name(self):
        return "G"

    def newBinaryArchiveWithDescriptor_error_(self, descriptor, error):
        url = descriptor.told.get("Url")
        text = Path(url).read_text() if url else ""
        if text == "of another system":
            return None, "no"
        return BinaryArchive(text.split()), None

    def newComputePipelineStateWithDescriptor_options_reflection_error_(self, descriptor, *rest):
        name = descriptor.told["ComputeFunction"].name()
        if name == "bad":
            return None, types.SimpleNamespace(localizedDescription=lambda: "too large")
        return ("pipeline", name), None


def function(name):
    return types.SimpleNamespace(name=lambda: name)


@pytest.fixture
def opened(tmp_path):
    url = types.SimpleNamespace(fileURLWithPath_=lambda path: path)
    module = types.SimpleNamespace(
        MTLBinaryArchiveDescriptor=descriptor("Url"),
        MTLComputePipelineDescriptor=descriptor("ComputeFunction", "BinaryArchives"),
        NSURL=url,
    )
    binding = Binding(module, True, contextlib.nullcontext)
    with mtl.config.scope(cache_dir=str(tmp_path)):
        yield lambda: Archive(Gpu(), binding)


def files(tmp_path):
    return list(tmp_path.rglob("*.metalarchive*"))


def test_pipelines_are_there_the_next_time(opened, tmp_path):
    archive = opened()
    archive.save()
    assert files(tmp_path) == []  # there is nothing to keep
    assert archive.pipeline(function("one")) == ("pipeline", "one")
    archive.save()
    (path,) = files(tmp_path)
    assert path.read_text() == "one"
    reopened = opened()
    reopened.pipeline(function("two"))
    reopened.save()
    assert path.read_text() == "one\ntwo"


def test_an_archive_that_metal_refuses_is_replaced(opened, tmp_path):
    archive = opened()
    archive.pipeline(function("one"))
    archive.save()
    (path,) = files(tmp_path)
    path.write_text("of another system")
    reopened = opened()
    reopened.pipeline(function("two"))
    reopened.save()
    assert path.read_text() == "two"


def test_a_full_disk_does_no_harm(opened, tmp_path, monkeypatch):
    archive = opened()
    archive.pipeline(function("one"))

    def full(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    archive.save()


def test_a_pipeline_that_metal_refuses(opened):
    with pytest.raises(mtl.CompileError, match=r"Metal cannot create a pipeline of bad: too large"):
        opened().pipeline(function("bad"))


def test_nothing_is_saved_without_a_cache(opened, tmp_path):
    with mtl.config.scope(cache_bytes=0):
        archive = opened()
        archive.pipeline(function("one"))
        archive.save()
    assert files(tmp_path) == []
