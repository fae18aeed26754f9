"""Which version of wirelessfl this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Version of the installed distribution; "0+unknown" for packages that are not installed."""
    try:
        return metadata.version("wirelessfl")
    except metadata.PackageNotFoundError:
        return "0+unknown"
