"""metalloid.compat.metalcompute: what becomes a buffer, and what a buffer is."""

from array import array

import numpy as np
import pytest

import metalloid.compat.metalcompute as mc


@pytest.mark.parametrize(
    ("source", "contents"),
    [
        (7, bytes(7)),
        (3.7, bytes(3)),
        ("16", bytes(16)),
        (True, bytes(1)),
        (b"ab", b"ab"),
        (bytearray(b"ab"), b"ab"),
        (array("f", [1, 2]), np.float32([1, 2]).tobytes()),
        (np.arange(6, dtype=np.int16).reshape(2, 3), np.arange(6, dtype=np.int16).tobytes()),
        (
            np.int64(16),
            np.int64(16).tobytes(),
        ),  # 8 bytes with the value: NumPy's scalars are memory
        (np.float32(4), np.float32(4).tobytes()),
        (np.array(5.0), np.array(5.0).tobytes()),
        (memoryview(b"xyz"), b"xyz"),
    ],
)
def test_what_becomes_a_buffer(dev, source, contents):
    assert bytes(dev.buffer(source)) == contents


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, "Unsupported input format"),
        ([1.0], "Unsupported input format"),
        ("many", "Unsupported input format"),
        (1j, "Unsupported input format"),
        (float("nan"), "Unsupported input format"),
        (np.zeros((4, 4))[:, :2], "Unsupported input format"),
        (np.zeros((4, 4), order="F"), "Unsupported input format"),
        (0, "Could not make buffer"),
        (-1, "Could not make buffer"),
        (b"", "Could not make buffer"),
        (np.zeros(0), "Could not make buffer"),
        (2**62, "Could not make buffer"),
        (2**80, "Could not make buffer"),
    ],
)
def test_what_does_not(dev, source, text):
    with pytest.raises(mc.error) as caught:
        dev.buffer(source)
    assert str(caught.value) == text


def test_buffers_are_memory_and_nothing_else(dev):
    buffer = dev.buffer(16)
    view = memoryview(buffer)
    assert (view.format, view.shape, view.itemsize) == ("B", (16,), 1)
    assert view.contiguous
    assert not view.readonly
    view.cast("f", (2, 2))[1, 1] = 2.5
    assert np.frombuffer(buffer, "f").tolist() == [0, 0, 0, 2.5]
    assert np.asarray(buffer).dtype == np.uint8
    assert bytes(buffer) == bytearray(buffer) == view.tobytes()
    for use in (len, iter, lambda b: b[0], lambda b: b + b):
        with pytest.raises(TypeError):
            use(buffer)


def test_buffers_are_files_and_pictures(dev, tmp_path):
    from PIL import Image

    pixels = np.arange(16, dtype=np.uint8)
    buffer = dev.buffer(pixels)
    (tmp_path / "raw").write_bytes(buffer)
    assert (tmp_path / "raw").read_bytes() == pixels.tobytes()
    image = Image.frombuffer("RGBA", (2, 2), buffer, "raw", "RGBA", 0, 1)
    assert np.asarray(image).tolist() == pixels.reshape(2, 2, 4).tolist()


def test_views_retain_the_memory(dev, kernel):
    view = np.frombuffer(dev.buffer(array("f", [1, 2])), "f")
    copy = dev.buffer(view)
    assert view.tolist() == np.frombuffer(copy, "f").tolist() == [1, 2]
