"""The seven methods of the FAdamGC paper, in the order of its tables."""

from __future__ import annotations

from typing import Any

METHODS = ("fedavg-m", "scaffold-m", "fedadam", "fedams", "local-adam", "fa-nt", "fadamgc")
NAMES = {
    "fedavg-m": "FedAvg-M",
    "scaffold-m": "SCAFFOLD-M",
    "fedadam": "FedAdam",
    "fedams": "FedAMS",
    "local-adam": "LocalAdam",
    "fa-nt": "FA-NT",
    "fadamgc": "FAdamGC",
}
SELECTIVE = ("fa-nt", "fadamgc")
"""Methods of which, in the paper, half of the sampled clients track on images."""


def with_tracking(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without ``tracking_clients`` for a method that does not track selectively."""
    if settings["algorithm"] in SELECTIVE:
        return settings
    return {name: value for name, value in settings.items() if name != "tracking_clients"}
