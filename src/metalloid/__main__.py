"""``python -m metalloid``: the command line."""

import sys

from metalloid.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
