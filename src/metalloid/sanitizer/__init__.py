"""The sanitizer for users: `checking`, reports as SARIF, and the pytest plugin."""
