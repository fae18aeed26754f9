"""Python objects given to a run instead of settings: a model, data, a network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import Field

from wirelessfl.config.sections import NetworkSection, Section
from wirelessfl.config.sections.devices import STEP
from wirelessfl.needs import GIVEN, needs_of

LINK_KINDS = ("layout", "path_loss", "fading")
"""Kinds of choices that a given network replaces."""


class GivenNetwork(Section):
    """The size of a given network."""

    cells: int = Field(ge=1)
    clients: int = Field(ge=1)


class Given(Section):
    """The ``[given]`` table of ``config.toml``: objects given to ``wirelessfl.run``.

    They replace settings, which are then not stored in the file.

    Args:
        model: the class name of the given module.
        data: the name of the given data set.
        network: the size of the given network.
        loss: the name of the given loss function.
        metrics: the names of the given metrics.
        split: the number of clients of the given split.
        redesign: the title of the given redesign.
        augment: the name of the given function that changes training samples.
    """

    model: str | None = None
    data: str | None = None
    network: GivenNetwork | None = None
    loss: str | None = None
    metrics: tuple[str, ...] | None = None
    split: int | None = Field(None, ge=1)
    redesign: str | None = None
    augment: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the given objects, in the order of the fields."""
        return [name for name, value in self if value is not None]


@cache
def replaced_by_network(radio: bool = True) -> tuple[str, ...]:
    """Network settings that a given network replaces, also one that the settings name.

    Args:
        radio: whether CPU speeds and links determine latencies. If not, ``step_seconds`` is the
            latency model's beta, which a network does not replace.
    """
    replaced = {GIVEN, STEP[0]} if radio else {GIVEN}
    return tuple(key for key, needs in needs_of(NetworkSection).items() if replaced & {*needs})


def chosen(settings: NetworkSection, radio: bool = True) -> dict[str, Any]:
    """Settings given by the user that a given network would replace, with their values.

    Settings that are None are left out, because None means the default.
    """
    values = {key: getattr(settings, key) for key in replaced_by_network(radio)}
    given = settings.model_fields_set
    return {key: value for key, value in values.items() if key in given and value is not None}


def given_values(given: Given) -> Mapping[str, Mapping[str, Any]]:
    """Values of settings that follow from the given objects, by section."""
    return {
        "network": {} if given.network is None else dict(given.network),
    }
