"""Observers of a run: they see its rows and parameters, and may end it."""

from __future__ import annotations

from collections.abc import Iterable

from wirelessfl.runs.observers.best_model import BestModel
from wirelessfl.runs.observers.console import Console, in_notebook
from wirelessfl.runs.observers.early_stopping import EarlyStopping
from wirelessfl.runs.observers.observer import EndOfTask, Observer, Running
from wirelessfl.runs.observers.trackers import MLflow, Name, TensorBoard, Trackio, WandB


def tracker(name: Name) -> Observer:
    """The observer that writes to a tracker.

    >>> from wirelessfl.observers import tracker
    >>> type(tracker("tensorboard")).__name__
    'TensorBoard'

    Raises:
        ConfigError: its package is not installed.
    """
    classes: dict[str, type[Observer]] = {
        "tensorboard": TensorBoard,
        "trackio": Trackio,
        "wandb": WandB,
        "mlflow": MLflow,
    }
    return classes[name]()


def default_observers(observers: Iterable[Observer]) -> list[Observer]:
    """The observers that a run has unless others of their class are given: a bar in notebooks.

    >>> from wirelessfl.observers import default_observers
    >>> default_observers([])  # outside of notebooks
    []
    """
    console = any(isinstance(observer, Console) for observer in observers)
    return [Console()] if in_notebook() and not console else []


__all__ = [
    "BestModel",
    "Console",
    "EarlyStopping",
    "EndOfTask",
    "MLflow",
    "Observer",
    "Running",
    "TensorBoard",
    "Trackio",
    "WandB",
    "default_observers",
    "tracker",
]
