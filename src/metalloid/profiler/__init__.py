"""Profiles: what each launch and evaluation of a block took, and what the machine could do."""
