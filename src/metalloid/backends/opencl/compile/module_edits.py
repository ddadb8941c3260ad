"""Edits of a module's text besides the kernel's function: linkage, and the execution mode."""

from __future__ import annotations

import re

from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL

_PUBLIC_FUNCTION = re.compile(
    r"^define (?:dso_local )?(?!linkonce|weak|internal|private|available)"
    rf"(?=[^@\n]*@(?!{ENTRY_SYMBOL}\b))", re.M,
)  # fmt: skip
_KERNEL_HEAD = re.compile(rf"^(define [^\n]*@{ENTRY_SYMBOL}\([^\n]*) \{{$", re.M)
#: Threadgroup variables: SPIR-V gives them no first value, and those that are only written go.
_LOCAL_VARIABLE = re.compile(
    r"^(@\S+ = )(?:internal|linkonce_odr) ([^\n]*?addrspace\(3\) global .+?) "
    r"(?:zeroinitializer|undef|poison)(?:, comdat)?(?:\([^)\n]*\))?, align (\d+)$", re.M,
)  # fmt: skip
_ALIGNMENT = 16  # of threadgroup variables, so that they can be read by float4
#: A word of the votes of a subgroup (scope 3). It is a function, as passes take vectors apart.
_BALLOT = """
declare spir_func <4 x i32> @_Z29__spirv_GroupNonUniformBallotib(i32, i1) #9990
define internal spir_func i32 @mtl_ballot(i1 %vote, i32 %word) #9991 {
  %votes = call spir_func <4 x i32> @_Z29__spirv_GroupNonUniformBallotib(i32 3, i1 %vote)
  %own = extractelement <4 x i32> %votes, i32 %word
  ret i32 %own
}
attributes #9990 = { convergent nounwind }
attributes #9991 = { alwaysinline convergent nounwind }
"""
_BALLOT_DECLARATION = re.compile(r"^declare [^\n]*@mtl_ballot\([^\n]*\n", re.M)
#: Returns its argument, and tells that threads report (report_spirv.h).
_REPORT = """
define internal spir_func i64 @mtl_report(i64 %block) #9992 {
  ret i64 %block
}
attributes #9992 = { alwaysinline nounwind }
"""
_REPORT_DECLARATION = re.compile(r"^declare [^\n]*@mtl_report\([^\n]*\n", re.M)


def prepare_module(ir: str) -> str:
    """The module for the passes: its other functions are unused, as all are inlined."""
    ir = _LOCAL_VARIABLE.sub(
        lambda match: (
            f"{match[1]}internal {match[2]} undef, align {max(int(match[3]), _ALIGNMENT)}"
        ), ir,
    )  # fmt: skip
    return _PUBLIC_FUNCTION.sub("define internal ", ir)


def reports(ir: str) -> bool:
    """Whether threads log or assert."""
    return "@mtl_report(" in ir


def replace_bf16(ir: str) -> str:
    """The module with integers for bfloats in types and tables, after `lower_bf16`."""
    ir = re.sub(r"\bbfloat 0xR([0-9A-F]{4})", lambda match: f"i16 {int(match[1], 16)}", ir)
    return re.sub(r"(?<![\w.%@\"-])bfloat(?![\w.])", "i16", ir)


def define_functions(ir: str) -> str:
    """The module with the functions that headers leave to it."""
    without, count = _REPORT_DECLARATION.subn("", ir)
    ir = without + _REPORT if count else ir
    without, count = _BALLOT_DECLARATION.subn("", ir)
    return without + _BALLOT if count else ir


def require_subgroup_size(ir: str, size: int) -> str:
    """The module with the execution mode SubgroupSize of the kernel."""
    number = 1 + max((int(n) for n in re.findall(r"^!(\d+) = ", ir, re.M)), default=0)
    ir = _KERNEL_HEAD.sub(rf"\1 !intel_reqd_sub_group_size !{number} {{", ir)
    return f"{ir}\n!{number} = !{{i32 {size}}}\n"
