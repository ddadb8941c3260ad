"""Notebooks: cells of Metal, timed statements, and displays of objects."""

import base64
import io
import itertools
import re
import secrets
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import metalloid as mtl
from metalloid.display import html_table
from metalloid.notebook import launch_progress, magics

SVG = "{http://www.w3.org/2000/svg}"
TEXT = """#include <metal_stdlib>
using namespace metal;
kernel void scale(device float *x, constant float &by, uint i [[thread_position_in_grid]])
{
    x[i] *= by;
}
"""
SPIN = """
kernel void spin(device uint *x, constant uint &n, uint i [[thread_position_in_grid]])
{ uint y = i; for (uint k = 0; k < n; ++k) y = y * 1664525 + 1013904223 + (y >> 9); x[i] = y; }
"""


def pixels_of(file):
    return np.asarray(Image.open(io.BytesIO(file)))


def test_cells_of_metal():
    names = {}
    result = magics.metal_cell("-D FACTOR=3", TEXT.replace("*= by", "*= by * FACTOR"), names)
    assert list(names) == ["scale"] == list(result)
    x = np.ones(4, np.float32)
    names["scale"](x, 2.0, threads=4)
    assert x.tolist() == [6.0] * 4
    with pytest.raises(magics.CellError) as raised:
        magics.metal_cell("", TEXT.replace("*= by", "*= bi"), names)
    head, line, caret, *_ = raised.value._render_traceback_()
    assert head.startswith("cell:6:13: error: use of undeclared identifier 'bi'")
    assert line[caret.index("^") :].startswith("bi")
    with pytest.raises(mtl.ArgumentError, match=r"\[%%metal\] unrecognized arguments: --wrong"):
        magics.metal_cell("--wrong", TEXT, names)


def test_timed_statements():
    names = {"lib": mtl.library(TEXT), "x": np.ones(4, np.float32)}
    text = magics.timed("-n 3 lib.scale(x, 2.0, threads=4)", None, names)
    assert text.startswith("3 runs\n3 launches in ")
    assert names["x"].tolist() == [2.0**5] * 4  # two more before
    assert " scale " in magics.timed("-n 1", "lib.scale(x, 2.0, threads=4)", names)
    with pytest.raises(mtl.ArgumentError, match="invalid int value: 'many'"):
        magics.timed("-n many x", None, names)


def test_arrays_that_are_images():
    colours = np.random.default_rng(0).random((20, 30, 3), np.float32)
    bytes_ = (colours * 255).round().astype(np.uint8)
    for shown in (colours, bytes_):
        assert (pixels_of(mtl.asarray(shown)._repr_png_()) == bytes_).all()
    assert pixels_of(mtl.asarray(bytes_[..., 0])._repr_png_()).shape == (20, 30)
    for other in (colours * 2, colours[..., 0], colours[:4], bytes_.astype(np.int32), bytes_[0, 0]):
        assert mtl.asarray(other)._repr_png_() is None


def test_textures():
    texels = np.random.default_rng(0).integers(0, 256, (16, 24, 4), np.uint8)
    assert (pixels_of(mtl.Texture(texels)._repr_png_()) == texels).all()
    assert mtl.Texture(texels[:2])._repr_png_() is None


def test_html():
    lib = mtl.library(TEXT)
    shown = lib.scale._repr_html_()
    assert "scale(device float *x, constant float &amp;by)" in shown
    assert lib.scale.engine in shown
    for stage in ("source", *lib.scale.asm):
        assert f">{stage}</label>" in shown
    assert "METALLOID_CACHE_DIR" in mtl.config._repr_html_()
    assert mtl.default_device().info().description in mtl.default_device()._repr_html_()
    assert html_table("<t>", []) == "<b>&lt;t&gt;</b><table></table>"


def test_plans_are_drawn():
    x = mtl.asarray(np.ones((64, 64), np.float32))
    explained = mtl.explain(mtl.sum(mtl.exp(x) @ x, axis=0))
    svg, sections = explained._repr_html_().split("</svg>")
    drawing = ElementTree.fromstring(svg[svg.index("<svg") :] + "</svg>")
    width, height = drawing.get("width"), drawing.get("height")
    assert drawing.get("viewBox") == f"0 0 {width} {height}"
    assert "max-width: none" in drawing.get("style")  # else texts are too small to read
    names = [text.text for text in drawing.iter(f"{SVG}text")]
    steps = [line.split(" -> ")[0] for line in explained.splitlines() if re.match(r"\d+\. ", line)]
    assert len(steps) > 1
    assert set(steps) <= set(names)
    assert names.count("float32[64, 64]") >= 2
    boxes = [{k: float(box.get(k)) for k in ("x", "y", "width", "height")}
             for box in drawing.iter(f"{SVG}rect")]  # fmt: skip
    for box, other in itertools.combinations(boxes, 2):
        assert (
            box["x"] + box["width"] <= other["x"] or other["x"] + other["width"] <= box["x"]
            or box["y"] + box["height"] <= other["y"] or other["y"] + other["height"] <= box["y"]
        )  # fmt: skip
    assert all(box["x"] + box["width"] <= float(drawing.get("width")) for box in boxes)
    assert "kernel void" in sections
    assert "<svg" not in mtl.explain(x)._repr_html_()


@pytest.mark.parametrize("name", ["spin", "a launch", "arrays"])
def test_progress_of_launches(name, capsys, monkeypatch):
    kernel = mtl.library(SPIN).spin
    monkeypatch.setattr(launch_progress, "PATIENCE", 0.01)
    monkeypatch.setattr(launch_progress, "INTERVAL", 0.003)
    x = mtl.Buffer(1024)
    kernel(x, 1, threads=256, wait=True)
    if name == "spin":
        run = lambda: kernel(x, 1 << 24, threads=32, wait=True)  # noqa: E731
    elif name == "a launch":
        run = kernel(x, 1 << 24, threads=32).wait
    else:
        y = mtl.exp(mtl.sin(mtl.random.normal((1 << 24,)))).sum()
        run = lambda: mtl.eval(y)  # noqa: E731
    progress = launch_progress.LaunchProgress()
    progress.start()
    try:
        run()
    finally:
        progress.stop()
    text = capsys.readouterr().err
    assert f"\r\033[Kmetalloid: running {name}, line " in text
    assert text.endswith("\r\033[K")


def test_progress_of_launches_is_not_that_of_libraries(capsys, monkeypatch):
    monkeypatch.setattr(launch_progress, "PATIENCE", 0)
    monkeypatch.setattr(launch_progress, "INTERVAL", 0.001)
    progress = launch_progress.LaunchProgress()
    progress.start()
    try:
        for _ in range(3):
            mtl.library(f"{SPIN}//{secrets.token_hex()}")
    finally:
        progress.stop()
    assert "running" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_notebook():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        "%load_ext metalloid\nimport numpy as np, metalloid as mtl\nx = np.ones(4, np.float32)",
        f"%%metal\n{TEXT}",
        "event = scale(mtl.Buffer(x), 2.0, threads=4)\n(await event).done",
        "%metal_time -n 2 scale(x, 2.0, threads=4)",
        "mtl.asarray(np.zeros((32, 32, 3), np.uint8))",
        "scale",
        "mtl.config",
        "mtl.explain(mtl.exp(mtl.ones(8)) + 1)",
        "from metalloid.compiler.toolchain import progress\nprogress.PATIENCE = 0\n"
        "import secrets\ntext = 'kernel void f(device int* x) { *x = 1; } //' + secrets.token_hex()\n"
        "mtl.library(text).f",
        f"%%metal\n{TEXT.replace('*= by', '*= bi')}",
        "from metalloid.notebook import launch_progress\n"
        "launch_progress.PATIENCE, launch_progress.INTERVAL = 0.01, 0.003\n"
        f"spin = mtl.library({SPIN!r}).spin\nspin(mtl.Buffer(1024), 1, threads=256, wait=True)\nNone",
        "spin(mtl.Buffer(1024), 1 << 24, threads=32, wait=True)\nNone",
        "mtl.Texture(np.full((32, 48, 4), 7, np.uint8))",
        "mtl.default_device()",
        "mtl.sum(np.ones(3), axs=0)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, allow_errors=True, kernel_name="python3"
    ).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert not outputs[0]
    assert "1 kernel (scale)" in outputs[1][-1].data["text/plain"]
    assert outputs[2][-1].data["text/plain"] == "True"
    assert outputs[3][-1].text.startswith("2 runs\n2 launches")
    assert pixels_of(base64.b64decode(outputs[4][-1].data["image/png"])).shape == (32, 32, 3)
    assert "source</label>" in outputs[5][-1].data["text/html"]
    assert "<table>" in outputs[6][-1].data["text/html"]
    assert "<svg" in outputs[7][-1].data["text/html"]
    assert "metalloid: compiling" in outputs[8][0].text
    assert outputs[8][0].name == "stderr"
    error = outputs[9][-1]
    assert error.ename == "CellError"
    assert error.traceback[0].startswith("cell:6:13: error: use of undeclared identifier 'bi'")
    assert error.traceback[2].strip(" ~") == "^"
    assert {each.name for each in outputs[11]} == {"stderr"}
    assert "metalloid: running spin, line 1" in "".join(each.text for each in outputs[11])
    assert (pixels_of(base64.b64decode(outputs[12][-1].data["image/png"])) == 7).all()
    assert "<table>" in outputs[13][-1].data["text/html"]
    assert "Did you mean 'axis'?" in "\n".join(outputs[14][-1].traceback)
