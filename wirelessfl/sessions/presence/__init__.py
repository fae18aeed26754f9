"""Availability models of clients in sessions, one per file, discovered automatically."""

from typing import Any

from wirelessfl.needs import SESSIONS, Fits
from wirelessfl.registry import Kind
from wirelessfl.sessions.presence.presence_model import PresenceModel, PresenceScene


def _split_by_labels(run: Any) -> bool:
    presence = run.settings.presence
    return presence is not None and run.sessions is not None and presence.by_labels


BY_LABELS = (
    Fits(
        lambda run, _: not (_split_by_labels(run) and run.settings.split.by_groups),
        "conflicts with split={run.settings.tables[split][name]}, since it deals out samples by "
        "their labels: choose another split, or presence arrivals or trace",
    ),
    Fits(
        lambda run, _: not _split_by_labels(run) or run.settings.given.split is None,
        "conflicts with split=..., since it splits the data into groups of labels itself: choose "
        'presence "arrivals" or "trace", or leave split out',
    ),
)
PRESENCES: Kind[PresenceModel] = Kind(
    "presence",
    __name__,
    PresenceModel,
    default="labels",
    needs=SESSIONS,
    table=BY_LABELS,
    text="client availability model",
    heading="sessions",
)
"""All availability models of clients."""

__all__ = ["PRESENCES", "PresenceModel", "PresenceScene"]
