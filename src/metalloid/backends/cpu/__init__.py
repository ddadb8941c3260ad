"""The CPU as a Metal device."""
