"""Every setting of a run: fields, flags, TOML, tasks' tables; resolved once."""

from wirelessfl.config.config import Config

__all__ = ["Config"]
