"""Metal functions that derivatives call."""
