"""Function transforms over the graph of arrays: derivatives, batching, compilation.

A transform calls a function once, with tracers, and rewrites the nodes that it built. Derivatives
follow JAX's design: one rule per primitive gives the derivative along a tangent, which is linear in
the tangents (``forward``); reverse mode transposes these expressions (``transpose``). ``gradients``
and ``batching`` hold the public functions; ``tracing`` and ``tree`` serve all. Derivatives of
elementwise operations stand in the table of operations (`arrays.ir.ops`) and are evaluated by
``elementwise``; those of primitives are in ``rules``.
"""
