"""The interface of a warm start: the model that a session of clients begins with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from wirelessfl.registry import Choice
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.cohort import Penalty


@dataclass(frozen=True)
class Past:
    """What the server keeps of sessions that are over.

    Args:
        sessions: their numbers, ascending.
        models: [P] of each, the last global model.
        gradients: [P] of each, what its clients changed of the pilot model; none without a pilot.
        pilot: [P], the pilot model; None before there is one.
    """

    sessions: tuple[int, ...] = ()
    models: tuple[Tensor, ...] = ()
    gradients: tuple[Tensor, ...] = ()
    pilot: Tensor | None = None

    def with_session(self, session: int, model: Tensor, gradient: Tensor | None = None) -> Past:
        """The same and one session more."""
        return replace(
            self,
            sessions=(*self.sessions, session),
            models=(*self.models, model),
            gradients=self.gradients if gradient is None else (*self.gradients, gradient),
        )

    def only(self, places: Sequence[int]) -> Past:
        """The same with the sessions at these places alone."""
        return replace(
            self,
            sessions=tuple(self.sessions[i] for i in places),
            models=tuple(self.models[i] for i in places),
            gradients=tuple(self.gradients[i] for i in places) if self.gradients else (),
        )

    @property
    def stored_bytes(self) -> int:
        """What it takes to keep."""
        pilot = () if self.pilot is None else (self.pilot,)
        kept = (*self.models, *self.gradients, *pilot)
        return sum(value.numel() * value.element_size() for value in kept)

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        found = {"past.sessions": torch.tensor(self.sessions, dtype=torch.int64)}
        for name, values in (("models", self.models), ("gradients", self.gradients)):
            if values:
                found[f"past.{name}"] = torch.stack(values)
        return found if self.pilot is None else {**found, "past.pilot": self.pilot}

    @classmethod
    def of(cls, tensors: dict[str, Tensor], device: torch.device) -> Past:
        """What ``tensors`` gave."""
        rows = {
            name: tuple(tensors[f"past.{name}"].to(device).unbind())
            for name in ("models", "gradients")
            if f"past.{name}" in tensors
        }
        pilot = tensors.get("past.pilot")
        sessions = tuple(tensors["past.sessions"].tolist())
        return cls(sessions, pilot=None if pilot is None else pilot.to(device), **rows)


@dataclass(frozen=True)
class Opening:
    """What is known when a session begins. Its tensors are not to be written to.

    Args:
        session: its number, from 0.
        past: what has been kept of the sessions before.
        latest: [P], the model that the session before has left; the initial one at first.
        gradient: [P], what the session's clients changed of the pilot model in trial rounds; None
            where there were none.
        spec: names and shapes of the parameters.
        draw: gives a model [P] drawn as the initial one was, another for every number.
    """

    session: int
    past: Past
    latest: Tensor
    gradient: Tensor | None
    spec: ParamSpec
    draw: Callable[[int], Tensor]


@dataclass(frozen=True)
class Initial:
    """The model that a session begins with.

    Args:
        params: [P].
        weights: of the past sessions' models in it, by session; none where it is no mean of them.
    """

    params: Tensor
    weights: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WarmStart(Choice, ABC):
    """Base of every warm start. Its dataclass fields are its settings, as an algorithm's are."""

    draws: ClassVar[bool] = False
    """Whether it asks for newly drawn models."""

    def trials(self, session: int) -> int:
        """V, trial rounds before ``session`` begins."""
        return 0

    def trial_model(self, opening: Opening) -> Tensor:
        """[P], where trial rounds start."""
        return opening.latest

    @abstractmethod
    def initial(self, opening: Opening) -> Initial:
        """The model that the session begins with."""

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """Terms in the loss of a session's clients.

        Where there are any, clients have the latest model of before as ``teacher``: it is sent
        once, to all of them.

        Args:
            session: its number.
            labels_before: labels that the clients of the session before had.
        """
        return ()

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """What is kept now that a session is over.

        Args:
            past: what has been kept so far.
            session: its number.
            last: [P], its last global model.
            gradient: [P], from its trial rounds.
        """
        return past
