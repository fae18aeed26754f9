"""What a run gets as Python objects instead of settings: a model, data, a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from wirelessfl.config.sections import ModelSection, NetworkSection, Section

BESIDE_NETWORK = (
    "coherence",
    "delays",
    "delay_scale",
    "availability",
    "busy_clients",
    "drop_out",
    "downlink_mbps",
    "backhaul_mbps",
)
"""Network settings that a given network leaves open."""
BESIDE_MODEL = ("layers",)
"""Model settings that a given model leaves open."""


class GivenNetwork(Section):
    """The size of a given network."""

    cells: int = Field(ge=1)
    clients: int = Field(ge=1)


class Given(Section):
    """Objects given to ``wirelessfl.run``, as the ``[given]`` table of ``config.toml`` marks them.

    They replace settings, which the file therefore leaves out.

    Args:
        model: the class name of the given module.
        data: the name of the given data set.
        network: the size of the given network.
    """

    model: str | None = None
    data: str | None = None
    network: GivenNetwork | None = None

    @property
    def names(self) -> list[str]:
        """The objects that are given, in the order model, data, network."""
        return [name for name, value in self if value is not None]


def replaced_by_network(settings: NetworkSection) -> list[str]:
    """Network settings that a given network replaces.

    With shifted-exponential delays ``step_seconds`` is beta, which no network has.
    """
    beta = ("step_seconds",) if settings.delays == "shifted-exponential" else ()
    return [key for key in NetworkSection.model_fields if key not in (*BESIDE_NETWORK, *beta)]


def chosen(settings: NetworkSection) -> dict[str, Any]:
    """Settings that the user gave and a given network replaces, with their values.

    None stands for the default, as in a file that leaves the setting out.
    """
    values = {key: getattr(settings, key) for key in replaced_by_network(settings)}
    given = settings.model_fields_set
    return {key: value for key, value in values.items() if key in given and value is not None}


def replaced(given: Given, settings: NetworkSection) -> dict[str, set[str]]:
    """Settings that the given objects replace, by section."""
    keys: dict[str, set[str]] = {}
    if given.model is not None:
        keys["model"] = set(ModelSection.model_fields) - set(BESIDE_MODEL)
    if given.data is not None:
        keys["data"] = {"dataset"}
    if given.network is not None:
        keys["network"] = set(replaced_by_network(settings))
    return keys


def given_values(given: Given) -> Mapping[str, Mapping[str, Any]]:
    """Settings that the given objects have values for, by section."""
    return {
        "model": {} if given.model is None else {"model": given.model},
        "data": {} if given.data is None else {"dataset": given.data},
        "network": {} if given.network is None else dict(given.network),
    }
