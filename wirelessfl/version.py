"""Version of wirelessfl."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Version of the installed distribution; "0+unknown" if it is not installed."""
    try:
        return metadata.version("wirelessfl")
    except metadata.PackageNotFoundError:
        return "0+unknown"
