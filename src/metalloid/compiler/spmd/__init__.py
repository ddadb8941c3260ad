"""From the code of one thread to vector code for a simdgroup of them.

Whole-function vectorisation of LLVM IR. The passes, in order: `components` takes small vectors apart,
`canonical` brings the control flow into a plain form, `shapes` and `divergence` find what differs
between lanes, `order` lines the blocks up, `emit` writes the code; `memory`, `simdgroup` and `atomics`
know how their instructions are done for all lanes.
"""
