"""Arrays: lazy expressions that become kernels of generated Metal when their values are needed."""
