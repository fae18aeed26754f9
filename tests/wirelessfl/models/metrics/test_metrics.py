"""Metrics equal scikit-learn's; rows have them in every regime."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn

import wirelessfl
from tests.wirelessfl.models.losses import own_functions
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.losses import LOSSES
from wirelessfl.metrics import (
    METRICS,
    Measures,
    Metric,
    OwnMetric,
    Predicted,
    check_name,
    find_metric,
    label_shares,
    smaller_is_better,
)
from wirelessfl.models import FCNN
from wirelessfl.models.metrics.built_in import FIELDS, PREFIXES, RMSE, MacroF1, worst
from wirelessfl.runs.engine import check_apart
from wirelessfl.runs.targets import Monitor

OWN = "tests.wirelessfl.models.losses.own_functions"
DRAW = torch.Generator().manual_seed(5)
OUTPUTS = torch.randn(200, 5, generator=DRAW)
CLASSES = torch.randint(0, 4, (200,), generator=DRAW)  # label 4 does not occur
SEVERAL = torch.randint(0, 2, (200, 5), generator=DRAW)
REALS = OUTPUTS + torch.randn(200, 5, generator=DRAW)


def value(name, outputs, labels, accuracy, **more):
    tested = Predicted(outputs, labels, accuracy, outputs.shape[1], **more)
    return METRICS.find(name)().value(tested)


def test_classification_equals_scikit_learn():
    found = OUTPUTS.argmax(1)
    assert value("macro-f1", OUTPUTS, CLASSES, "classes") == pytest.approx(
        sklearn.f1_score(CLASSES, found, average="macro")
    )
    recall = sklearn.recall_score(CLASSES, found, average=None, labels=range(4))
    each = value("class-accuracy", OUTPUTS, CLASSES, "classes")
    assert each[:4] == pytest.approx(list(recall))
    assert math.isnan(each[4])
    signs = (OUTPUTS > 0).long()
    for labels in (SEVERAL, SEVERAL.float()):
        assert value("macro-f1", OUTPUTS, labels, "signs") == pytest.approx(
            sklearn.f1_score(SEVERAL, signs, average="macro")
        )
        each = value("class-accuracy", OUTPUTS, labels, "signs")
        for label in range(5):
            right = sklearn.accuracy_score(SEVERAL[:, label], signs[:, label])
            assert each[label] == pytest.approx(right)
    scores, mask = torch.randn(6, 3, 4, 5), torch.randint(0, 3, (6, 4, 5))
    pixels = (mask.flatten(), scores.argmax(1).flatten())
    assert value("macro-f1", scores, mask, "classes") == pytest.approx(
        sklearn.f1_score(*pixels, average="macro")
    )


def test_absent_classes_by_hand():
    """Of 4 classes, 2 and 3 are absent: 3 is predicted. Labels that never occur count as 0."""
    outputs = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 3]), 4).float()
    labels = torch.tensor([0, 0, 1, 1])
    # F1: 1 of class 0, 2 / 3 of class 1, 0 of class 3; class 2 is left out.
    assert value("macro-f1", outputs, labels, "classes") == pytest.approx((1 + 2 / 3 + 0) / 3)
    logits = torch.tensor([[1.0, -1.0, -1.0], [1.0, -1.0, 2.0]])
    marks = torch.tensor([[1, 0, 0], [1, 0, 0]])
    assert value("macro-f1", logits, marks, "signs") == pytest.approx((1 + 0 + 0) / 3)
    zeros = torch.zeros(2, 1)  # a logit of 0 predicts no label
    assert value("class-accuracy", zeros, torch.tensor([[0], [0]]), "signs") == [1.0]
    assert value("macro-f1", zeros, torch.tensor([[0], [1]]), "signs") == 0
    each = value("class-accuracy", outputs, labels, "classes")
    assert each[:2] == [1.0, 0.5]
    assert math.isnan(each[2])
    assert math.isnan(each[3])


@pytest.mark.parametrize("columns", [1, 5])
def test_regression_equals_scikit_learn(columns):
    outputs, labels = OUTPUTS[:, :columns], REALS[:, :columns]
    pairs = {"rmse": sklearn.root_mean_squared_error, "mae": sklearn.mean_absolute_error,
             "r2": sklearn.r2_score}  # fmt: skip
    for name, reference in pairs.items():
        expected = reference(labels.double(), outputs.double())
        assert value(name, outputs, labels, None) == pytest.approx(expected)
        if columns == 1:
            assert value(name, outputs, labels[:, 0], None) == pytest.approx(expected)


def test_the_worst_tenth_of_clients_by_hand():
    """Shares of the labels weigh the accuracies of the classes; unknown classes do not count."""
    accuracy = np.array([0.9, 0.5, np.nan])
    shares = np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1.0]])
    assert worst(accuracy, shares) == 0.5
    assert worst(accuracy, np.array([[0.1, 0.3, 0.6]])) == pytest.approx((0.09 + 0.15) / 0.4)
    many = np.repeat(shares[:3], [10, 3, 9], axis=0)  # the worst 3 of 22
    assert worst(accuracy, many) == pytest.approx(0.5)
    assert worst(accuracy, np.repeat(shares[:3], [10, 1, 9], axis=0)) == pytest.approx(0.6)
    assert math.isnan(worst(accuracy, shares[4:]))


@pytest.mark.parametrize("clients", [1, 9, 10, 11, 20, 21, 70])
def test_the_worst_tenth_is_rounded_up(clients):
    """A tenth of 11 clients are 2; each client has one class of its own."""
    accuracy = np.random.default_rng(clients).permutation(clients) / clients
    number = (clients + 9) // 10
    expected = sum(sorted(accuracy)[:number]) / number
    assert worst(accuracy, np.eye(clients)) == pytest.approx(expected, rel=1e-12)


def test_rows_have_the_metrics_of_the_final_model(config, toy):
    """Test and validation metrics equal those computed from the result's parameters."""
    made = config(
        "fedavg", clients=4, rounds=1, split="noniid", validation_fraction=0.2,
        metric=f"macro-f1,class-accuracy,worst-clients,{OWN}:top_two",
    )  # fmt: skip
    result = wirelessfl.run(
        made,
        data=toy,
        metrics={"inf": lambda o, y: math.inf, "two": lambda o, y: [1, int(y.max())]},
    )
    row, module = result.rows[-1], FCNN((12,), 4)
    module.load_state_dict(result.params)
    with torch.no_grad():
        outputs = module(toy.test_inputs)
    f1 = sklearn.f1_score(toy.test_labels, outputs.argmax(1), average="macro")
    assert row["macro_f1"] == pytest.approx(f1)
    assert row["top_two"] == own_functions.top_two(outputs, toy.test_labels)
    assert (row["inf"], row["two"]) == (None, [1.0, 3.0])
    assert row["worst_clients"] <= row["accuracy"]
    assert {f"validation_{name}" for name in ("macro_f1", "class_accuracy", "top_two")} <= {*row}
    counts = np.bincount(toy.test_labels, minlength=4) / len(toy.test_labels)
    assert np.dot(counts, row["class_accuracy"]) == pytest.approx(row["accuracy"])
    assert wirelessfl.resume(
        result.directory, trust=True, data=toy, metrics={"inf": max, "two": max}
    ).rows == result.rows  # fmt: skip


@dataclass(frozen=True)
class Within(Metric):
    """Fraction of samples whose label is among the largest outputs."""

    name = "within"
    places: int = 1

    def value(self, tested):
        best = tested.outputs.topk(self.places).indices
        return float((best == tested.labels[:, None]).any(1).double().mean())


TWO = Within(2)


def test_objects_of_a_class_are_metrics(config, toy):
    """Given or by path, with their settings; a resumed run needs one with the same settings."""
    made = config("fedavg", clients=4, rounds=1, metric=f"{OWN}:top_two")
    result = wirelessfl.run(made, data=toy, metrics=[Within(2), MacroF1()])
    row = result.rows[-1]
    assert row["within"] == pytest.approx(row["top_two"])
    assert row["macro_f1"] > 0
    assert find_metric(f"{__name__}:TWO") is TWO
    assert result.config.given.metrics == ("within", "macro_f1")
    again = {"data": toy, "trust": True, "rounds": 2}
    with pytest.raises(ConfigError, match="within"):
        wirelessfl.resume(result.directory, metrics=[Within(3), MacroF1()], **again)
    longer = wirelessfl.resume(result.directory, metrics=[Within(2), MacroF1()], **again)
    assert longer.rows[-1]["within"] == pytest.approx(longer.rows[-1]["top_two"])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [("fedavg", {"sessions": 2, "presence": "labels"}),
     ("hist", {"cells": 2, "hidden": (8, 6), "schedule": "buffered", "buffer": 2}),
     ("fedast", {"step_seconds": 0.1}), ("sync-st", {"step_seconds": 0.1})],
)  # fmt: skip
def test_metrics_in_every_regime(config, toy, algorithm, flags):
    made = config(algorithm, **{"clients": 4, "rounds": 2, "metric": "macro-f1", **flags})
    rows = wirelessfl.run(made, data=toy).rows
    assert all(0 <= row["macro_f1"] <= 1 for row in rows)
    assert {*rows[-1]} - {"macro_f1"} <= FIELDS | {
        name for name in rows[-1] if name.startswith(PREFIXES)
    }


def test_a_metric_is_not_called_like_a_measurement_of_an_uplink():
    measures = Measures((OwnMetric("margin", max),))
    check_apart({"error": 1.0}, measures)
    with pytest.raises(ConfigError, match=r"called 'margin', and so is a measurement of the upl"):
        check_apart({"margin": 1.0}, measures)


def test_metrics_of_sessions_see_present_labels_only(config, toy):
    seen = []
    wirelessfl.run(
        config("fedavg", clients=4, rounds=1, sessions=2, split="iid"),
        data=toy,
        metrics={"labels_seen": lambda o, y: seen.append(set(y.tolist())) or 0.0},
    )
    assert {frozenset(labels) for labels in seen} == {frozenset({0, 1}), frozenset({2, 3})}


def test_diverged_models_have_no_metrics():
    metric = OwnMetric("never", own_functions.failing)
    assert Measures((metric,)).of(torch.full((3, 2), math.nan), torch.zeros(3)) == {"never": None}
    with pytest.raises(TrainingError, match=r"metric 'never': KeyError: 'weights' .in failing"):
        Measures((metric,)).of(torch.zeros(3, 2), torch.zeros(3))
    one = torch.zeros(3, 2)
    one[2, 1] = math.inf
    assert Measures((metric,)).of(one, torch.zeros(3)) == {"never": None}
    for wrong in ("x", "", None, {"a": 1}, [1, "x"], torch.zeros(2, 2)):
        with pytest.raises(ConfigError, match="return a number, or a list of numbers"):
            Measures((OwnMetric("wrong", lambda o, y, w=wrong: w),)).of(
                torch.zeros(3, 2), torch.zeros(3)
            )


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (torch.tensor(2), 2.0),
        (torch.tensor([1.5, math.nan]), [1.5, None]),
        (np.array([1, 2]), [1.0, 2.0]),
        (np.bool_(True), 1.0),
        (np.float32(0.5), 0.5),
        ((True, math.inf), [1.0, None]),
        (Fraction(1, 2), 0.5),
    ],
)
def test_rows_have_plain_numbers(value, plain):
    """JSON has neither tensors nor infinite numbers."""
    measures = Measures((OwnMetric("own", lambda outputs, labels: value),))
    found = measures.of(torch.zeros(3, 2), torch.zeros(3))
    assert json.dumps(found) == json.dumps({"own": plain})


@pytest.mark.parametrize(
    ("names", "message"),
    [("f2", r"metric 'f2' is unknown. .*Choose class-accuracy, macro-f1"),
     ("math:pi", "metric 'math:pi' is 3.14.*: give a function"),
     ("rmse", "metric 'rmse' needs real labels"),
     ({"accuracy": max}, "metric 'accuracy' has the name of a row field"),
     ({"validation_f1": max}, "metric 'validation_f1' has the name of a row field"),
     ({"air_error_predicted": max}, "metric 'air_error_predicted' has the name of a row field"),
     ({"extra_f1": max}, "metric 'extra_f1' has the name of a row field"),
     ({"f1": 3}, r"metrics\['f1'\] is 3: give a function"),
     ({"f": "rmse"}, r"metrics\['f'\] is 'rmse': a dict has functions .*metrics=\['rmse', my_func"),
     (max, r"metrics is <built-in function max>: give a list of functions and names"),
     ([own_functions.top_two, own_functions.top_two], "two entries of the same name"),
     ([RMSE], r"is <class .*RMSE'>: give an object, RMSE\(\)"),
     ({"f": MacroF1()}, r"metrics\['f'\] is MacroF1\(\), whose field is 'macro_f1': give it in a"),
     (["macro-f1", "macro-f1"], None)],
)  # fmt: skip
def test_wrong_metrics_are_refused_before_anything_is_written(config, toy, names, message):
    made = config("fedavg", clients=4, rounds=1)
    metrics = [names] if isinstance(names, str) else names
    if message is None:  # listed twice, it is computed once
        assert "macro_f1" in wirelessfl.run(made, data=toy, metrics=metrics).rows[0]
        return
    with pytest.raises(ConfigError, match=message) as error:
        wirelessfl.run(made, data=toy, metrics=metrics)
    assert "\n" not in str(error.value)
    assert not made.run.out.exists()


def test_the_monitored_field_decides(config, toy):
    """Losses and errors are better when smaller; a run ends when it reaches the target."""
    assert [smaller_is_better(name) for name in ("loss", "validation_rmse", "r2", "accuracy")] == [
        True, True, False, False
    ]  # fmt: skip
    flags = {"clients": 4, "rounds": 4, "local_steps": 10}
    whole = wirelessfl.run(config("fedavg", **flags), data=toy).rows
    wanted = (whole[1]["loss"] + whole[2]["loss"]) / 2
    stopped = wirelessfl.run(
        config("fedavg", **flags, monitor="loss", target=wanted, stop_at_target=True), data=toy
    )
    hit = next(row["round"] for row in whole if row["loss"] <= wanted)
    assert stopped.rows[-1]["round"] == hit == stopped.summary()["rounds_to_target"]
    assert stopped.summary()["monitor"] == "loss"
    task = wirelessfl.run(
        config("fedast", clients=4, step_seconds=0.1, monitor="loss", target=1.35), data=toy
    )
    assert task.rows[-1]["loss"] <= 1.35 < task.rows[-2]["loss"]
    with pytest.raises(ConfigError, match=r"target is 3: give a number > 0 and <= 1"):
        config("fedavg", target=3.0)
    listed = config("fedavg", clients=4, metric="class-accuracy", monitor="class_accuracy")
    with pytest.raises(ConfigError, match="has 4 values: choose a field with one value"):
        wirelessfl.run(listed, data=toy).summary()
    assert Monitor.of(None, {"loss": 2.0}) == Monitor("loss", larger=False)


def test_names():
    assert smaller_is_better("validation_tail_loss")
    assert not smaller_is_better("lossless")
    assert find_metric(f"{OWN}:top_two").field == "top_two"
    assert {name: METRICS.find(name)().field for name in METRICS.classes()} == {
        "class-accuracy": "class_accuracy", "macro-f1": "macro_f1", "mae": "mae", "r2": "r2",
        "rmse": "rmse", "worst-clients": "worst_clients",
    }  # fmt: skip
    with pytest.raises(ConfigError, match="give a name"):
        check_name("")
    assert set(LOSSES.classes()) == {"cross-entropy", "binary-cross-entropy", "mse", "l1", "huber"}


def test_worst_clients_of_sessions_are_present_ones():
    """Clients that are absent do not count; without shares nothing changes."""
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    measures = Measures((METRICS.find("worst-clients")(),), "classes", 2, shares)
    outputs, labels = torch.eye(2), torch.tensor([0, 0])  # classes: 0.5 right, none
    assert measures.of(outputs, labels) == {"worst_clients": 0.5}
    labels = torch.tensor([1, 1])
    present = measures.of_clients(np.array([False, True, True]))
    assert np.array_equal(present.shares, shares[1:])
    assert present.of(outputs, labels) == {"worst_clients": 0.5}


def test_label_shares_by_hand():
    labels = torch.tensor([0, 0, 2, 1])
    none = np.array([], int)  # a client without samples has none of any label
    found = label_shares(labels, [np.array([0, 1, 2]), np.array([3]), none], 3)
    assert found == pytest.approx(np.array([[2 / 3, 0, 1 / 3], [0, 1, 0], [0, 0, 0]]))
    with pytest.raises(ConfigError, match=r"of 2 clients with 50000001 classes, more than 1e.08"):
        label_shares(labels, [none, none], 50_000_001)


@dataclass(frozen=True)
class LargestError(Metric):
    name = "largest-error"
    smaller = True

    def value(self, tested):
        return float(tested.outputs.abs().max())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"metric": "class-accuracy", "monitor": "class_accuracy"},
            "which has 4 values",
        ),
        (
            {"metric": f"{__name__}:LargestError", "monitor": "largest_error"},
            r"'largest_error', of which smaller values are better: give your metric a name that en",
        ),
    ],
)
def test_fields_that_cannot_be_compared_are_not_monitored(config, toy, flags, message):
    """Neither lists, nor errors by whose names rows do not say that smaller ones are better."""
    made = config("fedavg", clients=4, rounds=1, **flags)
    with pytest.raises(ConfigError, match=message):
        wirelessfl.run(made, data=toy)
    assert not made.run.out.exists()
