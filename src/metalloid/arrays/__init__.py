"""Arrays: lazy expressions that become kernels of generated Metal when their values are read.

A function of `functions` adds nodes to a graph (`ir`), directly or by `lowering`. Reading a value
calls `execution`, which plans the graph (`planning`), generates Metal for each kernel of the plan
(`codegen`) and launches it. Folders may import those before them in this list:

=============  ===================================================================================
``metal``      Metal sources of the array library
``ir``         element types, the table of elementwise operations, layouts, nodes
``planning``   which values are materialized, and which operations each kernel fuses
``codegen``    Metal text of a fused kernel, and its parameters
``execution``  evaluation: plans are cached, kernels launched; calls of host functions
``interop``    NumPy's protocols and DLPack
``lowering``   reductions, indexing, matrix products as nodes; which implementation they use
``library``    launches of the kernels for sorts, scans and windows
``files``      npy, npz and safetensors
``functions``  NumPy's functions, by the chapters of the array API
=============  ===================================================================================
"""
