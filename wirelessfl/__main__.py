"""Command-line entry point of ``python -m wirelessfl``."""

import sys

from wirelessfl.cli import main

sys.exit(main())
