"""Einstein's notation against NumPy's, for listed texts and for random ones."""

import math
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.plan import FusedKernel, make_plan
from metalloid.arrays.planning.schedule import HorizontalKernel

CASES = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,jk": ((2, 3), (3, 4)),
    "ba": ((2, 3),),
    "ii": ((3, 3),),
    "ii->i": ((3, 3),),
    "iij->ji": ((3, 3, 2),),
    "iji->j": ((3, 2, 3),),
    "iii->i": ((3, 3, 3),),
    "i,i": ((4,), (4,)),
    "i,j": ((4,), (3,)),
    "ij->": ((2, 3),),
    "ij,ij->i": ((2, 3), (2, 3)),
    "ij,j->i": ((2, 3), (3,)),
    "aab,bcc->ac": ((2, 2, 3), (3, 4, 4)),
    "abc,abd->dc": ((2, 3, 4), (2, 3, 5)),
    "a,ab,abc->abc": ((2,), (2, 3), (2, 3, 4)),
    "ab,bc,cd,de->ae": ((2, 3), (3, 4), (4, 5), (5, 6)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "...ij,...jk->...ik": ((5, 2, 3), (3, 4)),
    "...ij,...jk": ((5, 1, 2, 3), (4, 3, 4)),
    "i...->...": ((2, 3, 4),),
    "i...,...": ((2, 3), (3,)),
    "...,...": ((2, 1), (3,)),
    "i...i": ((3, 2, 3),),
    " i j , j k -> k i ": ((2, 3), (3, 4)),
    ",": ((), ()),
    "ij,kj->ik": ((2, 1), (4, 5)),
    "ij,jk->ki": ((0, 3), (3, 4)),
    "ij,jk->kij": ((2, 0), (0, 4)),
    "ij,jk->ijk": ((2, 3), (3, 4)),
}


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize(
    "dtype",
    ["float32", *(pytest.param(t, marks=pytest.mark.slow) for t in ("int32", "complex128"))],
)
@pytest.mark.sample(2)
def test_cases(rng, text, dtype):
    operands = [rng.integers(-9, 9, shape).astype(dtype) for shape in CASES[text]]
    if dtype == "complex128":
        operands = [x * (1 + 2j) for x in operands]
    got = mtl.einsum(text, *map(mtl.asarray, operands))
    assert got.dtype == dtype
    # Small whole numbers: every order of sums and products is exact.
    np.testing.assert_array_equal(got.numpy(), np.einsum(text, *operands))


@given(st.data())
@settings(max_examples=4)
def test_random_texts(data):
    letters = string.ascii_letters[: data.draw(st.integers(1, 5))]
    extents = {letter: data.draw(st.integers(0, 4)) for letter in letters}
    words = data.draw(st.lists(st.text(letters, max_size=4), min_size=1, max_size=4))
    used = sorted(set("".join(words)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, 5))]
    rng = np.random.default_rng(len(output))
    operands = []
    for word in words:
        # An axis of extent 1 broadcasts, but not against another one of its operand.
        shape = tuple(
            1 if word.count(k) == 1 and data.draw(st.booleans()) else extents[k] for k in word
        )
        operands.append(rng.integers(-3, 4, shape))
    text = f"{','.join(words)}->{output}"
    got = mtl.einsum(text, *map(mtl.asarray, operands))
    np.testing.assert_array_equal(got.numpy(), np.einsum(text, *operands))


def test_half_floats_are_summed_in_single_precision():
    x = mtl.full((2, 5000), 1.0, dtype=mtl.float16)
    got = mtl.einsum("ij,kj->ik", x, x)
    assert got.dtype == mtl.float16
    assert (got.numpy() == 5000).all()  # float16 counts in steps of 2 from 2048


def test_types_are_promoted():
    x, y = mtl.ones((2, 2), dtype=mtl.int8), mtl.ones((2, 2), dtype=mtl.int32)
    assert mtl.einsum("ij,jk", x, y).dtype == mtl.int32
    assert mtl.einsum("ij,jk", x, mtl.ones((2, 2))).dtype == mtl.float32


def test_what_takes_no_matrix_product_fuses():
    x, y = mtl.ones((4, 5)), mtl.ones((4, 5))
    steps = make_plan(LinearizedGraph([mtl.einsum("ij,ij->i", x + 1, y * 2)._node])).steps
    assert [type(step) for step in steps] == [FusedKernel]
    steps = make_plan(LinearizedGraph([(mtl.einsum("ij,ij->ij", x, y) + 1)._node])).steps
    assert [type(step) for step in steps] == [FusedKernel]


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("middle", [900, 1000, 1100])
def test_a_chain_is_multiplied_from_its_cheap_end(middle):
    # From the left each product would have a million elements.
    x, y = mtl.ones((1000, middle)), mtl.ones((middle, 1000))
    got = mtl.einsum("ab,bc,cd,d->a", x, y, x, mtl.ones(middle))
    plan = make_plan(LinearizedGraph([got._node]))
    sizes = [math.prod(source.shape) for source in plan.sources if source.leaf is None]
    assert sizes == [1000, middle, 1000]


def test_many_operands():
    # Greedily, then in the best order: no intermediate is larger than the operands.
    x = np.eye(3, dtype=np.int64)[[1, 2, 0]]
    text = "ab,bc,cd,de,ef,fg,gh->ha"
    np.testing.assert_array_equal(mtl.einsum(text, *[mtl.asarray(x)] * 7).numpy(), x.T)


@pytest.mark.parametrize("text", [text for text in CASES if "..." not in text])
@pytest.mark.sample(2)
def test_paths_are_numpys_too(rng, text):
    dtype = "float32" if len(CASES[text]) == 2 else "int64"
    operands = [rng.integers(-9, 9, shape).astype(dtype) for shape in CASES[text]]
    arrays = [mtl.asarray(x) for x in operands]
    want = np.einsum(text, *operands)
    path, _ = mtl.einsum_path(text, *arrays)
    np.testing.assert_array_equal(np.einsum(text, *operands, optimize=path), want)
    np.testing.assert_array_equal(mtl.einsum(text, *arrays, optimize=path).numpy(), want)
    for words in ("greedy", "optimal", False):  # without optimisation, one step for all operands
        theirs, _ = np.einsum_path(text, *operands, optimize=words)
        np.testing.assert_array_equal(mtl.einsum(text, *arrays, optimize=theirs).numpy(), want)


@pytest.mark.parametrize("seed", range(5))
def test_paths_of_few_operands_are_the_best(seed):
    rng = np.random.default_rng(seed)
    operands = [np.empty(rng.integers(2, 30, 2)) for _ in range(4)]
    for k in range(3):
        operands[k + 1] = np.empty((operands[k].shape[1], operands[k + 1].shape[1]))
    text = "ab,bc,cd,de->ae"
    _, report = mtl.einsum_path(text, *operands)
    theirs, _ = np.einsum_path(text, *operands, optimize="optimal")
    sizes = dict(zip("abcde", [x.shape[0] for x in operands] + [operands[3].shape[1]], strict=True))
    terms, total = text.partition("->")[0].split(","), 0
    for i, j in theirs[1:]:
        b, a = terms.pop(j), terms.pop(i)
        total += int(np.prod([sizes[k] for k in {*a, *b}]))
        terms.append("".join({*a} ^ {*b}))
    assert int(report.split()[0]) == total


def test_an_order_is_followed():
    x, y = mtl.ones((2, 30)), mtl.ones((30, 40))
    arrays = x, y, mtl.ones((40, 5))
    mtl.eval(arrays)  # so that no step computes them
    for path, size in (([(0, 1), (0, 1)], (2, 40)), ([(1, 2), (0, 1)], (30, 5))):
        got = mtl.einsum("ij,jk,kl", *arrays, optimize=path)
        plan = make_plan(LinearizedGraph([got._node]))
        # A device whose products are calls materializes the operands first, in one launch.
        first = next(step for step in plan.steps if not isinstance(step, HorizontalKernel))
        out = first.out if isinstance(first, FusedKernel) else first.outs[0]
        assert sorted(plan.sources[out].shape) == sorted(size)


@pytest.mark.parametrize("path", [[(0, 1)], [(0, 0, 1)], [(0, 3), (0, 1)], [(0, 1), (0, 1), ()]])
def test_paths_that_do_not_fit(path):
    with pytest.raises(ValueError, match=r"\[einsum\] 'i,i,i': (invalid step|the path)"):
        mtl.einsum("i,i,i", *[mtl.ones(2)] * 3, optimize=path)


def test_nothing_is_computed_before_it_is_looked_at():
    x = mtl.ones((2, 2))
    assert mtl.einsum("ij,jk", x, x)._node.memory is None


@pytest.mark.parametrize(("text", "operands", "error", "message"), [
    ("ij,jk", [(2, 3)], ValueError, "[einsum] 'ij,jk' names 2 operands, got 1."),
    ("ijk", [(2, 3)], ValueError,
     "[einsum] 'ijk': 'ijk' does not fit operand 0, which has 2 axes."),
    ("...ijk", [(2, 3)], ValueError,
     "[einsum] '...ijk': '...ijk' does not fit operand 0, which has 2 axes."),
    ("i......", [(2, 3)], ValueError,
     "[einsum] 'i......': 'i......' does not fit operand 0, which has 2 axes."),
    ("i%->i", [(2, 3)], ValueError, "[einsum] 'i%->i': '%' is not a letter."),
    ("i.,..j", [(2,), (2,)], ValueError, "[einsum] 'i.,..j': '.' is not a letter."),
    ("ij->ii", [(2, 3)], ValueError, "[einsum] 'ij->ii': the result names 'i' twice."),
    ("ij->k", [(2, 3)], ValueError, "[einsum] 'ij->k': no operand has 'k' of the result."),
    ("i...->i", [(2, 3)], ValueError,
     "[einsum] 'i...->i': the operands have '...', the result does not."),
    ("ij,jk", [(2, 3), (4, 5)], ValueError,
     "[einsum] 'ij,jk': 'j' has extent 3, but 4 in operand 1 of shape (4, 5)."),
    ("...,...", [(2,), (3,)], ValueError,
     "[einsum] '...,...': an axis of '...' has extent 2, but 3 in operand 1 of shape (3,)."),
    (3, [(2, 3)], TypeError,
     "[einsum] expected subscripts like 'ij,jk->ik' first, got int."),
])  # fmt: skip
def test_messages(text, operands, error, message):
    with pytest.raises(error) as caught:
        mtl.einsum(text, *map(mtl.ones, operands))
    assert str(caught.value) == message


def test_truth_has_no_products():
    with pytest.raises(TypeError, match="not supported for bool"):
        mtl.einsum("i", mtl.ones(2) == 1)
