"""Short IR texts for tests of passes: a line for each block."""

from metalloid.compiler.analysis.divergence import analyse
from metalloid.compiler.analysis.shapes import consecutive, uniform
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.transforms.loop_simplify import simplify_loops

WIDTH = 8


def function(blocks, parameters="ptr %p, i32 %x, i1 %c, i1 %v, i32 %u"):
    """A function; each block as ``name: instruction; instruction``.

    By convention %x and %v are different in each lane, the others are not.
    """
    lines = []
    for block in filter(None, map(str.strip, blocks.strip().splitlines())):
        name, body = block.split(":", 1)
        lines += [f"{name}:", *(f"  {line.strip()}" for line in body.split(";"))]
    text = "\n".join([f"define void @f({parameters}) {{", *lines, "}", ""])
    return parse_function(text, "f")


def analysed(blocks, all_masked=False):
    """The divergence of a function in canonical form."""
    parsed = function(blocks)
    graph = simplify_loops(parsed)
    shapes = {p.name: uniform(WIDTH) for p in parsed.parameters}
    shapes["%x"] = consecutive(WIDTH)
    shapes["%v"] = consecutive(WIDTH)
    return analyse(parsed, graph, WIDTH, shapes, all_masked)


def blocks_of(names):
    """Without their signs."""
    return {name[1:] for name in names}
