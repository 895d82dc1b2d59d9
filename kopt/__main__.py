"""`python -m kopt` is `kopt`."""

import sys

from kopt.cli import main

if __name__ == "__main__":
    sys.exit(main())
