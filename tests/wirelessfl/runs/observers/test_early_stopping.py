"""Early stopping against rows worked out by hand, and in runs with one model and with tasks."""

import math
from types import SimpleNamespace

import pytest

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.observers import EarlyStopping, EndOfTask
from wirelessfl.runs.targets import Monitor

ACCURACY = Monitor("accuracy")


def running(rows):
    return SimpleNamespace(
        rows=rows,
        monitor=lambda row, field=None: Monitor(field, False) if field else ACCURACY,
    )


def first_end(observer, values, field="accuracy", others=None):
    """Index and reason of the first row at which the observer ends a run; None if it does not."""
    run = running([])
    observer.begin(run)
    for number, value in enumerate(values):
        row = {"round": number, "accuracy": 0.1, "loss": 1.0, field: value} | (others or {})
        run.rows.append(row)
        reason = observer.row(run, row)
        if reason is not None:
            return number, reason
    return None


@pytest.mark.parametrize(
    ("values", "patience", "min_delta", "expected"),
    [
        # Row 2 is the best; rows 3, 4 and 5 do not improve on it.
        ([0.1, 0.2, 0.5, 0.4, 0.5, 0.3, 0.9], 3, 0.0, 5),
        # 0.51 improves on 0.5, so that the count starts anew at row 4.
        ([0.1, 0.2, 0.5, 0.4, 0.51, 0.3, 0.5, 0.5, 0.5], 3, 0.0, 7),
        # It does not by more than 0.02, and 0.515 is compared with 0.5, not with 0.51.
        ([0.1, 0.2, 0.5, 0.4, 0.51, 0.515, 0.9], 3, 0.02, 5),
        ([0.1, 0.1, 0.2], 1, 0.0, 1),
        ([0.1, 0.2, 0.3, 0.4], 1, 0.0, None),
    ],
)
def test_the_row_at_which_it_ends(values, patience, min_delta, expected):
    found = first_end(EarlyStopping(patience, min_delta), values)
    assert (None if found is None else found[0]) == expected
    if found is not None:
        best = max(range(expected), key=lambda place: values[place])
        if min_delta == 0:
            assert found[1].endswith(f", since {values[best]:.4g} in round {best}")


def test_reasons_name_field_count_and_value():
    _, reason = first_end(EarlyStopping(2, 0.05, monitor="loss"), [2.0, 1.0, 0.96, 3.0], "loss")
    assert reason == "loss has not improved by more than 0.05 in 2 evaluations, since 1 in round 1"
    assert isinstance(reason, EndOfTask)


def test_a_diverged_model_does_not_improve():
    """Its loss is None; a run that has diverged from the start ends too."""
    number, reason = first_end(EarlyStopping(2), [0.3, 0.9, 0.9], others={"loss": None})
    assert (number, reason) == (1, "accuracy has not improved in 2 evaluations")


def test_a_field_that_rows_do_not_have_is_refused():
    run, row = running([]), {"round": 0, "acuracy": 0.5, "loss": 1.0}
    message = r"monitor is 'accuracy', which rows do not have\. Do you mean 'acuracy'\?"
    with pytest.raises(ConfigError, match=message):
        EarlyStopping(1).row(run, row)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"patience": 0}, r"patience is 0: give a whole number >= 1\."),
        ({"patience": 2.5}, r"patience is 2\.5: give a whole number >= 1\."),
        ({"patience": True}, r"patience is True: give a whole number >= 1\."),
        ({"patience": 1, "min_delta": -1}, r"min_delta is -1: give a number >= 0\."),
        ({"patience": 1, "min_delta": math.nan}, r"min_delta is nan: give a number >= 0\."),
        ({"patience": 1, "min_delta": "1"}, r"min_delta is '1': give a number >= 0\."),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        EarlyStopping(**given)


def by_hand(rows, patience, min_delta=0.0):
    """Number of rows of the run that ends after ``patience`` rows without improvement."""
    best, waited = -math.inf, 0
    for number, row in enumerate(rows):
        waited = 0 if row["accuracy"] > best + min_delta else waited + 1
        best = row["accuracy"] if waited == 0 else best
        if waited == patience:
            return number + 1
    return len(rows)


UNSTEADY = {"lr": 2.0, "rounds": 12}
"""Accuracies that go up and down."""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("fedavg", {}),
        ("hfedavg", {"schedule": "buffered", "buffer": 1, "eval_every": 1, "step_seconds": 0.1}),
        ("fedavg", {"schedule": "buffered", "requests": 4, "buffer": 2, "eval_every": 1}),
    ],
)
def test_a_run_with_patience_ends_as_worked_out(config, toy, bare, algorithm, flags):
    flags = UNSTEADY | flags
    whole = wirelessfl.run(config(algorithm, **flags), data=toy)
    length = by_hand(whole.rows, 2, 0.01)
    assert 2 < length < len(whole.rows)
    limit = {"patience": 2, "min_delta": 0.01}
    ended = wirelessfl.run(config(algorithm, **flags, **limit), data=toy)
    assert bare(ended.rows) == bare(whole.rows[:length])
    assert "accuracy has not improved by more than 0.01 in 2 evaluations" in ended.ended


@pytest.mark.parametrize("schedule", ["buffered", "simultaneous"])
def test_tasks_end_on_their_own(config, schedule):
    """As at their targets: the clients of an ended task train the others."""
    flags = {"schedule": schedule, "rounds": 12, "lr": 1.0, "local_steps": 1, "eval_every": 1}
    if schedule == "buffered":
        flags |= {"requests": 6, "buffer": 2, "floor": 1}
    flags |= {"task": ["digits,name=a,model=linear", "digits,name=b,model=mlp"]}
    result = wirelessfl.run(config("fedavg", **flags, patience=1))
    for task in "ab":
        rows = result.rows_of(task)
        assert len(rows) == by_hand(rows, 1)
    lengths = {task: len(result.rows_of(task)) for task in "ab"}
    assert len(set(lengths.values())) == 2
    assert min(lengths.values()) < 13
    assert result.ended.startswith("ended before the last round of its tasks: ")
