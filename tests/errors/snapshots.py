"""Messages, word for word, in files next to the tests.

After a change on purpose, run the tests once with ``METALLOID_UPDATE_MESSAGES=1`` and read the
difference.
"""

import os
import re
from pathlib import Path


class Snapshots:
    """Messages by name, in one file."""

    def __init__(self, path):
        self.path = Path(path).resolve()

    def known(self):
        """All of them."""
        text = self.path.read_text() if self.path.exists() else ""
        parts = re.split(r"^== (.*)\n", text, flags=re.M)[1:]
        return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}

    def check(self, name, error, hidden=()):
        """Compare an error; a match of a pattern in `hidden` is replaced by its text."""
        message = f"{type(error).__name__}: {error}"
        for pattern, shown in hidden:
            message = re.sub(pattern, shown, message)
        message = "\n".join(line.rstrip() for line in message.splitlines())
        known = self.known()
        if os.environ.get("METALLOID_UPDATE_MESSAGES"):
            known[name] = message
            self.path.write_text("".join(f"== {n}\n{m}\n\n" for n, m in known.items()))
        assert message == known.get(name)
