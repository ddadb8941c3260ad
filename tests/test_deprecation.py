"""Names that are to go warn at the caller's line, for as long as the policy says."""

import re
from pathlib import Path

import pytest

import metalloid
from metalloid.deprecation import deprecated

PACKAGE = Path(metalloid.__file__).parent


def test_warns_where_it_is_called():
    @deprecated(since="0.3", removed_in="0.5", instead="mtl.new")
    def old(x: int, y: int = 2) -> int:
        """Add numbers."""
        return x + y

    with pytest.warns(
        DeprecationWarning, match=r"\[old\].* 0\.3 .* 0\.5\. Use mtl\.new\."
    ) as caught:
        assert old(1, y=4) == 5
    assert caught[0].filename == __file__
    assert old.__name__ == "old"
    assert ".. deprecated:: 0.3" in old.__doc__


@pytest.mark.parametrize(("since", "removed_in"), [("0.3", "0.4"), ("0.3", "0.3"), ("1.2", "1.3")])
def test_refuses_too_little_notice(since, removed_in):
    with pytest.raises(ValueError, match="less than two minor versions"):
        deprecated(since=since, removed_in=removed_in, instead="x")


def test_no_name_has_outlived_its_notice():
    version = tuple(map(int, metalloid.__version__.split(".")[:2]))
    for path in PACKAGE.rglob("*.py"):
        if path.name != "deprecation.py":
            for text in re.findall(r"@deprecated\([^)]*removed_in=\"([\d.]+)\"", path.read_text()):
                assert tuple(map(int, text.split(".")[:2])) > version, path
