"""Default rates train the default model on digits within the default rounds: every algorithm."""

import pytest

import wirelessfl
from wirelessfl.algorithms import algorithm_classes

REACHED = 0.8
SAME_TRAINING = {"sync-bayes-st": "sync-st", "sync-ucb-st": "sync-st"}
"""They differ in who trains which task: with one task they are the same."""


class ReachedError(Exception):
    """Ends a run that has shown what it is for."""


def reached(name, out):
    """Accuracy in the first two rows in turn above 80 % of a run with defaults, or at its end.

    Step sizes are constant, so that the run until then is the beginning of the whole one. All
    settings are defaults but how often it is tested (ten times), the threads and the folder.
    """
    every = wirelessfl.Config.from_flags(name).training.rounds // 10
    config = wirelessfl.Config.from_flags(name, eval_every=every, threads=1, out=out)
    accuracies = []

    def on_row(row):
        accuracies.append(row["accuracy"])
        if len(accuracies) > 1 and min(accuracies[-2:]) > REACHED:
            raise ReachedError

    try:
        wirelessfl.run(config, on_row=on_row)
    except ReachedError:
        return min(accuracies[-2:])
    return accuracies[-1]


@pytest.mark.parametrize("name", sorted(algorithm_classes().keys() - SAME_TRAINING.keys()))
def test_default_rates_train_the_default_model(name, tmp_path):
    assert reached(name, tmp_path / "run") > REACHED
