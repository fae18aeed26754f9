"""Settings of cases that depend on several others, for all studies of this folder."""

from __future__ import annotations

from experiments.codesign import access, grid
from experiments.studies import Scale, Settings


def complete(settings: Settings, scale: Scale) -> Settings:
    """Complete a case of the crossed study, which has an access, or of the grid."""
    return (access if "access" in settings else grid).complete(settings, scale)
