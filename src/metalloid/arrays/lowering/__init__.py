"""Lowering: functions as nodes, and the choice between their implementations."""
