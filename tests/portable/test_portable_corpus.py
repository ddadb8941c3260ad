"""The corpus for Apple's compiler: complete, as it is generated today, and without findings."""

import pytest
from corpus import FOLDER, texts

import metalloid as mtl

FILES = sorted(FOLDER.glob("*.metal"))


def test_every_expression_has_its_file():
    assert {name for name, _ in texts()} == {path.name for path in FILES}


@pytest.mark.slow
def test_the_files_are_what_is_generated():
    old = [name for name, text in texts() if (FOLDER / name).read_text() != text]
    assert not old, "python tests/portable/corpus.py"


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_known_that_apple_would_refuse(path):
    assert len(mtl.library(path=path, portable=True)) > 0
