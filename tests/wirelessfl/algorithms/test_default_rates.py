"""With default settings, every algorithm exceeds 80 % accuracy on digits."""

from contextlib import suppress

import pytest

import wirelessfl
from wirelessfl.algorithms import algorithm_classes

REACHED = 0.8
SAME_TRAINING = {"sync-bayes-st": "sync-st", "sync-ucb-st": "sync-st"}
"""These algorithms differ only in the assignment of tasks, which is the same for a single task."""


class ReachedError(Exception):
    """Ends a run that has reached the target accuracy."""


def reached(name, out):
    """Run until a row exceeds 80 % accuracy; return its accuracy, or else that of the last row.

    Step sizes are constant, so a run that stops early is a prefix of the full run. All settings are
    defaults except the number of evaluations (thirty), the threads, the chunk and the directory.
    """
    every = wirelessfl.Config.from_flags(name).training.rounds // 30
    config = wirelessfl.Config.from_flags(name, eval_every=every, threads=1, chunk=60, out=out)
    accuracies = []

    def on_row(row):
        accuracies.append(row["accuracy"])
        if accuracies[-1] > REACHED:
            raise ReachedError

    with suppress(ReachedError):
        wirelessfl.run(config, on_row=on_row)
    return accuracies[-1]


@pytest.mark.thorough(every=26)
@pytest.mark.parametrize("name", sorted(algorithm_classes().keys() - SAME_TRAINING.keys()))
def test_default_rates_train_the_default_model(name, tmp_path):
    """A row exceeds 80 % accuracy."""
    assert reached(name, tmp_path / "run") > REACHED
