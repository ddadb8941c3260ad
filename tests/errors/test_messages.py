"""Every message a user can meet, word for word.

The texts stand in ``messages.txt`` (see ``snapshots.py``).
"""

import contextlib
import re

import numpy as np
import pytest
from message_cases import (
    ARGUMENTS,
    CALLS,
    ENDED,
    FAULTS,
    FOLDER,
    HEADER,
    LIBRARIES,
    NEEDS,
    STRUCTS,
    TEXTS,
    TEXTURES,
    floats,
    ints,
    kernels,
)
from portable_texts import rules
from snapshots import Snapshots

import metalloid as mtl

MESSAGES = Snapshots(FOLDER / "messages.txt")


def check(name, error):
    device = re.escape(mtl.default_device().name)
    hidden = [
        (r"\(\d+ bytes of memory\)", "(N bytes of memory)"),
        (r"(KernelFault: \[\w+\]) \S+\.metal:\d+:", r"\1"),  # see test_fault_lines.py
        (f" on {device}>", " on cpu>"),
        (r"cancelled after \S+ s", "cancelled after N s"),
    ]
    MESSAGES.check(name, error, hidden)


def cases(table):
    """The names of a table, each with what it needs."""
    return [
        pytest.param(name, marks=[pytest.mark.needs(NEEDS[name])] if name in NEEDS else [])
        for name in table
    ]


@pytest.mark.parametrize("name", cases(ARGUMENTS))
def test_arguments(name):
    refuses("argument", name)


@pytest.mark.parametrize("name", TEXTURES)
def test_textures(name):
    refuses("texture", name)


@pytest.mark.parametrize("name", STRUCTS)
def test_structs(name):
    refuses("struct", name)


def refuses(kind, name):
    lib = kernels()
    with pytest.raises(mtl.ArgumentError) as caught:
        CALLS[kind][name](lib)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    check(f"{kind}: {name}", caught.value)
    still_works(lib)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    lib = kernels()
    with pytest.raises(mtl.KernelFault) as caught:
        FAULTS[name](lib)
    check(f"fault: {name}", caught.value)
    assert caught.value.kernel
    assert caught.value.reason in str(caught.value)
    still_works(lib)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("name", ENDED)
def test_ended_launches(name):
    lib = kernels()
    kind, launch = ENDED[name]
    with pytest.raises(kind) as caught:
        launch(lib)
    check(f"ended: {name}", caught.value)
    still_works(lib)


@pytest.mark.parametrize("name", cases(LIBRARIES))
def test_libraries(name):
    with pytest.raises(mtl.MetalloidError) as caught:
        LIBRARIES[name]()
    check(f"library: {name}", caught.value)


@pytest.mark.parametrize("name", cases(TEXTS))
def test_texts(name):
    with pytest.raises(mtl.CompileError) as caught:
        TEXTS[name]()
    assert isinstance(caught.value, SyntaxError)
    check(f"text: {name}", caught.value)
    still_works(kernels())


@pytest.mark.parametrize("name", rules())
def test_portable(name):
    with pytest.raises(mtl.CompileError) as caught:
        mtl.library(HEADER + rules()[name][0], portable=True)
    check(f"portable: {name}", caught.value)


@pytest.mark.parametrize("body", ["\udc80 kernel \x00 void", "\x00", "]]", "#", "template <" * 50])
def test_texts_that_are_no_texts(body):
    with contextlib.suppress(mtl.CompileError):  # any other exception is a failure
        mtl.library(HEADER + body)
    still_works(kernels())


def still_works(lib):
    y = floats()
    lib.saxpy(y, floats(), 2, threads=4)
    assert y.tolist() == [3, 3, 3, 3]


def test_no_message_is_left_over():
    tables = CALLS | {
        "fault": FAULTS,
        "ended": ENDED,
        "library": LIBRARIES,
        "text": TEXTS,
        "portable": rules(),
    }
    names = {f"{kind}: {name}" for kind, table in tables.items() for name in table}
    assert set(MESSAGES.known()) == names


@pytest.mark.needs("the CPU")
def test_a_fault_of_an_asynchronous_launch_is_raised_where_it_is_waited_for():
    lib = kernels()
    x = mtl.Buffer(ints())
    event = lib.divide(x, threads=4)
    with pytest.raises(mtl.KernelFault, match="division by zero"):
        event.wait()
    for _ in range(2):
        with pytest.raises(mtl.KernelFault, match="division by zero"):
            np.asarray(x)


def test_a_grid_that_cannot_be_counted():
    lib = kernels()
    for wait in (True, False):
        with pytest.raises(
            mtl.LaunchError,
            match=r"\[divide\] the grid has more than 9223372036854775807 threadgroups",
        ):
            lib.divide(ints(), threads=(2**32 - 1,) * 3, group_size=1, wait=wait).wait()
    still_works(lib)


@pytest.mark.needs("the CPU")
def test_a_fault_inside_one_of_many_threadgroups_is_reported():
    lib = kernels()
    x = np.ones(100_000, np.int32)
    x[77_777] = 0
    with pytest.raises(mtl.KernelFault) as caught:
        lib.divide(x, threads=x.size, group_size=100)
    assert caught.value.threadgroup == (777, 0, 0)


@pytest.mark.needs("the CPU")
def test_barriers_may_be_taken_as_gpus_take_them():
    lib = kernels()
    x = ints()
    with mtl.config.scope(strict_barriers=False):
        lib.early_return(x, threads=4)
        assert x.tolist() == [1, 1, 1, 0]
        lib.two_barriers(x, threads=4)
    with pytest.raises(mtl.KernelFault):
        lib.early_return(x, threads=4)


def test_errors_survive_pickling():
    import pickle

    with pytest.raises(mtl.CompileError) as caught:
        TEXTS["undeclared name"]()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.filename, copy.lineno) == ("program_source", 4)


def test_a_failing_library_leaves_nothing_in_the_cache(fresh_cache):
    with pytest.raises(mtl.CompileError):
        TEXTS["undeclared name"]()
    entries = {folder.name for folder in fresh_cache.glob("v1/??/*")}
    with pytest.raises(mtl.CompileError):
        TEXTS["undeclared name"]()
    assert {folder.name for folder in fresh_cache.glob("v1/??/*")} == entries
    assert not list(fresh_cache.rglob("tmp-*"))
