"""Passes on the code of one thread: from `Function` to `Function`, in scalar form.

`vectorize.pipeline` has their order. They call `ir` and `analysis`.
"""
