"""The command ``wirelessfl``."""

from wirelessfl.cli.main import main

__all__ = ["main"]
