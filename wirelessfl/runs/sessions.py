"""A run in sessions of clients that come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from channels import Network
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.build.basis import configured_model
from wirelessfl.build.rounds import Parts
from wirelessfl.config import Config
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.errors import ConfigError, DataError
from wirelessfl.runs.directory import Row
from wirelessfl.runs.marks import digest
from wirelessfl.runs.rounds import RoundsEngine
from wirelessfl.schedules import Clock, Sessions
from wirelessfl.schedules.base import Report
from wirelessfl.sessions.attendance import Attendance, Comings, InTurn
from wirelessfl.sessions.presence import Arrivals, Presence, check_sessions_by_rounds
from wirelessfl.sessions.rounds import SessionRounds
from wirelessfl.sessions.traces import read_trace
from wirelessfl.warm_starts.checked import Checked


class SessionsEngine(RoundsEngine):
    """Rounds in sessions, as ``Progress`` drives them."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        config, planner = parts.config, parts.planner
        warm_start, sessions = config.build_warm_start(), config.sessions.sessions
        assert warm_start is not None
        assert sessions is not None
        evaluation, rounds = config.evaluation, config.training.rounds
        self.schedule = Sessions(
            sessions,
            rounds,
            Checked(warm_start).trials,
            evaluation.eval_every or 1,
            evaluation.eval_first,
        )
        self.attendance = _attendance(
            config, planner.network, parts.groups, planner.stream, self.clock
        )
        self.warm_start = warm_start
        if warm_start.draws:
            self._check_draws()
        self._labels = _labels_of_clients(parts)
        self._tested: tuple[tuple[int, ...], tuple[Tensor, Tensor]] | None = None
        self.regime: SessionRounds = SessionRounds(
            planner,
            parts.training,
            self.clock,
            self.attendance,
            warm_start,
            draw=self._draw,
            labels_of=self._labels_among,
        )

    def _draw(self, number: int) -> Tensor:
        """A model drawn as the configured one was.

        Raises:
            ConfigError: the model was given.
        """
        self._check_draws()
        stream = self.parts.planner.stream.child("session weights", number)
        module = configured_model(self.config.model, self.parts.data, stream)
        like = self.parts.training.server.cloud["params"]
        return self.parts.objective.spec.from_module(module).to(like.device)

    def _check_draws(self) -> None:
        """Refuse a model that was given: another one like it cannot be drawn.

        Raises:
            ConfigError: it was.
        """
        model = self.config.given.model
        if model is not None:
            raise ConfigError(
                f'warm_start is "{self.warm_start.name}", which draws new models, and the model, '
                f"{model}, is given. Name one that can be built, or choose another warm start."
            )

    def _labels_among(self, clients: IntArray) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self._labels[clients].any(0)).tolist())

    def start(self) -> None:
        """Sessions begin, or go on; clients come and go meanwhile."""
        super().start()
        self.attendance.start()

    def row(self, report: Report) -> tuple[Row, None]:
        """Evaluate the cloud's model, on the labels of the clients who are there."""
        row, _ = super().row(report)
        return {**report.status, **row, **self.regime.numbers()}, None

    def test_samples(self) -> tuple[Tensor, Tensor]:
        """Those with labels that are tested.

        Raises:
            DataError: the test set has none of them.
        """
        inputs, labels = super().test_samples()
        wanted = self.regime.labels
        if self.config.sessions.tested_labels == "all" or not wanted:  # nobody has come yet
            return inputs, labels
        if self._tested is None or self._tested[0] != wanted:
            known = labels.new_zeros(self.parts.data.classes, dtype=labels.dtype).bool()
            known[list(wanted)] = True
            chosen = known[labels]
            if not bool(chosen.any()):
                raise DataError(
                    f"{self.parts.data.name}: no test sample has one of the labels "
                    f"{', '.join(map(str, wanted))}, which the clients present have. Add some, or "
                    "choose tested_labels all."
                )
            self._tested = wanted, (inputs[chosen], labels[chosen])
        return self._tested[1]

    def tensors(self) -> dict[str, Tensor]:
        """Model, server and client state, and what is kept of past sessions."""
        return self.regime.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Where the session stands, too."""
        return {**super().snapshot(), "regime": self.regime.snapshot()}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on behind the last round, or where a session is to be opened."""
        self.regime.restore(tensors, state["regime"], state["totals"])
        self.schedule.restore(state["schedule"])
        self.clock.now = state["sim_seconds"]
        self.start()

    def fingerprint(self) -> dict[str, str]:
        """And of the recorded trace."""
        marks, trace = super().fingerprint(), self.config.sessions.trace
        if trace is None:
            return marks
        return {**marks, "the trace's lines are": digest(Path(trace).read_bytes())}


def _attendance(
    config: Config,
    network: Network,
    groups: LabelGroups | None,
    stream: Stream,
    clock: Clock,
) -> Attendance:
    """Who is there, as the settings say.

    Raises:
        ConfigError: the trace cannot be read, or a session would have no client.
    """
    wanted, rounds = config.sessions, config.training.rounds
    assert wanted.sessions is not None
    if groups is not None:
        return InTurn(groups, wanted.sessions)
    presence: Presence
    if wanted.presence == "trace":
        assert wanted.trace is not None
        presence = read_trace(wanted.trace, network.clients)
    else:
        assert wanted.arrival_rate is not None
        assert wanted.mean_stay is not None
        presence = Arrivals(
            network.clients,
            wanted.arrival_rate,
            wanted.mean_stay,
            wanted.initially_present,
            stream.child("presence"),
        )
    if wanted.presence_unit == "rounds":
        check_sessions_by_rounds(presence, wanted.sessions, rounds)
    return Comings(presence, wanted.presence_unit, rounds, clock)


def _labels_of_clients(parts: Parts) -> np.ndarray:
    """[clients, classes], whether a client has samples of a label."""
    labels = parts.data.train_labels.numpy()
    found = np.zeros((len(parts.training.client_samples), parts.data.classes), dtype=np.bool_)
    for client, own in enumerate(parts.training.client_samples):
        found[client, labels[own]] = True
    return found
