"""Functions of `metalloid.numpy` and of NumPy: ratios of times, in turns, best of many.

    python benchmarks/numpy_functions.py [--elements 1000000] [--processor-time] [--cupy] [name ...]

Names are those of numpy_function_calls.ini, or groups of them. The last lines are the geometric
means of the ratios; below 1, metalloid is faster. The time of the processor, which is that of all
threads, depends less on other processes. A last column says what limits a call that is not faster
than NumPy: "memory", if it reads and writes at least 70 % of the bytes that a copy does in that
time (and the share); "call", if it takes less than 100 us, of which 10 to 30 are metalloid's call;
"LAPACK" and the like, by the section "limits" of the file; "zeros", where NumPy leaves them to the
operating system. Then follow two means for comparison: one as if every call took the time in which
a copy with cold caches moves the bytes of its operands and results, or that of a call of one
element; and the same with the present ratio for calls that have a name in "limits". A call whose
operands are in the caches can take less.

With `--cupy` and METALLOID_DEVICE=cuda, the other module is CuPy: operands and results are on the
GPU, a call ends when the GPU has computed its result, and functions that CuPy lacks are named.
"""

from __future__ import annotations

import argparse
import configparser
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

import metalloid as mtl
import metalloid.numpy as own

_CALLS = Path(__file__).with_name("numpy_function_calls.ini")
#: A call is repeated at least this often.
_MIN_REPEATS = 5
#: The clock of the processor's time may not move while a call runs.
_TICK = 1e-7

#: Arrays that caches do not hold together.
_ARRAYS = 16
#: A share of the bandwidth, and seconds.
_NEAR_BANDWIDTH, _SHORT = 0.7, 1e-4

Clock = Callable[[], float]
Names = dict[str, Any]
Waits = tuple[Callable[[Any], None], Callable[[Any], None]]


def calls() -> tuple[dict[str, dict[str, str]], list[str]]:
    """Texts by group and name, and the names that earlier tables had."""
    file = _file()
    not_measured, earlier = (file[name]["names"].split() for name in ("not measured", "earlier"))
    ufuncs = {
        name: f"np.{name}({arguments})"
        for name, value in vars(numpy).items()
        if isinstance(value, numpy.ufunc)
        and name not in not_measured
        and (arguments := file["operands"].get(name) or _usual_operands(value))
    }
    groups = {group: dict(file[group]) for group in file.sections()[:-4]}
    return {"ufuncs": dict(sorted(ufuncs.items())), **groups}, earlier


def _file() -> configparser.ConfigParser:
    file = configparser.ConfigParser(delimiters=(":",), interpolation=None)
    file.optionxform = str  # type: ignore[assignment, method-assign]
    file.read_string(_CALLS.read_text())
    return file


def _usual_operands(function: numpy.ufunc) -> str | None:
    types = [text.split("->")[0] for text in function.types]
    for kind, names in (("d", "xy"), ("l", "ij"), ("?", "bb")):
        if kind * function.nin in types:
            return ", ".join(names[: function.nin])
    return None


def operands(elements: int) -> Names:
    """The names of the texts, with arrays of NumPy."""
    random = numpy.random.default_rng(0)
    x, y = random.random(elements), random.random(elements)
    columns = min(1000, math.isqrt(elements))
    rows, side = elements // columns, min(200, math.isqrt(elements))
    s = random.standard_normal((side, side)) + side * numpy.eye(side)
    count = elements // 16
    return {
        "x": x,
        "y": y,
        "z": x + 1j * y,
        "b": x < 0.5,
        "ordered": numpy.sort(x),
        "m": x[: rows * columns].reshape(rows, columns),
        "i": random.integers(1, 1001, elements),
        "j": random.integers(1, 1001, elements),
        "gaps": numpy.where(x < 0.01, math.nan, x),
        "bytes": random.integers(0, 256, elements // 8, dtype=numpy.uint8),
        "s": s,
        "h": s @ s.T,
        "stack": random.standard_normal((count, 4, 4)) + 4 * numpy.eye(4),
        "points": numpy.sort(random.random(100)),
        "heights": random.random(100),
    }


def namespace(np: Any, arrays: Names, elements: int) -> Names:
    """The names of the texts, for a module."""
    converted = {name: np.asarray(array) for name, array in arrays.items()}
    return {"np": np, "n": elements, "rng": np.random.default_rng(0), "changed": changed,
            **converted}  # fmt: skip


def changed(array: Any, function: Callable[[Any], object]) -> Any:
    """A copy of an array that a function has changed."""
    copy = array.copy()
    function(copy)
    return copy


def bytes_of(text: str, names: Names) -> int:
    """Bytes of the results of a call, and of the operands that it names as a whole."""
    result = eval(text, names)
    results = result if isinstance(result, tuple | list) else (result,)
    operands = {name for name in re.findall(r"\b(\w+)\b(?!\[|=)", text) if name in names}
    return sum(numpy.asarray(x).nbytes for x in (*results, *map(names.get, operands))
               if isinstance(x, numpy.ndarray | numpy.generic))  # fmt: skip


def bandwidth(array: numpy.ndarray, clock: Clock) -> float:
    """Bytes that a copy reads and writes in a second, where caches hold neither array.

    That is the case of calls in turns: the other module's call was the last to use the caches.
    """
    arrays, best = [array.copy() for _ in range(_ARRAYS)], math.inf
    for k in range(10 * _ARRAYS):
        start = clock()
        numpy.copyto(arrays[k % _ARRAYS], arrays[(k + _ARRAYS // 2) % _ARRAYS])
        best = min(best, clock() - start)
    return 2 * array.nbytes / best


def shortest_call(np: Any, clock: Clock) -> float:
    """Seconds of a call with one element."""
    one, best = np.asarray([1.0]), math.inf
    for _ in range(1000):
        start = clock()
        evaluate(np.add(one, one))
        best = min(best, clock() - start)
    return best


def limits() -> dict[str, str]:
    """Limits of calls, by their names."""
    file = _file()
    return {name: limit for limit, names in file["limits"].items() for name in names.split()}


def evaluate(result: Any) -> None:
    """Compute the values of a result."""
    for each in result if isinstance(result, tuple | list) else (result,):
        numpy.asarray(each)


def compute(result: Any) -> None:
    """Compute the results of a call of metalloid and leave them on their device."""
    results = result if isinstance(result, tuple | list) else (result,)
    arrays = [each for each in results if isinstance(each, own.ndarray)]
    mtl.eval(*arrays)
    for array in arrays[:1]:
        array.device.synchronize()


def cupy_and_wait() -> tuple[Any, Callable[[Any], None]]:
    """CuPy, and a function that waits for its results."""
    import cupy

    return cupy, lambda _: cupy.cuda.Device().synchronize()


def ratio(text: str, both: tuple[Names, Names], waits: Waits, seconds: float, clock: Clock
          ) -> tuple[float, float]:  # fmt: skip
    """Best times of metalloid and of the other module, called in turns for so many seconds."""
    code = compile(text, text, "eval")
    best = [math.inf, math.inf]
    for names, wait in zip(both, waits, strict=True):  # the first call compiles
        wait(eval(code, names))
    end, count = time.perf_counter() + seconds, 0
    while count < _MIN_REPEATS or time.perf_counter() < end:
        count += 1
        for which, (names, wait) in enumerate(zip(both, waits, strict=True)):
            start = clock()
            wait(eval(code, names))
            best[which] = min(best[which], max(clock() - start, _TICK))
    return best[0], best[1]


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    texts, names_of_earlier = calls()
    parser.add_argument("names", nargs="*", default=list(texts))
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each function")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--cupy", action="store_true", help="compare with CuPy instead of NumPy")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    arrays = operands(options.elements)
    other, wait = cupy_and_wait() if options.cupy else (numpy, evaluate)
    waits = (compute if options.cupy else evaluate, wait)
    both = (namespace(own, arrays, options.elements), namespace(other, arrays, options.elements))
    lacking: list[str] = []
    ratios: dict[tuple[str, str], float] = {}
    bounds: dict[tuple[str, str], float] = {}
    copied, known = bandwidth(arrays["x"], clock), limits()
    shortest = shortest_call(own, clock)
    for group, name in [(group, name) for group, some in texts.items() for name in some]:
        if group in options.names or name in options.names:
            try:
                ours, theirs = ratio(texts[group][name], both, waits, options.seconds, clock)
            except Exception as error:  # CuPy's classes of errors are many
                if not options.cupy:
                    raise
                lacking.append(f"{group} {name}: {type(error).__name__}: {str(error)[:80]}")
                continue
            ratios[group, name] = ours / theirs
            row = f"{group:9s} {name:27s} {ours * 1e3:9.3f} ms {theirs * 1e3:9.3f} ms"
            if options.cupy:
                print(f"{row} {ours / theirs:7.2f}", flush=True)
                continue
            limit = ""
            moving = bytes_of(texts[group][name], both[1]) / copied
            bounds[group, name] = min(max(moving, shortest) / theirs, ours / theirs)
            if ours > theirs:
                is_near = moving / ours >= _NEAR_BANDWIDTH
                limit = f"memory, {moving / ours:.2f}" if is_near else ""
                limit = "call" if ours < _SHORT else known.get(name, limit)
            print(f"{row} {ours / theirs:7.2f} {limit}", flush=True)
    for group in {group: None for group, _ in ratios}:
        some = [value for (each, _), value in ratios.items() if each == group]
        print(f"geometric mean of {len(some)} {group}: {mean(some):.2f}")
    earlier = [
        value
        for (group, name), value in ratios.items()
        if name in names_of_earlier and group in ("ufuncs", "functions", "fft")
    ]
    if len(earlier) == len(names_of_earlier):
        print(
            f"geometric mean of the {len(names_of_earlier)} of earlier tables: {mean(earlier):.2f}"
        )
    print(f"geometric mean of all {len(ratios)}: {mean(list(ratios.values())):.2f}")
    if options.cupy:
        print(*lacking, sep="\n")
        return
    speed = f"{copied / 1e9:.0f} GB/s, and {shortest * 1e6:.0f} us a call"
    print(f"at {speed}: {mean(list(bounds.values())):.2f}")
    same = [ratios[key] if key[1] in known else bound for key, bound in bounds.items()]
    print(f"and with the present ratios of calls whose limits are named: {mean(same):.2f}")


if __name__ == "__main__":
    main()
