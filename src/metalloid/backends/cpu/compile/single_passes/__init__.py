"""Single passes of the CPU's pipeline on textual IR, for ``metalloid passes`` (cli/passes.py)."""
