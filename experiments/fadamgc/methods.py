"""The seven methods of the FAdamGC paper, their step sizes and numbers of tracking clients."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError

SETTINGS = Path(__file__).with_name("settings")
METHODS = ("fedavg-m", "scaffold-m", "fedadam", "fedams", "local-adam", "fa-nt", "fadamgc")
"""Methods in the order of the paper's tables."""
SELECTIVE = ("fa-nt", "fadamgc")
"""Methods for which half of the sampled clients track in the paper's image experiments."""
EPSILON = 1e-8
"""Of all Adam optimisers, Section 6. FedAdam adds it to the root of the second moment, which starts
at its square; FedAMS bounds the second moment itself, by its square. The other methods' default."""
SERVER_ADAM = {"fedadam": EPSILON, "fedams": 1e-16}
"""The server's ``eps`` at scale paper. The defaults 1e-3 and 1e-6 are those of these methods' own
papers, which the studies at scale small have."""


def with_tracking(settings: dict[str, Any]) -> dict[str, Any]:
    """Default to S/2 tracking clients if the method tracks selectively; otherwise set none."""
    if settings["algorithm"] in SELECTIVE:
        return {"tracking_clients": settings["clients_per_round"] // 2} | settings
    return {name: value for name, value in settings.items() if name != "tracking_clients"}


def complete(settings: dict[str, Any], scale: str) -> dict[str, Any]:
    """Add the step sizes for the method and data set, and the number of tracking clients.

    Step sizes that a study states take precedence. Those of a data set precede those of a
    number of local steps. At scale paper the server's Adam has the paper's epsilon, and a local
    epoch replaces the number of local steps.
    """
    if "local_epochs" in settings:
        settings = {name: value for name, value in settings.items() if name != "local_steps"}
    if scale == "paper" and settings["algorithm"] in SERVER_ADAM:
        settings = {"eps": SERVER_ADAM[settings["algorithm"]]} | settings
    if {"lr", "server_lr"} <= settings.keys():
        return with_tracking(settings)
    rates = tomllib.loads((SETTINGS / "rates.toml").read_text(encoding="utf-8"))[scale]
    names = settings["dataset"], f"K = {settings.get('local_steps')}", "any"
    by_method = next((rates[name] for name in names if name in rates), {})
    if settings["algorithm"] not in by_method:
        raise ConfigError(
            f"settings/rates.toml has no step sizes for {settings['algorithm']!r} on "
            f"{settings['dataset']!r} at scale {scale!r}: add the result of `python -m "
            f"experiments.fadamgc search --scale {scale}`."
        )
    lr, server_lr = by_method[settings["algorithm"]]
    return {"lr": lr, "server_lr": server_lr} | with_tracking(settings)
