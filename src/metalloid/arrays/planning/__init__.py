"""The planner: from a linearized graph to a schedule of kernels and calls.

`execution.evaluate` calls `plan.make_plan` once per structure of a graph.
"""
