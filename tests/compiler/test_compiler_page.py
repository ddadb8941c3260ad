"""docs/internals/compiler.md shows what the compiler does.

After a change on purpose, run the test once with ``METALLOID_UPDATE_GOLDEN=1`` and read the
difference.
"""

import contextlib
import difflib
import io
import os
import re
from pathlib import Path

import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile.pipeline import PIPELINE as CPU_PIPELINE
from metalloid.backends.cpu.compile.single_passes.check import PIPELINES as CHECK_PIPELINES
from metalloid.backends.cpu.compile.single_passes.thread import PIPELINES as THREAD_PIPELINES
from metalloid.backends.cpu.compile.single_passes.vector import PIPELINES, Target, run_single_passes
from metalloid.backends.cuda.compile.single_passes import PIPELINES as CUDA_PIPELINES
from metalloid.compiler.ir.cfg import reverse_postorder
from metalloid.compiler.ir.function import DIALECT
from metalloid.compiler.ir.parser import definition, parse_function
from metalloid.compiler.ir.printer import function_text
from metalloid.settings import Settings

PAGE = Path(__file__).parents[2] / "docs/internals/compiler.md"
KERNEL = """\
kernel void mirror(device float2 *out, device const float2 *in, constant float &scale,
                   uint i [[thread_position_in_grid]],
                   uint lane [[thread_position_in_threadgroup]])
{
    threadgroup float2 tile[32];
    tile[lane] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float2 v = tile[31 - lane];
    if (v.x > v.y)
        v.y = scale;
    out[i] = v;
}
"""
_PRINTED = re.compile(r"^; \*\*\* IR after (\S+) \*\*\*\n(.*?^\})$", re.M | re.S)
_WHEN = {stage.name: stage.when for stage in CPU_PIPELINE}
_WHY = {each.name: each.why for pipeline in PIPELINES.values() for each in pipeline}


def shortened(text):
    text = re.sub(r"_ZZ6mirror\w*?E(4)tile\b", "tile", text)
    text = re.sub(r"_Z6mirror\w+\.exit", "exit", text)
    text = re.sub(r" (?:noundef|readonly|readnone|writeonly|captures ?\( ?none ?\))(?= )", "", text)
    return re.sub(r" (?:#\d+|local_unnamed_addr)(?= \{$)", "", text, flags=re.M)


def ordered(ir):
    """The function of one thread, its blocks in reverse postorder."""
    function = parse_function(ir, "mtl_thread")
    blocks = function.blocks
    order = reverse_postorder(function.entry.name, lambda name: blocks[name].successors)
    function.blocks = {name: blocks[name] for name in order}
    return shortened(function_text(function))


def fenced(text, language=""):
    return f"```{language}\n{text.strip()}\n```\n"


def changed(before, after):
    """The lines that differ."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join("..." if line.startswith("@@") else line for line in list(lines)[2:])


@pytest.fixture(scope="module")
def blocks():
    """The generated blocks of the page by name."""
    printed = io.StringIO()
    source = f"#include <metal_stdlib>\nusing namespace metal;\n{KERNEL}"
    with (
        mtl.config.scope(print_after="all", cpu_engine="simd"),
        contextlib.redirect_stderr(printed),
    ):
        ir = mtl.library(source, target="cpu:x86-64-v3").function("mirror").asm["ll"]
    # Other stages come before the IR that the page begins with.
    stages = [
        (name, ordered(text)) for name, text in _PRINTED.findall(printed.getvalue())
        if name in _WHY
    ]  # fmt: skip
    thread = ordered(ir).replace("define internal ", "define ")
    changes, before = [], thread
    for name, text in stages:
        if text != before:
            changes.append(f"`{name}`: {_WHY[name]}.\n\n{fenced(changed(before, text), 'diff')}")
        before = text
    result = run_single_passes(before, "mtl_thread", ["divergence"], Target(16, 32))
    facts = [line for line in result.splitlines() if line.startswith("; ")]
    regions = (shortened(definition(ir, f"mtl_simdgroup.{number}")) for number in (0, 1))
    return {
        "kernel": fenced(KERNEL, "cpp"),
        "thread": fenced(thread, "llvm"),
        "changes": "\n".join(changes),
        "before": fenced(before, "llvm"),
        "facts": fenced("\n".join(facts), "llvm"),
        **{f"region{n}": fenced(text, "llvm") for n, text in enumerate(regions)},
        "passes": passes_table(PIPELINES),
        "cuda passes": passes_table(CUDA_PIPELINES),
        "check passes": passes_table(CHECK_PIPELINES),
        "thread passes": passes_table(THREAD_PIPELINES),
    }


def passes_table(pipelines):
    rows = []
    for title, pipeline in pipelines.items():
        condition = f" ({_WHEN[title]})" if title in _WHEN else ""
        rows.append(f"\n{title[0].upper()}{title[1:]}{condition}:\n")
        rows += ["| pass | why | needs | gives | invalidates |", "|---|---|---|---|---|"]
        for each in pipeline:
            facts = (", ".join(getattr(each, name)) for name in ("needs", "gives", "invalidates"))
            optional = " (optional)" if each.optional else ""
            rows.append(f"| `{each.name}`{optional} | {each.why} | {' | '.join(facts)} |")
    return "\n".join(rows).lstrip("\n") + "\n"


@pytest.mark.needs("the CPU")
def test_the_page_shows_what_the_compiler_does(blocks):
    text = PAGE.read_text()
    updated = text
    for name, block in blocks.items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        updated, count = re.subn(pattern, lambda _, b=block: b, updated, count=1, flags=re.S)
        assert count == 1, name
    if os.environ.get("METALLOID_UPDATE_GOLDEN"):
        PAGE.write_text(updated)
    assert PAGE.read_text() == updated, "run with METALLOID_UPDATE_GOLDEN=1 and read the difference"


def test_the_page_names_every_instruction_and_setting():
    text = PAGE.read_text()
    assert {name for name in DIALECT if f'"mtl.{name}"' not in text} == set()
    about_passes = ("verify_passes", "print_after", "disable_pass", "pass_limit", "time_passes")
    for name in about_passes:
        assert f"`{vars(Settings)[name].variable}=" in text
