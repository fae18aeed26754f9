"""Settings that given Python objects replace."""

from __future__ import annotations

from wirelessfl.config.given import LINK_KINDS, replaced_by_network
from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.place import Found


def replaced_settings(settings: Settings) -> Found:
    """Settings that given Python objects replace."""
    given = settings.given
    if given.model is not None:
        yield ("model", "name"), "conflicts with model=..., which is given to wirelessfl.run"
    if given.loss is not None:
        for key in settings.loss:
            yield ("loss", key), "conflicts with loss=..., which is given to wirelessfl.run"
    if given.data is not None:
        yield ("data", "dataset"), "conflicts with data=..., which is given to wirelessfl.run"
    if given.split is not None:
        for key in settings.split:
            yield ("split", key), "conflicts with split=..., which is given to wirelessfl.run"
        yield (
            ("data", "validation_fraction"),
            "conflicts with split=..., which assigns samples to clients: choose one of them",
        )
    named = settings.network.network
    if given.network is not None or named is not None:
        reason = "conflicts with network=..., which is given to wirelessfl.run"
        if given.network is None:
            reason = f"conflicts with network={named}, which replaces it: choose one of them"
        for key in replaced_by_network(settings.frame.radio):
            if key != "network" or given.network is not None:
                yield ("network", key), reason
        for kind in LINK_KINDS:
            for key in getattr(settings, kind) or ():
                yield (kind, key), reason
