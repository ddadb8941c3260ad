"""Whole-function vectorisation: from the code of one thread to that of a simdgroup of threads.

`pipeline` has the passes in order. `linearize` writes the blocks in one order and turns divergent
branches into masks; `instructions`, and the folders `memory`, `simdgroup` and `atomics`, write each
instruction for all lanes through the `builder`; `workgroup` splits a function at barriers and loops
over simdgroups. It calls `transforms`, `analysis` and `ir`; the CPU back end calls it.
"""
