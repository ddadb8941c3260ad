"""Recursive functions as chains of clones, before LLVM optimises them."""

import itertools
import re

import pytest

from metalloid.backends.cpu.compile.recursion import unroll_recursion
from metalloid.compiler.ir.parser import function_names, parse_function

MODULE = """$g = comdat any

define void @kernel(ptr %p) {{
entry:
  %x = load float, ptr %p, align 4
  %y = call noundef float @{name}(float %x) #1
  store float %y, ptr %p, align 4
  ret void
}}

define linkonce_odr dso_local noundef float @{name}(float noundef %x) #0 comdat($g) {{
entry:
  %negative = fcmp olt float %x, 0.000000e+00
  br i1 %negative, label %then, label %end
then:
  %m = fneg float %x
  %r = call noundef float @{name}(float noundef %m) #1
  br label %end
end:
  %y = phi float [ %r, %then ], [ %x, %entry ]
  ret float %y
}}
"""


def calls(ir):
    """The function that each function calls."""
    return {
        name: next((i.callee[1:] for i in parse_function(ir, name).instructions() if i.callee), "")
        for name in function_names(ir)
    }


def numbered(name, number):
    return f'"{name[1:-1]}.{number}"' if name[0] == '"' else f"{name}.{number}"


@pytest.mark.parametrize("name", ["g", '"$_0"'])
def test_a_chain_of_clones(name):
    modules = []

    def optimise(ir):
        modules.append(ir)
        return "define void @kernel(ptr %p) {\nentry:\n  ret void\n}\n"

    module = MODULE.format(name=name)
    assert "ret void" in unroll_recursion(module, optimise)
    [unrolled] = modules
    graph = calls(unrolled)
    names = [numbered(name, n) for n in range(1, 17)]
    assert list(graph) == ["kernel", name, *names]
    assert graph == {"kernel": names[0], name: name} | dict(itertools.pairwise([*names, name]))
    heads = re.findall(r"^define (.*) \{$", unrolled, re.M)
    assert heads[2] == f"internal noundef float @{names[0]}(float noundef %x) #0"
    assert heads[1].startswith("linkonce_odr dso_local")
    assert heads[1].endswith("comdat($g)")


def test_recursion_that_remains_is_left_alone():
    module = MODULE.format(name="g")
    assert unroll_recursion(module, lambda ir: ir) == module


def test_modules_without_recursion_are_not_optimised():
    module = MODULE.format(name="g").replace("@g(float noundef %m)", "@h(float noundef %m)")
    assert unroll_recursion(module, lambda ir: pytest.fail(ir)) == module


def test_functions_with_more_calls_have_shorter_chains():
    body = "".join(f"  %c{n} = call float @f(float %x)\n" for n in range(8))
    module = f"define internal float @f(float %x) {{\nentry:\n{body}  ret float %x\n}}\n"
    modules = []

    def optimise(ir):
        modules.append(ir)
        return ir

    unroll_recursion(module, optimise)
    # 9 instructions, times 8 for each further clone: 72, 585, 4689.
    assert function_names(modules[0]) == ["f", "f.1", "f.2", "f.3"]
