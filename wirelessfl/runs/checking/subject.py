"""A user's class or function, and the small runs that check it."""

from __future__ import annotations

import ast
import itertools
import shutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from channels import Network, section_vi_c
from channels.streams import Stream
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.models.metrics import find_metric
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.observers import Observer
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run

CLIENTS = 6
Settings = Mapping[str, Any]
SMALL: Settings = {
    "clients": CLIENTS,
    "rounds": 3,
    "local_steps": 2,
    "batch_size": 8,
    "threads": 1,
    "device": "cpu",
    "chunk": 4,
    "split": "iid",
    "model": "fcnn",
    "hidden": (12, 12),
}
"""Settings of every run of a check."""
MODULE = "wirelessfl_checked_"
"""Beginning of the names of modules that hold classes without an import path."""
_numbers = itertools.count()


@dataclass
class Subject:
    """A user's class or function, and how to use it in small runs.

    Args:
        kind: its kind, e.g. "algorithm".
        path: its import path, as in settings.
        thing: the class or function.
        settings: its settings, by name, instead of their defaults.
        base: other settings of its runs.
        folder: folder of the runs.
        data: data set of the runs, of which each gets a copy; None for the subject itself.
    """

    kind: str
    path: str
    thing: Any
    settings: Mapping[str, Any]
    base: Mapping[str, Any]
    folder: Path
    data: Dataset | None
    plain: RunResult | None = field(default=None, repr=False)

    @property
    def stream(self) -> Stream:
        """Random numbers of the check."""
        return Stream(7, ("check",))

    def network(self, cells: int = 2) -> Network:
        """A small network of cells at different distances."""
        return section_vi_c(cells, CLIENTS, stream=self.stream.child("network"))

    def config(self, **changes: Any) -> Config:
        """The settings of a run with the subject.

        Args:
            changes: settings by flat name, instead of those of other runs; None removes one.

        Raises:
            ConfigError: the settings are refused.
        """
        chosen = {} if self.kind == "observer" else {self.kind: self.path, **self.settings}
        hidden = {"hidden": None} if self.kind == "model" else {}  # a setting of model fcnn
        flags = {**SMALL, **hidden, **self.base, **chosen, **changes}
        flags = {name: value for name, value in flags.items() if value is not None}
        algorithm = flags.pop("algorithm", "fedavg")
        return Config.from_flags(algorithm, out=self.folder / f"run{next(_numbers)}", **flags)

    def made(self) -> Any:
        """A new object of the class, with its settings checked."""
        if self.kind == "observer":
            settings = {name: _plain(value) for name, value in self.settings.items()}
            return self.thing(**settings) if callable(self.thing) else self.thing
        if self.kind == "metric":
            self.config()
            return find_metric(self.path)
        return self.config().choice(self.kind)

    def observers(self) -> list[Observer]:
        """The observers of a run: a new object of the class, if it is one."""
        return [self.made()] if self.kind == "observer" else []

    def run(
        self,
        config: Config | None = None,
        seed: int = 0,
        on_row: Callable[[Row], None] | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> RunResult:
        """Train a run.

        Args:
            config: its settings; None for those without changes.
            seed: state of the global generators, on which no result may depend.
            on_row: called with each row.
            on_note: called with each message; None to warn of them.
        """
        config = self.config() if config is None else config
        with seeded_generators(self.stream.child("global", seed)):
            return run(
                config,
                data=deepcopy(self.data),
                on_row=on_row,
                on_note=on_note,
                observers=self.observers(),
            )

    def run_of(self, thing: Any) -> RunResult:
        """Train a run with the subject, or with another class, function or object of its kind."""
        if thing is self.thing:
            return self.run()
        with import_path_of(thing) as path:
            # Its notes are those of other runs, and of a module without a file.
            return replace(self, thing=thing, path=path).run(on_note=lambda note: None)

    def resumed(self) -> list[RunResult]:
        """A run that is killed and resumed after each of its rows but the last."""
        config, copies = self.config(checkpoint_seconds=0), list[Path]()
        out = config.run.out
        assert out is not None

        def keep(row: Row) -> None:
            copies.append(shutil.copytree(out, out.with_name(f"{out.name}-{len(copies)}")))

        self.run(config, on_row=keep)
        with seeded_generators(self.stream.child("global", 1)):
            return [
                resume(copy, data=deepcopy(self.data), trust=True, observers=self.observers())
                for copy in copies[1:-1]
            ]


def _plain(value: Any) -> Any:
    """An argument of the command line, e.g. "3", as a value of Python."""
    try:
        return ast.literal_eval(value) if isinstance(value, str) else value
    except (SyntaxError, ValueError):
        return value


@contextmanager
def import_path_of(thing: Any) -> Iterator[str]:
    """The import path of a class or function; one without a path is put into a module meanwhile."""
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
    if name.isidentifier() and vars(sys.modules.get(module, types)).get(name) is thing:
        yield f"{module}:{name}"
        return
    holder = types.ModuleType(f"{MODULE}{next(_numbers)}")
    name = getattr(thing, "__name__", "thing")
    name = name if name.isidentifier() else "thing"
    setattr(holder, name, thing)
    sys.modules[holder.__name__] = holder
    try:
        yield f"{holder.__name__}:{name}"
    finally:
        del sys.modules[holder.__name__]
