"""Run ``python -m tests.gate store`` before a change and ``... check`` after it."""

import sys

from tests.gate.command import main  # spawned processes import that module, not this one

if __name__ == "__main__":
    sys.exit(main())
