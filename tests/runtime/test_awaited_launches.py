"""``await event`` in coroutines of asyncio."""

import asyncio
import time

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("an end to launches")

SOURCE = """
kernel void twice(device int* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
kernel void divide(device int* x, constant int& by, uint i [[thread_position_in_grid]]) { x[i] /= by; }
kernel void spin(device volatile int* x) { while (x[0] == 0) {} x[1] = x[0]; }
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE)


@pytest.mark.needs("the process's memory")
def test_other_tasks_run_meanwhile(lib):
    x = mtl.Buffer(np.zeros(2, np.int32))
    seen = np.asarray(x)

    async def stop(after):
        await asyncio.sleep(after)
        seen[0] = 7

    async def run():
        event = lib.spin(x, threads=1, wait=False)
        result, _ = await asyncio.gather(event, stop(0.05))
        return event, result

    event, result = asyncio.run(run())
    assert result is event
    assert event.done
    assert seen.tolist() == [7, 7]


def test_a_launch_that_has_ended(lib):
    x = np.arange(4, dtype=np.int32)

    async def run():
        return await lib.twice(x, threads=4)

    assert asyncio.run(run()).done
    assert x.tolist() == [0, 2, 4, 6]


@pytest.mark.needs("the CPU")
def test_a_failure_is_raised(lib):
    async def run():
        await lib.divide(mtl.Buffer(np.ones(4, np.int32)), 0, threads=4, wait=False)

    with pytest.raises(mtl.KernelFault, match="divide"):
        asyncio.run(run())


def test_a_cancelled_task_cancels_its_launch(lib):
    x = mtl.Buffer(np.zeros(2, np.int32))
    event = lib.spin(x, threads=1, wait=False)

    async def run():
        await asyncio.wait_for(event, 0.05)

    start = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert time.monotonic() - start < 5
    with pytest.raises(mtl.LaunchCancelled):
        event.wait()
