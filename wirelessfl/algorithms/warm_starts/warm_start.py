"""The interface of a warm start: the initial model of a session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch

from wirelessfl.base.guard import UnfitError, described, instance, returns, whole
from wirelessfl.base.needs import Fits
from wirelessfl.base.registry import Choice
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.cohort import Penalty

PILOT = Fits(
    lambda run, choice: run.sessions is None or choice.pilot_sessions < run.sessions,
    "conflicts with sessions={run.sessions}: no session would start from a pilot model. Lower "
    "pilot_sessions",
)
"""At least one session follows the pilot sessions."""


@dataclass(frozen=True)
class Past:
    """Information about past sessions, stored by the server.

    Args:
        sessions: numbers of the sessions, ascending.
        models: final global model [P] of each session.
        gradients: change of the pilot model [P] by the clients of each session; empty without a
            pilot model.
        pilot: pilot model [P]; None if it does not exist yet.
    """

    sessions: tuple[int, ...] = ()
    models: tuple[torch.Tensor, ...] = ()
    gradients: tuple[torch.Tensor, ...] = ()
    pilot: torch.Tensor | None = None

    def with_session(
        self, session: int, model: torch.Tensor, gradient: torch.Tensor | None = None
    ) -> Past:
        """Return this past with one more session."""
        return replace(
            self,
            sessions=(*self.sessions, session),
            models=(*self.models, model),
            gradients=self.gradients if gradient is None else (*self.gradients, gradient),
        )

    def only(self, places: Sequence[int]) -> Past:
        """Return this past with only the sessions at these indices."""
        return replace(
            self,
            sessions=tuple(self.sessions[i] for i in places),
            models=tuple(self.models[i] for i in places),
            gradients=tuple(self.gradients[i] for i in places) if self.gradients else (),
        )

    @property
    def stored_bytes(self) -> int:
        """Size of the stored tensors in bytes."""
        pilot = () if self.pilot is None else (self.pilot,)
        kept = (*self.models, *self.gradients, *pilot)
        return sum(value.numel() * value.element_size() for value in kept)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors for a checkpoint."""
        tensors = {"past.sessions": torch.tensor(self.sessions, dtype=torch.int64)}
        for name, values in (("models", self.models), ("gradients", self.gradients)):
            if values:
                tensors[f"past.{name}"] = torch.stack(values)
        return tensors if self.pilot is None else {**tensors, "past.pilot": self.pilot}

    @classmethod
    def of(cls, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Past:
        """Restore a past from the result of ``tensors``."""
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
    """Information available when a session begins. The tensors must not be modified.

    Args:
        session: session number, from 0.
        past: information about earlier sessions.
        latest: final model [P] of the previous session; the run's initial model for session 0.
        gradient: change of the pilot model by the session's clients in trial rounds [P]; None
            without trial rounds.
        spec: names and shapes of the parameters.
        draw: draws a new initial model [P], a different one for each number.
    """

    session: int
    past: Past
    latest: torch.Tensor
    gradient: torch.Tensor | None
    spec: ParamSpec
    draw: Callable[[int], torch.Tensor]


@dataclass(frozen=True)
class Initial:
    """The initial model of a session.

    Args:
        params: parameters [P] of the initial model.
        weights: weight of each past session's model, by session; empty if the initial model is not
            a mean of past models.
    """

    params: torch.Tensor
    weights: dict[int, float] = field(default_factory=dict)


def _model(value: Any, warm_start: WarmStart, opening: Opening) -> torch.Tensor:
    """Check for a tensor like the model."""
    like = opening.latest
    if (
        not isinstance(value, torch.Tensor)
        or value.shape != like.shape
        or value.dtype != like.dtype
    ):
        raise UnfitError(described(value), f"a {like.dtype} tensor of shape {list(like.shape)}")
    return value.to(like.device)


def _initial(value: Any, warm_start: WarmStart, opening: Opening) -> Initial:
    """Check for an ``Initial`` whose parameters are like the model."""
    initial: Initial = instance(Initial)(value)
    return replace(initial, params=_model(initial.params, warm_start, opening))


def _penalties(value: Any, *_: Any) -> tuple[Penalty, ...]:
    """Check for a tuple of ``Penalty``."""
    penalties: tuple[Penalty, ...] = instance(tuple)(value)
    for entry in penalties:
        if not isinstance(entry, Penalty):
            raise UnfitError(described(entry), "entries of type Penalty")
    return penalties


@dataclass(frozen=True)
class WarmStart(Choice, ABC):
    """Base class of all warm starts. Its dataclass fields are its settings, as for an algorithm."""

    draws: ClassVar[bool] = False
    """Whether this warm start draws new models."""

    @returns(whole(0))
    def trials(self, session: int) -> int:
        """V, number of trial rounds before ``session`` begins."""
        return 0

    @returns(_model)
    def trial_model(self, opening: Opening) -> torch.Tensor:
        """Model [P] from which trial rounds start."""
        return opening.latest

    @returns(_initial)
    @abstractmethod
    def initial(self, opening: Opening) -> Initial:
        """The initial model of the session."""

    @returns(_penalties)
    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """Extra terms in the loss of a session's clients.

        If there are any, the server sends the previous session's final model to all clients once,
        as ``teacher``.

        Args:
            session: session number.
            labels_before: labels of the previous session's clients.
        """
        return ()

    @returns(instance(Past))
    def remember(
        self, past: Past, session: int, last: torch.Tensor, gradient: torch.Tensor | None
    ) -> Past:
        """Update the past at the end of a session.

        Args:
            past: past before this update.
            session: number of the session that ends.
            last: its final global model [P].
            gradient: change of the pilot model in its trial rounds [P]; None without trial rounds.
        """
        return past
