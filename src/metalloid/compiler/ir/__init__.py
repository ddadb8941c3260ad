"""LLVM IR as Python objects: types, functions, control flow graph, parser, printer, verifier.

Values go by name, as in the text, so an analysis is a table from names to facts. It calls nothing
else of the compiler.
"""
