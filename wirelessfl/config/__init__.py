"""The settings of a run, from TOML, flags or Python: checked, and resolved once."""

from wirelessfl.config.config import Config

__all__ = ["Config"]
