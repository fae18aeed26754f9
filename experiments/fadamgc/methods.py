"""The seven methods of the FAdamGC paper, their learning rates and their trackers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from wirelessfl.errors import ConfigError

SETTINGS = Path(__file__).with_name("settings")
METHODS = ("fedavg-m", "scaffold-m", "fedadam", "fedams", "local-adam", "fa-nt", "fadamgc")
"""In the order of the paper's tables."""
SELECTIVE = ("fa-nt", "fadamgc")
"""Methods of which, in the paper, half of the sampled clients track on images."""


def with_tracking(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with S/2 tracking clients where none are said and the method tracks selectively."""
    if settings["algorithm"] in SELECTIVE:
        return {"tracking_clients": settings["clients_per_round"] // 2} | settings
    return {name: value for name, value in settings.items() if name != "tracking_clients"}


def complete(settings: dict[str, Any], scale: str) -> dict[str, Any]:
    """Settings with the learning rates of their method and data set, and its trackers."""
    rates = tomllib.loads((SETTINGS / "rates.toml").read_text(encoding="utf-8"))[scale]
    by_method = rates.get(settings["dataset"], rates.get("any", {}))
    if settings["algorithm"] not in by_method:
        raise ConfigError(
            f"settings/rates.toml has no learning rates of {settings['algorithm']!r} for "
            f"{settings['dataset']!r} at scale {scale!r}: add what `python -m experiments.fadamgc "
            f"search --scale {scale}` finds."
        )
    lr, server_lr = by_method[settings["algorithm"]]
    return with_tracking(settings) | {"lr": lr, "server_lr": server_lr}
