"""Backends: solution methods and their settings, chosen by name or given as objects."""

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

    Derive a frozen dataclass. Its fields are the method's settings, each with a default, and its
    ``__post_init__`` checks them. Properties of the problem, such as bounds, are not settings.

    Attributes:
        name: name of the method, as in ``Solution.backend``.
    """

    name: ClassVar[str]

    @abstractmethod
    def solve(self, problem: Problem) -> Found:
        """Solve a problem that has been read and validated.

        Raises:
            SolverUnavailableError: the method's package is not installed, has no licence, or fails
                to solve the problem.
        """


@dataclass(frozen=True)
class Catalogue(Generic[Member]):
    """Classes that an argument can refer to by name; each is imported on first use.

    Args:
        argument: name of the argument.
        classes: maps each name to its ``module:Class``.
        others: sentence for the error message: what the argument accepts besides names.
    """

    argument: str
    classes: Mapping[str, str]
    others: str

    def default(self, name: object) -> Member:
        """Create an instance of the named class with default settings.

        Raises:
            ValueError: the name is unknown; the message lists the known names.
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
    """Import the object that ``module:Class`` refers to."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
