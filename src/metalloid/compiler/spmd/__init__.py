"""From the code of one thread to vector code for a simdgroup of them.

Whole-function vectorisation of LLVM IR. `vectorise` has the passes in order. The main ones:
`components` takes small vectors apart, `canonical` brings the control flow into a plain form,
`shapes` and `divergence` find what differs between lanes, `order` lines the blocks up, `linearise`
writes them; `instructions`, `memory`, `simdgroup` and `atomics` know how instructions are done for
all lanes.
"""
