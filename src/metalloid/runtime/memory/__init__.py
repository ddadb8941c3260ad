"""Memory of devices: buffers, their copies on the host, and staging of host memory for a launch.

`buffer` uses `host_copy` on devices with memory of their own. `staging` is called by back ends,
for arguments that lie in host memory.
"""
