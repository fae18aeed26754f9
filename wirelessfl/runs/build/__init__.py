"""Builds everything that a run needs from its settings."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.runs.build.building import build
    from wirelessfl.runs.build.setups import Setup

__all__ = ["Setup", "build"]


def __getattr__(name: str) -> Any:
    """Import a name on first use: prices and budgets need neither executors nor PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wirelessfl.runs.build import building, setups

    return building.build if name == "build" else setups.Setup
