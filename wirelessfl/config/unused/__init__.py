"""Settings without effect: found, refused if given, and not stored."""

from wirelessfl.config.unused.place import Place
from wirelessfl.config.unused.radio import COMPUTING, RADIO
from wirelessfl.config.unused.rules import kept_tables, refusal, unused

__all__ = ["COMPUTING", "RADIO", "Place", "kept_tables", "refusal", "unused"]
