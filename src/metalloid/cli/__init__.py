"""The ``metalloid`` command."""
