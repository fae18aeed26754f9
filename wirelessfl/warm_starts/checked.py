"""Checks of the return values of a warm start, which may be a user's own class."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from wirelessfl.errors import ConfigError
from wirelessfl.training.cohort import Penalty
from wirelessfl.warm_starts.base import Initial, Opening, Past, WarmStart

T = TypeVar("T")


class Checked:
    """A warm start whose return values are checked.

    Raises, in all methods:
        ConfigError: a return value has the wrong type or shape; the message names the method.
    """

    def __init__(self, warm_start: WarmStart) -> None:
        self.warm_start = warm_start

    def trials(self, session: int) -> int:
        """Check for an integer >= 0."""
        count = self.warm_start.trials(session)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise self._wrong("trials", count, "an integer >= 0")
        return count

    def trial_model(self, opening: Opening) -> Tensor:
        """Check for a tensor with the model's shape and dtype."""
        return self._params("trial_model", self.warm_start.trial_model(opening), opening.latest)

    def initial(self, opening: Opening) -> Initial:
        """Check for an ``Initial`` with the model's shape and dtype."""
        found = self._of("initial", self.warm_start.initial(opening), Initial)
        self._params("initial", found.params, opening.latest)
        return found

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """Check for a tuple of ``Penalty``."""
        found = self._of("penalties", self.warm_start.penalties(session, labels_before), tuple)
        for entry in found:
            if not isinstance(entry, Penalty):
                raise self._wrong("penalties", entry, "entries of type Penalty")
        return found

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """Check for a ``Past``."""
        return self._of("remember", self.warm_start.remember(past, session, last, gradient), Past)

    def _params(self, method: str, value: Any, like: Tensor) -> Tensor:
        shape, kind = tuple(like.shape), like.dtype
        if not isinstance(value, Tensor) or value.shape != shape or value.dtype != kind:
            raise self._wrong(method, value, f"a {kind} tensor of shape {list(shape)}")
        return value.to(like.device)

    def _of(self, method: str, value: Any, kind: type[T]) -> T:
        if not isinstance(value, kind):
            raise self._wrong(method, value, f"a value of type {kind.__name__}")
        return value

    def _wrong(self, method: str, value: Any, wanted: str) -> ConfigError:
        shown = repr(value)
        if isinstance(value, torch.Tensor):
            shown = f"{value.dtype} {list(value.shape)}"
        return ConfigError(
            f"warm start {self.warm_start.title!r}: {method} returned {shown[:80]}. Return "
            f"{wanted}."
        )
