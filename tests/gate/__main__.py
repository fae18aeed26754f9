"""``python -m tests.gate store``, change the engine, ``python -m tests.gate check``."""

import sys

from tests.gate.command import main  # spawned processes import that module, not this one

if __name__ == "__main__":
    sys.exit(main())
