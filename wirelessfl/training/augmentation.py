"""Augmentation: a function of the user changes the samples of each training batch at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.guard import calling, described
from wirelessfl.base.import_paths import is_import_path, module_and_name
from wirelessfl.base.registry import import_path
from wirelessfl.base.torch_state import other_states, torch_state
from wirelessfl.base.wording import shown

AugmentFunction = Callable[["torch.Tensor", "torch.Generator"], "torch.Tensor"]
WANTED = "a function f(x, generator) of a client's samples x [batch, ...] and a torch.Generator"


@dataclass(frozen=True)
class Augmentation:
    """A function of the user that changes the samples of a client's batch at random.

    Args:
        function: ``f(x, generator)``, which returns the changed samples. ``x`` has the samples of
            one client's step, [batch, ...], and ``generator`` is a ``torch.Generator`` on their
            device, whose seed depends on the run's seed, the client and the step only.
        called: its name, for messages.
    """

    function: AugmentFunction
    called: str

    @classmethod
    def of(cls, function: object) -> Augmentation:
        """The augmentation by a given function.

        Raises:
            ConfigError: it is not a function.
        """
        if not callable(function) or isinstance(function, type):
            raise ConfigError(
                f"augment is {shown(function)}: give {WANTED}. Its import path, module:function, "
                "is a setting."
            )
        return cls(function, str(getattr(function, "__name__", type(function).__name__)))

    @classmethod
    def find(cls, path: str) -> Augmentation:
        """The augmentation by the function at an import path.

        Raises:
            ConfigError: there is no such function.
        """
        if not is_import_path(path):
            raise ConfigError(
                f"augment is {path!r}: give the import path, module:function or file.py:function, "
                f"of {WANTED}."
            )
        found = import_path("augment", path)
        if not callable(found) or isinstance(found, type):
            raise ConfigError(f"augment {path!r} is {shown(found)}: give {WANTED}.")
        return cls(found, module_and_name(path)[1])

    def batches(self, x: torch.Tensor, sizes: Sequence[int], seeds: Sequence[int]) -> torch.Tensor:
        """Augmented samples of several clients.

        Args:
            x: [clients, batch, ...]; the function may change it.
            sizes: number of samples of each client; the remaining ones are padding.
            seeds: seed of each client's generator.

        Returns:
            [clients, batch, ...].

        Raises:
            ConfigError: the function returns something else than changed samples.
            TrainingError: the function fails.
        """
        generator, found = torch.Generator(x.device), x.clone()
        for client, (size, seed) in enumerate(zip(sizes, seeds, strict=True)):
            found[client, :size] = self._batch(x[client, :size], generator.manual_seed(seed))
        return found

    def _batch(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        shape, kind = x.shape, x.dtype
        with torch.no_grad(), calling(f"augment {self.called!r}"):
            found = self.function(x, generator)
        if not isinstance(found, torch.Tensor) or found.shape != shape or found.dtype != kind:
            raise ConfigError(
                f"augment {self.called!r} returned {described(found)}: return samples of the shape "
                f"and dtype that it gets, {kind} {list(shape)}."
            )
        return found

    def check(self, x: torch.Tensor) -> None:
        """Try the function on a few samples ``x`` [batch, ...].

        Raises:
            ConfigError: it returns something else than changed samples, or values that are not
                finite; or it draws from other generators than its argument, or keeps state, so that
                results could not be repeated.
            TrainingError: it fails.
        """
        before, others = torch_state(x), other_states()
        try:
            found, again = (self.batches(x[None].clone(), [len(x)], [0]) for _ in range(2))
        except TrainingError as error:
            raise TrainingError(f"{error}. Give {WANTED}.") from error
        if not bool(found.isfinite().all()):
            raise ConfigError(f"augment {self.called!r} returned values that are not finite.")
        drawn = not torch.equal(torch_state(x), before) or other_states() != others
        if drawn or not torch.equal(found, again):
            raise ConfigError(
                f"augment {self.called!r} draws other random numbers than those of its generator, "
                "or keeps state, so results could not be repeated: draw from the generator alone, "
                "e.g. torch.rand(len(x), generator=generator, device=x.device)."
            )
