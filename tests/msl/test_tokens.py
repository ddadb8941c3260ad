import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalloid.msl.tokens import TokenStream, is_identifier

SOURCE = """# 1 "program_source"
kernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] = a<b<int>>(1.5e-3f) >> 2; // no comments after preprocessing
#pragma unroll
}
"""


@given(st.text(alphabet="ab1.(){}[]<>\"'#; \n\t,=-+*/:\\", max_size=80))
def test_rendering_without_edits_is_the_text(text):
    assert TokenStream(text).render() == text


def test_next_and_previous_skip_white_space_and_directives():
    stream = TokenStream(SOURCE)
    shown = []
    position = stream.next(-1)
    while position < len(stream):
        shown.append(stream.text(position))
        position = stream.next(position)
    assert shown[:5] == ["kernel", "void", "f", "(", "device"]
    assert "#pragma unroll" not in shown
    assert stream.text(stream.previous(len(stream))) == "}"


def test_brackets_know_their_partners_even_when_some_are_missing():
    stream = TokenStream("a(b[c)d]{e}")
    assert stream.text(stream.partner[stream.tokens.index("{")]) == "}"
    assert stream.tokens.index("(") not in stream.partner


@pytest.mark.parametrize(
    ("text", "opening", "closing"), [("v<a<b>>;", 1, 6), ("v<(a>b)>;", 1, 7), ("v<a;", 1, None)]
)
def test_template_arguments_end_where_they_end(text, opening, closing):
    stream = TokenStream(text)
    assert stream.text(opening) == "<"
    position = stream.close_angle(opening)
    assert position == (len(stream) if closing is None else closing)
    if closing is not None:
        assert stream.open_angle(closing) == opening


def test_commas_inside_brackets_and_template_arguments_do_not_split():
    stream = TokenStream("int a, vec<int, 2> b, f(c, d), e")
    spans = stream.split_commas(0, len(stream))
    assert [stream.source(*span) for span in spans] == ["int a", "vec<int, 2> b", "f(c, d)", "e"]


def test_edits_do_not_change_what_is_read_nor_the_lines():
    stream = TokenStream("a\nb\n/*\n")
    stream.replace(0, "long replacement")
    stream.blank(1, 4)
    assert stream.text(0) == "a"
    assert stream.render().count("\n") == "a\nb\n/*\n".count("\n")


@given(st.lists(st.sampled_from(["x", "yy", " ", "\n", "(", ")", "1.0"]), max_size=20), st.data())
def test_locate_inverts_edits(tokens, data):
    text = "".join(tokens)
    stream = TokenStream(text)
    for position in range(len(stream)):
        if data.draw(st.booleans()):
            stream.replace(position, data.draw(st.sampled_from(["", "abc", "f"])))
    rendered = stream.render()
    for offset in range(len(rendered)):
        position = stream.locate(offset)
        start = stream.rendered_start(position)
        assert start <= offset < start + len(stream.current(position))
        assert rendered.startswith(stream.current(position), start)
    assert stream.locate(len(rendered)) == len(stream)


def test_identifiers():
    assert is_identifier("_a1")
    assert not is_identifier("1a")
    assert not is_identifier("")
