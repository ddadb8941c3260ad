"""The functions by which lanes exchange values, and products of matrices that they hold together.

`vectorize.instructions` calls `collectives` and `matrices`.
"""
