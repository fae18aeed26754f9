"""What a warm start gives, held against what it should: one's own may be wrong."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from wirelessfl.errors import ConfigError
from wirelessfl.training.cohort import Penalty
from wirelessfl.warm_starts.base import Initial, Opening, Past, WarmStart

T = TypeVar("T")


class Checked:
    """A warm start whose answers are checked.

    Raises of all methods:
        ConfigError: an answer is of another kind; the message names the method.
    """

    def __init__(self, warm_start: WarmStart) -> None:
        self.warm_start = warm_start

    def trials(self, session: int) -> int:
        """A whole number >= 0."""
        count = self.warm_start.trials(session)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise self._wrong("trials", count, "a whole number >= 0")
        return count

    def trial_model(self, opening: Opening) -> Tensor:
        """A vector like the model."""
        return self._params("trial_model", self.warm_start.trial_model(opening), opening.latest)

    def initial(self, opening: Opening) -> Initial:
        """A vector like the model, with weights."""
        found = self._of("initial", self.warm_start.initial(opening), Initial)
        self._params("initial", found.params, opening.latest)
        return found

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """A tuple of penalties."""
        found = self._of("penalties", self.warm_start.penalties(session, labels_before), tuple)
        for one in found:
            if not isinstance(one, Penalty):
                raise self._wrong("penalties", one, "a Penalty")
        return found

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """A past."""
        return self._of("remember", self.warm_start.remember(past, session, last, gradient), Past)

    def _params(self, method: str, value: Any, like: Tensor) -> Tensor:
        shape, kind = tuple(like.shape), like.dtype
        if not isinstance(value, Tensor) or value.shape != shape or value.dtype != kind:
            raise self._wrong(method, value, f"{kind} {list(shape)} parameters")
        return value.to(like.device)

    def _of(self, method: str, value: Any, kind: type[T]) -> T:
        if not isinstance(value, kind):
            raise self._wrong(method, value, f"a {kind.__name__}")
        return value

    def _wrong(self, method: str, value: Any, wanted: str) -> ConfigError:
        shown = repr(value)
        if isinstance(value, torch.Tensor):
            shown = f"{value.dtype} {list(value.shape)}"
        return ConfigError(
            f"warm start {self.warm_start.name!r}: {method} gives {shown[:80]}, and {wanted} is "
            "needed."
        )
