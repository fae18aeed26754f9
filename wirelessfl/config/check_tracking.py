"""Checks of the settings of tracking terms."""

from __future__ import annotations

from wirelessfl.algorithms.fa_nt import FANT
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError


def check_one_variable(settings: Settings) -> None:
    """Refuse FA-NT with one variable if clients may miss a model of the server, or get another one.

    Each client then computes the mean step of all clients from two consecutive models.

    Raises:
        ConfigError: the run has sessions, or compresses the model.
    """
    algorithm, sessions = settings.choices.algorithm, settings.sessions.sessions
    if not isinstance(algorithm, FANT) or algorithm.tracked:
        return
    needs = "needs each client to receive the server's model in every round"
    if sessions is not None:
        raise ConfigError(
            f"variables='one' {needs}, which conflicts with sessions={sessions}: absent clients "
            "miss models, and a session may start from another one. Choose variables 'two'."
        )
    compression = settings.choices.compression
    if compression is not None and not compression.identity:
        name = (settings.compression or {})["name"]
        raise ConfigError(
            f"variables='one' {needs}, which conflicts with compression={name!r}: clients would "
            "compare compressed models. Choose variables 'two', or compression 'none'."
        )
