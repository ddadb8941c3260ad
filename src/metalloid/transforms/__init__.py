"""Function transforms over the graph of arrays: derivatives, batching, compilation.

A transform traces a function once, and rewrites the nodes that it built. Derivatives follow JAX's
design: one rule per primitive gives the derivative along a tangent (forward mode), which is linear
in the tangents; reverse mode transposes the graph of these rules. Rules of elementwise operations
are expressions in the table of operations (`arrays.ir.ops`), which ``elementwise`` evaluates.
"""
