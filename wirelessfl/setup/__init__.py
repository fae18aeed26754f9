"""Builds everything that a run needs from its settings."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.setup.building import build
    from wirelessfl.setup.setups import Setup

__all__ = ["Setup", "build"]


def __getattr__(name: str) -> Any:
    """Import a name on first use: prices and budgets need neither executors nor PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wirelessfl.setup import building, setups

    return building.build if name == "build" else setups.Setup
