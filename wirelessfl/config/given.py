"""Python objects given to a run instead of settings: a model, data, a network.

The network that a setting names: a function of the user, or an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from pydantic import Field

from channels import Network
from channels.streams import Stream
from wirelessfl.air.radio import Fading
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, described, guard
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.base.needs import GIVEN, needs_of
from wirelessfl.base.registry import import_path
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config.sections import NetworkSection, Section
from wirelessfl.config.sections.network import STEP

LINK_KINDS = ("layout", "path_loss", "fading")
"""Kinds of choices that a given network replaces."""


class GivenNetwork(Section):
    """The size of a given network."""

    cells: int = Field(ge=1)
    clients: int = Field(ge=1)


class GivenSection(Section):
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


def given_values(given: GivenSection) -> Mapping[str, Mapping[str, Any]]:
    """Values of settings that follow from the given objects, by section."""
    return {
        "network": {} if given.network is None else dict(given.network),
    }


def own_network(path: str, seed: int, *, again: bool = False) -> Network:
    """The network at an import path.

    Args:
        path: import path of a function ``f(stream)`` or ``f()`` that returns a ``Network``, or of a
            ``Network``.
        seed: the run's seed, which determines the stream.
        again: whether to call the function although its network is known.

    Raises:
        ConfigError: it cannot be imported, is no such function, or returns something else.
    """
    if not is_import_path(path):
        raise ConfigError(
            f"network is {path!r}: give the import path of a function, module:function or "
            "file.py:function, that returns a channels.Network."
        )
    found = import_path("network", path)
    if isinstance(found, Network):
        return found
    if not callable(found):
        raise ConfigError(
            f"network {path!r} is {described(found)}: give a function of a stream that returns a "
            "channels.Network."
        )
    return (_called.__wrapped__ if again else _called)(found, path, seed)


@lru_cache(maxsize=8)  # settings are resolved several times before a run
def _called(function: Callable[..., Any], path: str, seed: int) -> Network:
    stream = Stream(seed, ("network",))
    given = (stream,) if _takes_stream(function, path) else ()
    with seeded_generators(stream), calling(f"network {path!r}", ConfigError):
        network = function(*given)
    if not isinstance(network, Network):
        raise ConfigError(
            f"network {path!r} returned {described(network)}: return a channels.Network."
        )
    guard(type(network.fading), Fading)
    return network


def _takes_stream(function: Callable[..., Any], path: str) -> bool:
    """Whether a function takes a stream."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    required = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    named = [name for name in required if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]
    if len(required) > 1 or named:
        raise ConfigError(
            f"network {path!r} takes the arguments {', '.join(required)}: define it as f(stream), "
            "with a channels.Stream as its randomness, or as f()."
        )
    return bool(required)
