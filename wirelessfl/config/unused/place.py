"""Settings without effect, and why."""

from __future__ import annotations

from collections.abc import Iterator

Place = tuple[str, str]
"""Table and key of a setting."""
Found = Iterator[tuple[Place, str]]
"""Settings without effect, with reasons such as "conflicts with X=A, which ...: choose Y=B"."""
NO_ROUNDS = 'which has no synchronous rounds of one model: choose schedule "rounds"'
"""The reason to refuse settings of rounds under another schedule."""
