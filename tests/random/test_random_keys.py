"""Keys and bits: the published vectors, JAX's numbers, and a second implementation on NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.random.keys import threefry

# Random123's kat_vectors for threefry2x32 with 20 rounds: counter, key, result.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
WORDS = st.integers(0, 2**32 - 1)


def numpy_threefry(key, counters):
    """Blocks of 64 bits for counters of 64 bits, from the paper, on arrays of NumPy."""
    counters = np.asarray(counters, np.uint64)
    k = [np.uint32(key[0]), np.uint32(key[1])]
    k.append(k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
    x = [(counters >> np.uint64(32)).astype(np.uint32), counters.astype(np.uint32)]
    with np.errstate(over="ignore"):
        x = [x[0] + k[0], x[1] + k[1]]
        for r in range(20):
            turn = np.uint32([13, 15, 26, 6, 17, 29, 16, 24][r % 8])
            x[0] = x[0] + x[1]
            x[1] = (x[1] << turn) | (x[1] >> (np.uint32(32) - turn))
            x[1] = x[1] ^ x[0]
            if r % 4 == 3:
                j = r // 4 + 1
                x[0] = x[0] + k[j % 3]
                x[1] = x[1] + k[(j + 1) % 3] + np.uint32(j)
    return x[0].astype(np.uint64) << np.uint64(32) | x[1]


def folded(blocks):
    return (blocks >> np.uint64(32) ^ blocks).astype(np.uint32)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    index = counter[0] << 32 | counter[1]
    assert threefry(key, counter) == result
    assert int(numpy_threefry(key, index)) == result[0] << 32 | result[1]
    folded = mtl.random.fold_in(mtl.asarray(np.array(key, np.uint32)), np.uint64(index))
    assert tuple(folded.tolist()) == result


@settings(max_examples=30)
@given(key=st.tuples(WORDS, WORDS), shape=st.lists(st.integers(0, 9), max_size=3))
def test_bits_are_those_of_numpy(key, shape):
    words = mtl.asarray(np.array(key, np.uint32))
    size = int(np.prod(shape))
    blocks = numpy_threefry(key, np.arange(size)).reshape(shape)
    np.testing.assert_array_equal(mtl.random.bits(shape, mtl.uint64, words), blocks)
    for dtype in ("uint8", "uint16", "uint32"):
        expected = folded(blocks).astype(dtype)
        np.testing.assert_array_equal(mtl.random.bits(shape, dtype, words), expected)


def test_indices_beyond_32_bits():
    """Only the elements that are looked at are computed: an array of 2**40 takes no memory."""
    key = mtl.random.key(5)
    first = 2**32 - 3
    some = mtl.random.bits(2**40, mtl.uint64, key)[first : first + 6]
    np.testing.assert_array_equal(some, numpy_threefry((0, 5), np.arange(first, first + 6)))


def test_jax_has_the_same():
    """Numbers of JAX 0.10.2, whose key is PRNGKey(1234567)."""
    key = mtl.random.key(1234567)
    assert mtl.random.bits((2, 3), key=key).tolist() == [
        [2510096734, 1328287751, 1761877457],
        [1286841485, 2111406442, 2495340195],
    ]
    assert mtl.random.bits(3, mtl.uint8, key).tolist() == [94, 7, 209]
    assert mtl.random.bits(3, mtl.uint16, key).tolist() == [2398, 4103, 7633]
    assert mtl.random.split(key, (2, 2)).tolist() == [
        [[3210164336, 717893934], [963029596, 1984608859]],
        [[3892275948, 2398844733], [3185548129, 4050403308]],
    ]
    assert mtl.random.fold_in(key, 2**31 + 5).tolist() == [2580141979, 2525388978]


def test_keys_of_seeds():
    assert mtl.random.key(2**32 + 7).tolist() == [1, 7]
    assert mtl.random.key(-1).tolist() == [2**32 - 1, 2**32 - 1]
    assert mtl.random.key(np.int64(3)).tolist() == [0, 3]
    assert mtl.random.key(3).dtype == np.uint32
    with pytest.raises(OverflowError, match="a seed has 64 bits"):
        mtl.random.key(2**64)


def test_split_and_fold_in_agree():
    key = mtl.random.key(11)
    keys = mtl.random.split(key, 5)
    for k in range(5):
        assert mtl.random.fold_in(key, k).tolist() == keys[k].tolist()
    assert mtl.random.fold_in(key, mtl.asarray(3)).tolist() == keys[3].tolist()


def test_long_chains_of_keys_are_computed_once_each():
    key, expected = mtl.random.key(1), (0, 1)
    for _ in range(60):
        key = mtl.random.split(key)[1]
        expected = threefry(expected, (0, 1))
    np.testing.assert_array_equal(
        mtl.random.bits(100, mtl.uint64, key), numpy_threefry(expected, np.arange(100))
    )


def test_streams_of_split_keys_are_independent():
    """Neighbours' bits agree at half of their positions, and their numbers are not correlated."""
    keys = mtl.random.split(mtl.random.key(0), 16)
    streams = np.stack([np.asarray(mtl.random.bits(4096, key=k)) for k in keys])
    assert len(np.unique(streams)) > streams.size - 5  # 2**16 of 2**32: half a pair is expected
    for a in range(16):
        for b in range(a):
            differ = np.bitwise_count(streams[a] ^ streams[b]).sum()
            bits = 32 * 4096
            assert abs(differ - bits / 2) < 5 * np.sqrt(bits / 4)
    unit = streams / 2.0**32 - 0.5
    correlation = np.corrcoef(unit) - np.eye(16)
    assert np.abs(correlation).max() < 5 / np.sqrt(4096)


def test_the_sequence_of_keys():
    mtl.random.seed(8)
    first = [mtl.random.bits(4).tolist() for _ in range(3)]
    mtl.random.seed(8)
    assert [mtl.random.bits(4).tolist() for _ in range(3)] == first
    assert len({tuple(x) for x in first}) == 3
    keys = mtl.random.split(mtl.random.key(8), 3)
    assert [mtl.random.bits(4, key=k).tolist() for k in keys] == first


def test_keys_of_other_libraries():
    words = np.array([0, 6], np.uint32)
    assert mtl.random.split(words).tolist() == mtl.random.split(mtl.random.key(6)).tolist()
    assert mtl.random.bits(3, key=words).tolist() == (
        mtl.random.bits(3, key=mtl.random.key(6)).tolist()
    )


def test_keys_are_checked():
    with pytest.raises(TypeError, match=r"\[random.uniform\] keys must be uint32, got int64"):
        mtl.random.uniform(shape=3, key=mtl.asarray([0, 1]))
    with pytest.raises(ValueError, match=r"keys must have shape \(2,\) or .*, got \(2, 3\)"):
        mtl.random.uniform(shape=3, key=mtl.random.split(mtl.random.key(0), 3).T)
    with pytest.raises(TypeError, match="expected integers, got float32"):
        mtl.random.fold_in(mtl.random.key(0), 0.5)
    with pytest.raises(TypeError, match="unsigned integers, got int32"):
        mtl.random.bits(3, mtl.int32)
