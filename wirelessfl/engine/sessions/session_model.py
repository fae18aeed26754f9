"""One model in sessions: its initial models, trial copy, and the labels of its clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import torch

from channels.streams import Stream
from wirelessfl.air.participants import PresentClients
from wirelessfl.algorithms.warm_starts.warm_start import Opening, Past, WarmStart
from wirelessfl.base.errors import DataError
from wirelessfl.data import Dataset
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.server import Server
from wirelessfl.models.metrics import Measures
from wirelessfl.models.submodels import ParamSpec

if TYPE_CHECKING:  # the price of sessions loads no PyTorch
    from wirelessfl.training.evaluation import EvaluationSamples


class HeldLabels:
    """The labels of the present clients of a session, found by the first client with each label.

    Clients only leave during a session, so the next client with a label comes after the one that
    left. A session therefore examines each client at most once per label, and few clients if labels
    are common.

    Args:
        labels_of: returns the labels in a client's data.
        labels: labels that clients can have.
    """

    def __init__(
        self, labels_of: Callable[[int], Collection[int]], labels: Collection[int]
    ) -> None:
        self._labels_of, self._labels = labels_of, labels
        self._present: PresentClients | None = None
        self._first_of: dict[int, set[int]] = {}
        """By client, the labels that no earlier present client has."""
        self.held: tuple[int, ...] = ()
        """Labels of the present clients, in increasing order; unchanged while none is present."""

    def opened(self, present: PresentClients, possible: Collection[int] | None) -> None:
        """Find the labels of a session's clients.

        Args:
            present: the present clients, from which clients that leave are removed.
            possible: labels that they can have; None for all.
        """
        self._present, self._first_of = present, {}
        self._search(set(self._labels if possible is None else possible), after=-1)

    def left(self, clients: Collection[int]) -> None:
        """Update the labels after these clients have been removed from the present clients."""
        for client in sorted(clients):
            if client in self._first_of:
                self._search(self._first_of.pop(client), after=client)

    def _search(self, labels: set[int], after: int) -> None:
        """Find the first client with each wanted label, among those with larger numbers."""
        present = self._present
        assert present is not None, "a session is open"
        clients = present.after(after)
        while labels and (client := next(clients, None)) is not None:
            if common := labels.intersection(self._labels_of(client)):
                self._first_of.setdefault(client, set()).update(common)
                labels -= common
        if len(present):
            self.held = tuple(sorted(set().union(*self._first_of.values())))


class SessionModel:
    """The model of a run in sessions.

    Args:
        learner: trains the model, and contains its server.
        warm_start: returns the initial model of each session.
        spec: names and shapes of the parameters.
        draw: maps a number to a newly drawn model [P].
        labels: labels of the present clients.
        possible: maps a session to the labels that its clients can have; None for all.
        trial_stream: random stream of trial rounds.
        keep_momentum: whether the server's momentum and moments outlive a session. Trial rounds
            always start without them, because they measure the present clients alone.
    """

    def __init__(
        self,
        learner: Learner,
        warm_start: WarmStart,
        spec: ParamSpec,
        *,
        draw: Callable[[int], torch.Tensor],
        labels: HeldLabels,
        possible: Callable[[int], Collection[int] | None],
        trial_stream: Stream,
        keep_momentum: bool = False,
    ) -> None:
        self.learner, self.warm_start, self.spec = learner, warm_start, spec
        self.draw, self.labels, self.possible = draw, labels, possible
        self.trial_stream, self.keep_momentum = trial_stream, keep_momentum
        self.past = Past()
        self.gradient: torch.Tensor | None = None
        """Change of the pilot model [P] in the session's trial rounds."""
        self.weights: dict[int, float] = {}
        """Weight of each past session's model in the initial model, by session."""
        self.labels_before: tuple[int, ...] = ()
        self.session = 0
        self._trial: Learner | None = None

    @property
    def server(self) -> Server:
        """Server of the model; trial rounds use a copy."""
        return self.learner.server

    def open(self, session: int) -> None:
        """Open a session with the present clients of the server."""
        self.session, self._trial, self.gradient = session, None, None
        self.labels.opened(self.server.present, self.possible(session))

    def leave(self, clients: Collection[int]) -> None:
        """Remove clients that have left."""
        for client in clients:
            self.server.leave(client)
        self.labels.left(clients)

    def opening(self) -> Opening:
        """Create the warm start's argument for the current session."""
        return Opening(
            session=self.session,
            past=self.past,
            latest=self.server.cloud["params"].clone(),  # a copy for the warm start
            gradient=self.gradient,
            spec=self.spec,
            draw=self.draw,
        )

    @property
    def trial(self) -> Learner:
        """Copy of the learner for trial rounds; it starts from the trial model."""
        if self._trial is None:
            self._trial = self.learner.branch(self.trial_stream)
            self._trial.server.begin(self.warm_start.trial_model(self.opening()))
        return self._trial

    def begin(self) -> None:
        """Set the initial model of the session, and the teacher of its clients."""
        if self._trial is not None:
            start = self.warm_start.trial_model(self.opening())
            self.gradient, self._trial = self._trial.server.cloud["params"] - start, None
        opening = self.opening()
        begun = self.warm_start.initial(opening)
        self.server.begin(begun.params, keep=self.keep_momentum)
        self.weights = begun.weights
        self._teach(opening.latest)

    def _teach(self, latest: torch.Tensor | None) -> None:
        """Set the clients' extra loss terms for this session, and their teacher."""
        penalties = self.warm_start.penalties(self.session, self.labels_before)
        self.learner.penalties = penalties
        self.learner.teacher = latest if penalties else None

    def close(self) -> None:
        """Store what later sessions need."""
        self.past = self.warm_start.remember(
            self.past, self.session, self.server.cloud["params"].clone(), self.gradient
        )
        self.labels_before = self.labels.held

    def fields(self) -> Mapping[str, Any]:
        """Fields of the model's rows."""
        return {
            "stored_bytes": self.past.stored_bytes,
            "warm_weights": {str(s): round(w, 6) for s, w in self.weights.items()},
        }

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the state for a checkpoint, without those of the learner."""
        tensors = self.past.tensors()
        for name, value in (("gradient", self.gradient), ("teacher", self.learner.teacher)):
            if value is not None:
                tensors[f"session.{name}"] = value.clone()  # it may share memory with the cloud
        return tensors

    def snapshot(self) -> dict[str, Any]:
        """Remaining state, as plain numbers and lists."""
        return {
            "labels": self.labels.held,
            "labels_before": self.labels_before,
            "weights": {str(s): w for s, w in self.weights.items()},
        }

    def restore(
        self, session: int, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]
    ) -> None:
        """Continue after a round or before a session is opened; the learner is restored.

        Args:
            session: number of the current session.
            tensors: the result of ``tensors``; others are ignored.
            state: the result of ``snapshot``; other entries are ignored.
        """
        device = self.server.cloud["params"].device
        self.past, self.session = Past.of(tensors, device), session
        self.labels.held = tuple(state["labels"])
        self.labels.opened(self.server.present, self.possible(session))
        self.labels_before = tuple(state["labels_before"])
        self.gradient = _stored(tensors, "session.gradient", device)
        self.weights = {int(session): weight for session, weight in state["weights"].items()}
        self._teach(_stored(tensors, "session.teacher", device))


def _stored(
    tensors: Mapping[str, torch.Tensor], name: str, device: torch.device
) -> torch.Tensor | None:
    value = tensors.get(name)
    return None if value is None else value.to(device)


REMEDIES = {"test": "Add some or raise eval_samples", "validation": "Raise validation_fraction"}
"""What to do without samples of a kind."""


class PresentOnly:
    """Selects the samples with labels of the present clients, and metrics of these clients.

    Args:
        data: the data set.
        server: knows the present clients.
        labels: the labels of the present clients; None to evaluate on all samples.
    """

    def __init__(self, data: Dataset, server: Server, labels: HeldLabels | None) -> None:
        self.data, self.server, self.labels = data, server, labels
        self._kept: dict[str, tuple[tuple[int, ...], EvaluationSamples]] = {}

    def measures(self, measures: Measures) -> Measures:
        """Further metrics, of which those of clients are of the present ones."""
        return measures.of_clients(self.server.present.mask)

    def samples(self, kind: str, samples: EvaluationSamples) -> EvaluationSamples:
        """The samples whose labels are tested, cached for each ``kind``.

        Args:
            kind: "test" or "validation".
            samples: all samples of this kind.
        """
        labels = () if self.labels is None else self.labels.held
        if not labels:  # all labels, or no client has joined yet
            return samples
        kept = self._kept.get(kind)
        if kept is None or kept[0] != labels:
            tested = samples.labels.new_zeros(self.data.classes, dtype=samples.labels.dtype).bool()
            tested[list(labels)] = True
            chosen = tested[samples.labels]
            if not bool(chosen.any()):
                raise DataError(
                    f"{self.data.name}: no {kind} sample has a label of the present clients "
                    f"({', '.join(map(str, labels))}). {REMEDIES[kind]}, or choose tested_labels "
                    "all."
                )
            present = samples._replace(inputs=samples.inputs[chosen], labels=samples.labels[chosen])
            kept = labels, present
            self._kept[kind] = kept
        return kept[1]
