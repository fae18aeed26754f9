"""A command line whose errors are one line."""

from __future__ import annotations

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says what is wrong, without the usage of hundred flags before it."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: error: {message}. See {self.prog} --help.\n")
