"""Availability models of clients in sessions, one per file, found by lying in this folder."""

from wirelessfl.registry import Kind
from wirelessfl.sessions.presence.base import PresenceModel, Scene

PRESENCES: Kind[PresenceModel] = Kind("presence", __name__, PresenceModel)
"""How clients can join and leave."""

__all__ = ["PRESENCES", "PresenceModel", "Scene"]
