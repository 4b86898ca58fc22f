"""Let `python -m fabricmon` do what the `fabricmon` command does."""

import sys

from fabricmon.cli import main

if __name__ == "__main__":
    sys.exit(main())
