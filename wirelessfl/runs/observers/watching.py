"""Calls the observers of a run, and checks what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, of_project, title_of, wrong_result
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.observers import BestModel, EarlyStopping, Observer, Running, tracker
from wirelessfl.runs.observers.observer import EndOfTask
from wirelessfl.runs.targets import Monitor


def check_observers(observers: object) -> None:
    """Refuse what is not a list of observers.

    Raises:
        ConfigError: it is something else; the message names it.
    """
    if isinstance(observers, Observer):
        raise ConfigError(f"observers is {shown(observers)}: give a list, [{_name(observers)}].")
    if isinstance(observers, str | bytes) or not isinstance(observers, Sequence):
        raise ConfigError(f"observers is {shown(observers)}: give a list of observers.")
    for place, observer in enumerate(observers):
        if isinstance(observer, Observer):
            continue
        if isinstance(observer, type) and issubclass(observer, Observer):
            remedy = f"give an instance, {observer.__name__}()"
        else:
            remedy = "give an instance of a class that derives from wirelessfl.observers.Observer"
        raise ConfigError(f"observers[{place}] is {shown(observer)}: {remedy}.")


def _name(observer: Observer) -> str:
    return f"{type(observer).__name__}(...)"


def configured_observers(config: Config) -> list[Observer]:
    """The observers that the settings ask for.

    Raises:
        ConfigError: the package of a tracker is not installed.
    """
    observers: list[Observer] = []
    evaluation, run = config.evaluation, config.run
    if run.keep_best:
        observers.append(BestModel())
    if run.track is not None:
        observers.append(tracker(run.track))
    if evaluation.patience is not None:
        observers.append(EarlyStopping(evaluation.patience, evaluation.min_delta))
    return observers


class Observers:
    """The observers of a run, in the order in which they are called.

    Args:
        observers: the observers.
        run: what they see.
    """

    def __init__(self, observers: Iterable[Observer], run: Running) -> None:
        self.observers, self.run = tuple(observers), run

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Call ``begin`` of all, and at the end ``end`` of those that have begun.

        Raises:
            TrainingError: a hook has failed. An error of ``end`` does not replace an earlier one.
        """
        begun: list[Observer] = []
        try:
            for observer in self.observers:
                begun.append(observer)
                _call(observer, "begin", observer.begin, self.run)
            yield
        except BaseException:
            for observer in begun:
                try:
                    _call(observer, "end", observer.end, self.run)
                except Exception as error:
                    self.run.note(str(error))
            raise
        for observer in begun:
            _call(observer, "end", observer.end, self.run)

    @property
    def of_rows(self) -> list[Callable[[Row], str | None]]:
        """Functions that show a row to one observer each, and return its reason to end the run."""
        return [partial(self._row, observer) for observer in self.observers]

    def _row(self, observer: Observer, row: Row) -> str | None:
        reason = _call(observer, "row", observer.row, self.run, row, kind=str)
        if reason is None:
            return None
        kind = EndOfTask if isinstance(reason, EndOfTask) else str
        return kind(" ".join(reason.split()))


def _call(
    observer: Observer, hook: str, function: Callable[..., Any], *arguments: Any, kind: Any = None
) -> Any:
    """Call a hook; errors become one line, and results of a wrong type are refused."""
    title = type(observer).__name__ if of_project(type(observer)) else title_of(observer)
    with calling(f"observer {title!r}, {hook}"):
        result = function(*arguments)
    if result is None or (kind is not None and isinstance(result, kind) and result.strip()):
        return result
    remedy = "None" if kind is None else "None, or the reason to end the run as a string"
    raise wrong_result("observer", observer, hook, shown(result), remedy)


def monitor_of(config: Config, row: Row, field: str | None = None) -> Monitor:
    """The monitored field of a row's task, or the given field."""
    task = config.tasks[row["task"]] if "task" in row else config
    return Monitor.of(field or task.evaluation.monitor, row)
