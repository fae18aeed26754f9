"""Backends: methods with their settings, given as objects or by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from channels.validation import shown

Problem = TypeVar("Problem")
Found = TypeVar("Found")
Member = TypeVar("Member")


class Backend(ABC, Generic[Problem, Found]):
    """A method that solves one kind of problem.

    Derive a frozen dataclass: its fields are the settings of the method, each with a default, and
    ``__post_init__`` checks them. Properties of the problem, such as bounds, are not settings.

    Attributes:
        name: of the method, as ``Solution.backend`` shows it.
    """

    name: ClassVar[str]

    @abstractmethod
    def solve(self, problem: Problem) -> Found:
        """What the method finds for a problem that has been read and checked.

        Raises:
            SolverUnavailableError: the method's package is not installed or not licensed, or it
                gives up.
        """


@dataclass(frozen=True)
class Catalogue(Generic[Member]):
    """Classes that an argument can name, imported when they are asked for.

    Args:
        argument: the argument.
        classes: ``module:Class`` of each name.
        others: a sentence on what the argument takes besides names, for the error message.
    """

    argument: str
    classes: Mapping[str, str]
    others: str

    def default(self, name: object) -> Member:
        """An object of the named class, with default settings.

        Raises:
            ValueError: this is not one of the names; the message lists them.
        """
        if not isinstance(name, str) or name not in self.classes:
            names = ", ".join(self.classes)
            raise ValueError(
                f"{self.argument} is {shown(name)}: choose one of {names}. {self.others}"
            )
        member: Member = load(self.classes[name])()
        return member


@cache
def load(path: str) -> Any:
    """What ``module:Class`` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
