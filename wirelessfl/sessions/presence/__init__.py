"""Availability models of clients in sessions, one per file, discovered automatically."""

from wirelessfl.needs import SESSIONS
from wirelessfl.registry import Kind
from wirelessfl.sessions.presence.presence_model import PresenceModel, Scene

PRESENCES: Kind[PresenceModel] = Kind(
    "presence", __name__, PresenceModel, default="labels", needs=SESSIONS
)
"""All availability models of clients."""

__all__ = ["PRESENCES", "PresenceModel", "Scene"]
