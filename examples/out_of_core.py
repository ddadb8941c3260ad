"""A Metal kernel over an array that is larger than memory: Dask gives it blocks of rows.

    pip install 'metalloid[dask]'
    python examples/out_of_core.py 20        # 20 GB, by two worker processes

Blocks are made, blurred and added up one after the other, so that only a few are in memory.
"""

import resource
import sys
import time

import numpy as np

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

// The mean of each element and those above and below it; the first and the last row stay.
kernel void blur(device float *y, device const float *x, constant uint2 &shape,
                 uint2 at [[thread_position_in_grid]])
{
    uint columns = shape.y, i = at.y * columns + at.x;
    bool is_inside = at.y > 0 && at.y + 1 < shape.x;
    y[i] = is_inside ? (x[i - columns] + x[i] + x[i + columns]) / 3 : x[i];
}
"""


def blurred(block, kernel):
    """Run the kernel over one block, which has a row of each neighbour."""
    rows, columns = block.shape
    x, y = np.ascontiguousarray(block), np.empty_like(block)
    kernel(y, x, np.array([rows, columns], np.uint32), threads=(columns, rows))
    return y


def peak_gigabytes():
    """The largest memory that a worker has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main():
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    columns = 10_000
    rows = int(gigabytes * 1e9 / 4 / columns)
    kernel = mtl.library(SOURCE).blur  # workers get its text, and compile it once
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        started = time.perf_counter()
        noise = da.random.default_rng(0).random((rows, columns), np.float32, chunks=(1000, columns))
        result = noise.map_overlap(
            blurred, depth={0: 1}, boundary="none", dtype=np.float32, kernel=kernel
        )
        mean, deviation = da.compute(result.mean(dtype=np.float64), result.std(dtype=np.float64))
        seconds = time.perf_counter() - started
        peaks = ", ".join(f"{peak:.1f}" for peak in client.run(peak_gigabytes).values())
    print(f"{rows} x {columns} floats, {rows * columns * 4e-9:.1f} GB: {seconds:.0f} s")
    print(f"mean {mean:.4f}, standard deviation {deviation:.4f} (of the noise 0.2887)")
    print(f"most memory of a worker: {peaks} GB")


if __name__ == "__main__":
    main()
