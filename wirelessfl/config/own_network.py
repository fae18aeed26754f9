"""The network that a setting names: a function of the user, or an object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from channels import Network
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.generators import seeded_generators
from wirelessfl.guard import calling, described, guard
from wirelessfl.import_paths import is_import_path
from wirelessfl.radio import Fading
from wirelessfl.registry import import_path


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
    """Whether a function takes a stream.

    Raises:
        ConfigError: it takes other arguments.
    """
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
