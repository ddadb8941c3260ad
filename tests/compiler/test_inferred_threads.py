"""Inference of the threadgroup size from how the threads index arrays."""

import pytest

from metalloid.compiler.analysis.workgroup_size import infer_workgroup_size

X = "  %wide = zext i32 %x to i64\n"
Y = "  %high = zext nneg i32 %y to i64\n"
PART = "  %at = getelementptr inbounds nuw float, ptr @parts, i64 %wide\n"
ROW = "  %row = getelementptr inbounds nuw [{0} x float], ptr @tile, i64 %high\n"
IN_ROW = "  %at = getelementptr inbounds nuw float, ptr %row, i64 %wide\n"
SIMDGROUP = "  %own = lshr i32 %index, 5\n  %wide = zext nneg i32 %own to i64\n"
ADJACENT = "  %next = add i32 %x, 1\n  %wide = zext i32 %next to i64\n"


@pytest.mark.parametrize(
    ("type_", "body", "expected"),
    [
        ("[256 x float]", X + PART, (256, 1)),
        ("[256 x float]", X + PART.replace("float,", "i64,"), (128, 1)),
        ("[260 x float]", X + PART, (256, 1)),  # a few more, for what lies around
        ("[16 x [16 x float]]", X + Y + ROW.format(16) + IN_ROW, (16, 16)),
        ("[16 x [17 x float]]", X + Y + ROW.format(17) + IN_ROW, (16, 16)),
        ("[8 x float]", SIMDGROUP + PART, (256, 1)),
        ("[32 x float]", SIMDGROUP + PART, None),  # as many as there can be
        ("[1024 x float]", X + PART, None),
        ("[32 x float]", X + PART, None),  # one simdgroup
        ("[256 x float]", ADJACENT + PART, None),
        ("[256 x float]", X + PART.replace("@parts", "%device"), None),
        ("[16 x [16 x float]]", SIMDGROUP + Y + ROW.format(16) + IN_ROW, None),
    ],
)
def test_inferred_threads(type_, body, expected):
    variables = "".join(
        f"@{name} = internal thread_local global {type_} undef, align 4\n"
        for name in ("parts", "tile")
    )
    assert infer_workgroup_size(variables, body) == expected


def test_the_smallest_array_counts():
    variables = "".join(
        f"@{name} = internal thread_local global [{count} x float] undef, align 4\n"
        for name, count in (("parts", 512), ("few", 128))
    )
    body = X + PART + PART.replace("%at", "%other").replace("@parts", "@few")
    assert infer_workgroup_size(variables, body) == (128, 1)
