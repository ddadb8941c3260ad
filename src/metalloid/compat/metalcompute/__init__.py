"""Run metal compute kernels: stands in for metalcompute 0.2.9.

``import metalloid.compat.metalcompute as mc`` in place of ``import metalcompute as mc``.

Examples
--------
>>> import metalloid.compat.metalcompute as mc
>>> dev = mc.Device()
>>> product = dev.kernel('''
... kernel void product(device const float *a, device const float *b, device float *c,
...                     uint id [[thread_position_in_grid]]) { c[id] = a[id] * b[id]; }
... ''').function("product")
>>> from array import array
>>> c = dev.buffer(3 * 4)
>>> run = product(3, array("f", [1, 2, 3]), array("f", [4, 5, 6]), c)
>>> del run  # waits
>>> memoryview(c).cast("f").tolist()
[4.0, 10.0, 18.0]
"""

from metalloid.compat.metalcompute.device import Device, get_devices
from metalloid.compat.metalcompute.failure import error
from metalloid.compat.metalcompute.one_kernel import compile, init, release, rerun, run

__all__ = ["Device", "compile", "error", "get_devices", "init", "release", "rerun", "run"]
