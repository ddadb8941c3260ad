"""Ctrl-C and other signals while launches run."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

pytestmark = pytest.mark.needs("an end to launches")
on_the_cpu = pytest.mark.needs("the CPU")


def run(script, *arguments):
    """The output of a program of its own: signals to the process of the tests would end the tests."""
    command = [sys.executable, "-X", "faulthandler", "-W", "error", *script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def run_text(text):
    """The same, of a text that finds the kernels of `interrupted`."""
    head = f"import sys; sys.path.insert(0, {str(FOLDER)!r})\nfrom interrupted import *\n"
    return run(["-c", head + textwrap.dedent(text)])


def test_ctrl_c_ends_every_kind_of_launch_within_a_fifth_of_a_second():
    seconds = {}
    for _ in range(3):  # a busy machine may hold one up
        slow = [name for name, value in seconds.items() if value > 0.2]
        if seconds and not slow:
            break
        for line in run([str(FOLDER / "interrupted.py")], *slow).splitlines():
            name, _, value = line.rpartition(": ")
            assert value != "not interrupted", name
            seconds[name] = float(value)
    assert len(seconds) >= 14
    assert max(seconds.values()) <= 0.2, seconds


@on_the_cpu
def test_a_handler_that_returns_leaves_the_launch_alone():
    output = run_text("""
        seen = []
        signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
        x = np.zeros(8, np.int32)
        interrupt_soon(0.1)
        event = lib.sleep(x, 1_500_000_000, threads=1, wait=False)
        event.wait()
        print(seen, x[0], event.seconds > 0.15)
    """)
    assert output == "[2] 1 True\n"


def test_what_another_handler_raises_is_raised_by_the_launch():
    output = run_text("""
        class Enough(Exception): pass
        def handler(number, frame): raise Enough("so many")
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            lib.spin(words(), threads=1000)
        except Enough as error:
            print(repr(error))
        check_alive()
    """)
    assert output == "Enough('so many')\n"


@on_the_cpu
def test_results_are_right_while_signals_come_all_the_time():
    """Kernels are interrupted thousands of times, between any two of their instructions."""
    output = run_text("""
        calls = []
        signal.signal(signal.SIGALRM, lambda number, frame: calls.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        rng = np.random.default_rng(1)
        x = rng.random(1 << 16).astype(np.float32)
        a = rng.random((256, 256)).astype(np.float32)
        expected = None
        start = time.monotonic()
        while (took := time.monotonic() - start) < 1.5 or (len(calls) <= 100 and took < 60):
            y, out = x.copy(), np.zeros(256, np.float32)
            # After a launch with a short limit the watchdog visits all threads every 4 ms.
            lib.add(words(), threads=8, timeout=0.1)
            lib.logistic(y, threads=y.size)
            lib.row_sums(a, out, threads=256 * 256, group_size=256)
            if expected is None:
                expected = y, out
            assert (y == expected[0]).all() and (out == expected[1]).all()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(calls) > 100)
    """)
    assert output == "True\n"


@on_the_cpu
def test_a_handler_cannot_wait_for_a_launch_while_it_interrupts_a_kernel():
    output = run_text("""
        def handler(number, frame):
            try:
                lib.add(words(), threads=8)
            except mtl.LaunchError as error:
                print(error)
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, handler)
        lib.spin(words() + 1, threads=1)  # ends at once: compiled before the signal comes
        interrupt_soon(0.3)
        raises(KeyboardInterrupt, lambda: lib.spin(words(), threads=1))
        check_alive()
    """)
    assert output == (
        "[add] a handler of a signal has interrupted a kernel and cannot wait for a launch. Let the "
        "handler set a flag or raise, and launch after it has returned.\n"
    )


def test_launches_that_ctrl_c_ended_say_so():
    output = run_text("""
        check_alive()  # on GPUs, `add` cannot be loaded while `spin` runs
        x, y = mtl.Buffer(words()), mtl.Buffer(words())
        first, second = lib.spin(x, threads=1), lib.add(y, threads=8)
        interrupt_soon(0.1)
        raises(KeyboardInterrupt, second.wait)
        print(first, second)
        for read in (first.wait, second.wait, lambda: np.asarray(x), lambda: np.asarray(y)):
            raises(mtl.LaunchCancelled, read)
        lib.add(y, threads=8)
        print(np.asarray(y)[0] in (1, 2))  # the GPU may have run the launch behind `spin`
    """)
    assert output == "<Event: spin, failed> <Event: add, failed>\nTrue\n"


@on_the_cpu
def test_launches_end_in_a_forked_child():
    output = run_text("""
        lib.add(np.zeros(1000, np.int32), threads=1000)
        child = os.fork()
        interrupt_soon(0.1)
        raises(KeyboardInterrupt, lambda: lib.spin(words(), threads=100))
        check_alive()
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert output == "0\n"
