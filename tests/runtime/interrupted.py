"""A program whose launches are interrupted by Ctrl-C: ``python interrupted.py SCENARIO ...``.

It prints, for each scenario, the seconds from the signal to KeyboardInterrupt.
"""

import functools
import os
import signal
import sys
import threading
import time

import numpy as np

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void spin(device atomic_int* a) {
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) {}
}
kernel void spin_some(device atomic_int* a, uint i [[thread_position_in_grid]]) {
  if (i == 77) while (atomic_load_explicit(a, memory_order_relaxed) == 0) {}
}
kernel void count(device int* a) { for (int i = 0; i < 2000000000; i++) a[i & 7] += i * a[3]; }
kernel void spin_at_barrier(device atomic_int* a, uint i [[thread_position_in_threadgroup]]) {
  threadgroup int shared[256];
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) {
    shared[i] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
kernel void spin_in_simdgroup(device atomic_int* a, device int* out) {
  int sum = 0;
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) sum += simd_sum(sum);
  *out = sum;
}
kernel void sleep(device int* a, constant int& n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 3 + (i ^ sum);
  a[0] = sum == 7 ? 2 : 1;
}
kernel void logistic(device float* x, uint i [[thread_position_in_grid]]) {
  float v = x[i];
  for (int k = 0; k < 20000; k++) v = 3.9f * v * (1 - v);
  x[i] = v;
}
kernel void row_sums(device const float* a, device float* out, uint i [[thread_position_in_threadgroup]],
                     uint row [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  threadgroup float shared[256];
  for (int k = 0; k < 200; k++) {
    shared[i] = a[row * n + i] + (k > 0 ? 1e-6f * shared[i] : 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = n / 2; step > 0; step /= 2) {
      if (i < step) shared[i] += shared[i + step];
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  if (i == 0) out[row] = shared[0];
}
kernel void add(device int* a, uint i [[thread_position_in_grid]]) { a[i] += 1; }
"""
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what shells run with &
lib = mtl.library(SOURCE)
sent = [0.0]


def interrupt_soon(seconds=0.15):
    def send():
        time.sleep(seconds)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def words():
    return np.zeros(8, np.int32)


def launches(name, threads, **options):
    """A scenario: a launch over NumPy arrays."""

    def scenario():
        arrays = [words() for _ in getattr(lib, name).signature.buffers]
        return lambda: getattr(lib, name)(*arrays, threads=threads, **options)

    return scenario


def known_launch():
    """A launch like an earlier one, of which the interpreter sees little."""
    lib.spin(np.ones(8, np.int32), threads=1)
    return lambda: lib.spin(words(), threads=1)


def spun():
    """A buffer that an endless launch uses."""
    buffer = mtl.Buffer(words())
    lib.spin(buffer, threads=1)
    return buffer


def queued_after_an_endless_one():
    """The launch that is waited for follows an endless one."""
    x = mtl.Buffer(words())
    spun()
    lib.add(x, threads=8)
    return lambda: np.asarray(x)


def synchronous_after_an_endless_one():
    spun()
    return lambda: lib.add(words(), threads=8)


def of_another_thread():
    """The launch of another Python thread ends, too: the interrupted one waits for it."""
    thread = threading.Thread(target=lambda: raises(mtl.LaunchCancelled, known_launch()))
    thread.start()
    time.sleep(0.05)

    def launch_and_join():
        try:
            lib.add(words(), threads=8)
        finally:
            thread.join()

    return launch_and_join


def raises(kind, function):
    try:
        function()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def array_expression():
    def power(n):
        x = mtl.asarray(np.ones(n, np.float32))
        for _ in range(300):
            for _ in range(10):
                x = mtl.sin(x)
            mtl.async_eval(x)  # a kernel of 3000 sines takes half a minute to compile
        return x

    np.asarray(power(8))
    x = power(1 << 22)
    return lambda: np.asarray(x)


def elementwise_kernel():
    kernel = mtl.ElementwiseKernel(
        "float x", "float y", "float v = x; while (v < 2) v = 0.5f * v + 0.5f; y = v;", "never"
    )
    np.asarray(kernel(np.full(8, 2, np.float32)))
    return lambda: np.asarray(kernel(np.ones(8, np.float32)))


def metal_kernel():
    kernel = mtl.metal_kernel(
        "never", ["x"], ["y"], "float v = x[0]; while (v < 2) v = 0.5f * v + 0.5f; y[0] = v;"
    )

    def run(value):
        x = np.full(8, value, np.float32)
        (y,) = kernel(inputs=[x], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)],
                      output_dtypes=[np.float32])  # fmt: skip
        return np.asarray(y)

    run(2)
    return lambda: run(1)


def compat_metal():
    from metalloid.compat import Metal

    device = Metal.MTLCreateSystemDefaultDevice()
    library, _ = device.newLibraryWithSource_options_error_(SOURCE, None, None)
    function = library.newFunctionWithName_("spin")
    pipeline, _ = device.newComputePipelineStateWithFunction_error_(function, None)
    buffer = device.newBufferWithLength_options_(32, 0)
    commands = device.newCommandQueue().commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline)
    encoder.setBuffer_offset_atIndex_(buffer, 0, 0)
    one = Metal.MTLSizeMake(1, 1, 1)
    encoder.dispatchThreads_threadsPerThreadgroup_(one, one)
    encoder.endEncoding()
    commands.commit()
    return commands.waitUntilCompleted


def compat_metalcompute():
    import metalloid.compat.metalcompute as mc

    device = mc.Device()
    function, buffer = device.kernel(SOURCE).function("spin"), device.buffer(32)

    def run():
        function(1, buffer)  # waits when the handle goes away, where Python raises nothing:
        time.sleep(0.1)  # a moment later

    return run


SCENARIOS = {
    "one thread": launches("spin", 1),
    "many threads": launches("spin", 100_000),
    "one lane of many": launches("spin_some", 10_000),
    "a counted loop": launches("count", 4),
    "a barrier": launches("spin_at_barrier", 256, group_size=256),
    "a simdgroup function": launches("spin_in_simdgroup", 64),
    "a known launch": known_launch,
    "a buffer": lambda: lib.spin(mtl.Buffer(words()), threads=1).wait,
    "a buffer that is read": lambda: functools.partial(np.asarray, spun()),
    "the device": lambda: (spun(), mtl.default_device().synchronize)[1],
    "queued behind": queued_after_an_endless_one,
    "synchronous behind": synchronous_after_an_endless_one,
    "of another thread": of_another_thread,
    "an array expression": array_expression,
    "ElementwiseKernel": elementwise_kernel,
    "metal_kernel": metal_kernel,
    "compat.Metal": compat_metal,
    "compat.metalcompute": compat_metalcompute,
}


def check_alive():
    """The device, its threads, and arrays go on."""
    x, y = np.zeros(100_000, np.int32), mtl.Buffer(np.zeros(100_000, np.int32))
    lib.add(x, threads=x.size)
    lib.add(y, threads=x.size)
    assert (x == 1).all()
    assert (np.asarray(y) == 1).all()
    assert float(mtl.sum(mtl.arange(1000.0))) == 499500


#: What only the CPU can interrupt, or takes long enough there only.
ON_THE_CPU = {"a counted loop", "of another thread", "an array expression"}


def main(names):
    check_alive()
    is_cpu = mtl.default_device().name == "cpu"
    for name in names or [name for name in SCENARIOS if is_cpu or name not in ON_THE_CPU]:
        action = SCENARIOS[name]()
        interrupt_soon()
        try:
            action()
        except KeyboardInterrupt:
            print(f"{name}: {time.perf_counter() - sent[0]:.3f}", flush=True)
        else:
            print(f"{name}: not interrupted", flush=True)
        check_alive()


if __name__ == "__main__":
    main(sys.argv[1:])
