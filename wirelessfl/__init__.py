"""wirelessfl: design wireless networks and federated learning together.

import wirelessfl
result = wirelessfl.run(wirelessfl.Config.from_flags("hist", cells=4, rounds=20))
result.rows[-1]["accuracy"]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.config import Config
    from wirelessfl.errors import ConfigError, DataError, TrainingError
    from wirelessfl.runs.run import RunResult, resume, run

_HOMES = {
    "Config": "wirelessfl.config",
    "ConfigError": "wirelessfl.errors",
    "DataError": "wirelessfl.errors",
    "TrainingError": "wirelessfl.errors",
    "RunResult": "wirelessfl.runs.run",
    "resume": "wirelessfl.runs.run",
    "run": "wirelessfl.runs.run",
}
__all__ = ["Config", "ConfigError", "DataError", "RunResult", "TrainingError", "resume", "run"]


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: torch takes a second to import."""
    if name not in _HOMES:
        raise AttributeError(f"module 'wirelessfl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
