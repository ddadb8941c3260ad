"""The intermediate representation: element types, operations, layouts and nodes.

Functions and `lowering` build nodes; `planning` reads them in the order of `linearize`.
"""
