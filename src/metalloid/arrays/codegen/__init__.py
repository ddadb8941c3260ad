"""Code generation: the Metal text of one kernel of a schedule, and the parameters of its launch.

`execution.evaluate` calls `kernel_source.render` for each kernel. The ``gpu_*`` modules write the
forms for SIMT devices.
"""
