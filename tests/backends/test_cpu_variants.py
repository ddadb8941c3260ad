"""Variants of vector code have names, which are read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalloid.backends.cpu.compile.texture_specialization import KnownWord
from metalloid.backends.cpu.compile.variants import Kind, Variant, parse_variant

EXTENTS = st.integers(1, 1024)
WORDS = st.builds(KnownWord, st.integers(0, 31), st.integers(0, 2**64 - 1), st.booleans())
VARIANTS = st.builds(
    Variant,
    st.sampled_from(Kind),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.none() | st.tuples(EXTENTS, EXTENTS, EXTENTS),
    st.sampled_from("xyz"),
    st.booleans(),
    st.booleans(),
    st.lists(WORDS, max_size=3).map(tuple),
    st.booleans(),
)


@given(VARIANTS)
def test_names_are_read_back(variant):
    assert parse_variant(str(variant)) == variant


@given(VARIANTS, VARIANTS)
def test_different_variants_have_different_names(one, other):
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize("name", ["", "full", "wide-32", "full-32-q", "full-x", "full-32-q1.2"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError):  # noqa: PT011 - of Python's own, of several kinds
        parse_variant(name)
