"""wirelessfl: design wireless networks and federated learning together.

Example::

    import wirelessfl

    result = wirelessfl.run(wirelessfl.Config.from_flags("hist", cells=4, rounds=20))
    result.rows[-1]["accuracy"]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wirelessfl import import_paths as import_paths  # lets every process import files by their path

if TYPE_CHECKING:
    from wirelessfl.checking import check
    from wirelessfl.config import Config
    from wirelessfl.config.combinations import combinations
    from wirelessfl.design.price import price
    from wirelessfl.design.prices import Prices
    from wirelessfl.errors import ConfigError, DataError, TrainingError
    from wirelessfl.results import load, load_all
    from wirelessfl.rounds.client_log import ClientLog
    from wirelessfl.rounds.mask_sizes import model_mask_sizes
    from wirelessfl.runs.client_log_file import read_client_log
    from wirelessfl.runs.result import RunResult
    from wirelessfl.runs.run import resume, run
    from wirelessfl.runs.sweep import sweep

_HOMES = {
    "Config": "wirelessfl.config",
    "ConfigError": "wirelessfl.errors",
    "DataError": "wirelessfl.errors",
    "Prices": "wirelessfl.design.prices",
    "TrainingError": "wirelessfl.errors",
    "check": "wirelessfl.checking",
    "combinations": "wirelessfl.config.combinations",
    "load": "wirelessfl.results",
    "load_all": "wirelessfl.results",
    "model_mask_sizes": "wirelessfl.rounds.mask_sizes",
    "price": "wirelessfl.design.price",
    "ClientLog": "wirelessfl.rounds.client_log",
    "read_client_log": "wirelessfl.runs.client_log_file",
    "RunResult": "wirelessfl.runs.result",
    "resume": "wirelessfl.runs.run",
    "run": "wirelessfl.runs.run",
    "sweep": "wirelessfl.runs.sweep",
}
__all__ = [
    "ClientLog",
    "Config",
    "ConfigError",
    "DataError",
    "Prices",
    "RunResult",
    "TrainingError",
    "check",
    "combinations",
    "load",
    "load_all",
    "model_mask_sizes",
    "price",
    "read_client_log",
    "resume",
    "run",
    "sweep",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def check_packages() -> None:
    """Check that no other package named ``channels`` or ``solvers`` hides those of wirelessfl.

    Raises:
        ImportError: another package is found first; the message says where.
    """
    for name, mark in (("channels", "ChannelDraw"), ("solvers", "optimize_mask_sizes")):
        package = import_module(name)
        if not hasattr(package, mark):
            raise ImportError(
                f"package {name!r} at {getattr(package, '__file__', None)} does not belong to "
                "wirelessfl. Uninstall it, or install wirelessfl into a separate environment."
            )


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because torch takes a second to import."""
    if name == "__version__":
        return str(import_module("wirelessfl.version").version())
    if name not in _HOMES:
        raise AttributeError(f"module 'wirelessfl' has no attribute {name!r}")
    check_packages()
    return getattr(import_module(_HOMES[name]), name)
