"""Facts about a `Function` that transforms and the vectoriser ask for; nothing here changes one.

`shapes` and `divergence` find which values differ between the lanes of a simdgroup and where its
lanes diverge; `barrier_divergence` finds branches at which they must not. The rest are tables of
known functions and small queries. It calls `ir` only.
"""
