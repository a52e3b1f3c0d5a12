"""`python -m turntrie` is the command `turntrie`."""

import sys

from turntrie.cli import main

if __name__ == "__main__":
    sys.exit(main())
