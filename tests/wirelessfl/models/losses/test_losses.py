"""Losses equal torch's; users' functions train as the per-sample loss does, in every executor."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.models.losses import own_functions
from tests.wirelessfl.training.jobs import job_for, samples_of, updates
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.losses import LOSSES, CrossEntropy, GivenLoss, Loss, accuracies, ready
from wirelessfl.models import FCNN
from wirelessfl.training.batches import Batch, BatchSource
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor

OWN = "tests.wirelessfl.models.losses.own_functions"
DRAW = torch.Generator().manual_seed(3)
X = torch.randn(90, 9, generator=DRAW)
CLASSES = torch.randint(0, 4, (90,), generator=DRAW)
REALS = X[:, 0] * X[:, 1]
PAIRS = X[:, :2] * X[:, 2:4]
SEVERAL = (X[:, :3] > 0).long()
IMAGES = torch.randn(90, 1, 4, 5, generator=DRAW)
MASKS = (IMAGES[:, 0] > 0).long()


class Convolutions(nn.Module):
    """Class scores of each pixel."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def data_of(labels, inputs=X, **options):
    return Dataset("toy", inputs[:60], labels[:60], inputs[60:], labels[60:], **options)


def own(function, outputs=None, labels=CLASSES):
    """The loss that trains with a user's function, and its message."""
    outputs = torch.randn(8, 4, generator=DRAW) if outputs is None else outputs
    return ready(GivenLoss(), function, outputs, labels[: len(outputs)], labels)


def plain(name, outputs, labels):
    """A batch's loss by torch's own functions."""
    if name == "binary-cross-entropy":
        return F.binary_cross_entropy_with_logits(outputs, labels.float())
    kinds = {"mse": F.mse_loss, "l1": F.l1_loss, "huber": F.huber_loss}
    if name in kinds:
        return kinds[name](outputs.view(labels.shape), labels)
    return F.cross_entropy(outputs, labels)


CASES = {
    "classes": ("cross-entropy", CLASSES, lambda: FCNN((9,), 4, hidden=(5,))),
    "reals": ("mse", REALS, lambda: FCNN((9,), 1, hidden=(5,))),
    "pairs": ("huber", PAIRS, lambda: FCNN((9,), 2, hidden=(5,))),
    "absolute": ("l1", PAIRS, lambda: FCNN((9,), 2, hidden=(5,))),
    "several": ("binary-cross-entropy", SEVERAL, lambda: FCNN((9,), 3, hidden=(5,))),
    "several-float": ("binary-cross-entropy", SEVERAL.float(), lambda: FCNN((9,), 3, hidden=(5,))),
    "masks": ("cross-entropy", MASKS, Convolutions),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_executors_equal_a_plain_loop(case):
    """Ten steps of three clients, with padded batches, equal torch.optim.SGD on each."""
    name, labels, make = CASES[case]
    torch.manual_seed(1)
    module, inputs = make(), IMAGES if case == "masks" else X
    sizes, batch_size = [20, 7, 33], 16
    source = BatchSource(samples_of(sizes), batch_size, Stream(2))
    data = TrainingData(inputs, labels, source)
    _, job = job_for(module, data, steps=4)
    objective = replace(Objective.of(module), criterion=LOSSES.find(name)())
    expected = []
    batches = job.batches(source)
    start = nn.utils.parameters_to_vector(module.parameters()).detach().clone()
    for client in range(3):
        nn.utils.vector_to_parameters(start.clone(), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        for index, weight in zip(batches.index[client], batches.weight[client], strict=True):
            rows = index[weight > 0]
            optimiser.zero_grad()
            plain(name, module(inputs[rows]), labels[rows]).backward()
            optimiser.step()
        expected.append(nn.utils.parameters_to_vector(module.parameters()).detach() - start)
    nn.utils.vector_to_parameters(start.clone(), module.parameters())
    kinds = [LoopExecutor, VmapExecutor] + [StackedExecutor] * (case != "masks")
    for kind in kinds:
        found = updates(kind(objective, data, 2), job)
        assert torch.allclose(found, torch.stack(expected), atol=1e-5), kind.name


def by_formula(name, outputs, labels):
    """The loss of each label in NumPy: [batch, ...]."""
    z, y = outputs.double().numpy(), labels.numpy()
    if name == "cross-entropy":
        picked = np.take_along_axis(z, y[:, None], 1)[:, 0]
        return np.log(np.exp(z).sum(1)) - picked
    z, y = z.reshape(y.shape), y.astype(float)
    error = np.abs(z - y)
    return {
        "binary-cross-entropy": np.log1p(np.exp(z)) - z * y,
        "mse": error**2,
        "l1": error,
        "huber": np.where(error <= 0.4, error**2 / 2, 0.4 * (error - 0.2)),
    }[name]


@pytest.mark.parametrize("case", CASES)
def test_losses_and_their_sums_equal_formulas(case):
    """A sample's loss is the mean over its labels or pixels, and so is its part of the sum."""
    name, labels, _ = CASES[case]
    shape = {"classes": (90, 4), "masks": (90, 2, 4, 5), "reals": (90, 1)}.get(case, labels.shape)
    outputs = 3 * torch.randn(shape, generator=DRAW)
    loss = LOSSES.find(name)(**({"huber_delta": 0.4} if name == "huber" else {}))
    each = by_formula(name, outputs, labels).reshape(90, -1).mean(1)
    np.testing.assert_allclose(loss.values(outputs, labels), each, rtol=1e-4, atol=1e-6)
    for how, expected in (("sum", each.sum()), ("mean", each.mean())):
        found = loss.reduced(outputs, labels, how)
        assert found.shape == ()
        assert float(found) == pytest.approx(expected, rel=1e-5)


def test_sums_of_pixels_are_smoothed_and_summed_in_float64():
    """Samples whose losses differ by 1e9: a float32 sum would lose the smaller ones."""
    scores = torch.zeros(101, 2, 2, 2)
    scores[0, 0] = 1e9
    labels = torch.ones(101, 2, 2, dtype=torch.int64)
    found = CrossEntropy().reduced(scores, labels, "sum")
    assert found.dtype == torch.float64
    assert float(found) == pytest.approx(1e9 + 100 * np.log(2), abs=1e-3)
    smooth = CrossEntropy(label_smoothing=0.5)
    # The target is 1/4 for class 0 and 3/4 for class 1, in images and in their columns.
    for found in (
        smooth.reduced(scores, labels, "sum"),
        smooth.reduced(scores[..., 0], labels[..., 0], "sum"),
    ):
        assert float(found) == pytest.approx(0.75e9 + 100 * np.log(2), abs=1e-3)


def test_accuracies_by_hand():
    """The largest score is right, or the sign; of several labels or pixels, their fraction."""
    scores = torch.tensor([[[2.0, 0.0, 1.0, 1.0]], [[0.0, 3.0, 1.0, 1.0]]]).reshape(2, 2, 2)
    pixels = accuracies("classes", scores, torch.tensor([[0, 1], [0, 0]]))
    assert pixels.tolist() == [1.0, 0.5]
    logits = torch.tensor([[1.0, -1.0], [-2.0, 0.5]])
    for labels in (torch.tensor([[1, 1], [0, 1]]), torch.tensor([[1.0, 1.0], [0.0, 1.0]])):
        assert accuracies("signs", logits, labels).tolist() == [0.5, 1.0]
    single = accuracies("signs", torch.tensor([[0.3], [0.0], [-0.2]]), torch.tensor([0.0, 0, 0]))
    assert single.tolist() == [False, True, True]


@dataclass(frozen=True)
class Fourth(Loss):
    """A loss of a user, as a class; that of a batch, or with further axes, is wrong."""

    shape: str = "samples"

    def values(self, outputs, labels):
        found = (outputs[:, 0] - labels) ** 4
        return {"samples": found, "batch": found.mean(), "column": found[:, None]}[self.shape]


def test_a_class_of_the_user_has_a_loss_per_sample():
    outputs, labels = torch.tensor([[1.0], [3.0]]), torch.zeros(2)
    assert Fourth().values(outputs, labels).tolist() == [1.0, 81.0]
    assert float(Fourth().reduced(outputs, labels, "mean")) == 41.0
    for wrong in ("batch", "column"):
        with pytest.raises(ConfigError, match="Return the loss of each of the 2 samples"):
            Fourth(shape=wrong).values(outputs, labels)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_label_smoothing_equals_torch(smoothing):
    outputs, labels = torch.randn(90, 4, generator=DRAW), CLASSES
    loss = CrossEntropy(label_smoothing=smoothing)
    torch_loss = nn.CrossEntropyLoss(label_smoothing=smoothing, reduction="none")
    assert torch.equal(loss.values(outputs, labels), torch_loss(outputs, labels))
    target = torch.full((90, 4), smoothing / 4)
    target[torch.arange(90), labels] += 1 - smoothing
    by_hand = -(target * outputs.log_softmax(1)).sum(1)
    assert torch.allclose(loss.values(outputs, labels), by_hand, atol=1e-6)
    assert torch.allclose(loss.reduced(outputs, labels, "sum"), by_hand.sum(), atol=1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["scalar", "per_sample", "branching"])
@pytest.mark.parametrize("executor", ["stacked", "vmap", "loop"])
def test_functions_train_as_cross_entropy(config, toy, name, executor):
    """A function of the user, whatever it returns, gives the rows of the built-in loss."""
    flags = {"executor": executor, "split": "iid", "clients": 4, "rounds": 1}
    if (name, executor) == ("branching", "vmap"):
        with pytest.raises(ConfigError, match=r"under vmap .*branching"):
            wirelessfl.run(config("fedavg", loss=f"{OWN}:{name}", **flags), data=toy)
        return
    row, other = (
        wirelessfl.run(config("fedavg", **flags, **loss), data=toy).rows[-1]
        for loss in ({}, {"loss": f"{OWN}:{name}"})
    )
    assert row["accuracy"] == other["accuracy"]
    assert row["loss"] == pytest.approx(other["loss"], abs=1e-6)


def test_the_way_of_a_function_is_found_once():
    outputs = torch.randn(8, 4, generator=DRAW)
    alone = F.cross_entropy(outputs, CLASSES[:8], reduction="none")
    for name, way in (("per_sample", "batch"), ("scalar", "vmap"), ("branching", "loop")):
        loss, note = own(getattr(own_functions, name), outputs)
        assert (loss.way, loss.accuracy, note) == (way, "classes", None)
        assert torch.allclose(loss.values(outputs, CLASSES[:8]), alone)
        assert len(loss.values(outputs[:0], CLASSES[:0])) == 0
    per_pixel, _ = own(own_functions.per_sample, torch.randn(8, 2, 4, 5), MASKS)
    scores = torch.randn(8, 2, 4, 5)
    by_hand = F.cross_entropy(scores, MASKS[:8], reduction="none").mean((1, 2))
    assert torch.allclose(per_pixel.values(scores, MASKS[:8]), by_hand)
    assert per_pixel.accuracy == "classes"


@pytest.mark.parametrize(
    ("labels", "shape", "accuracy"),
    [(CLASSES, (8, 4), "classes"), (SEVERAL, (8, 3), "signs"), (SEVERAL.float(), (8, 3), "signs"),
     (REALS, (8, 1), None), (REALS.round(), (8, 1), None), (PAIRS, (8, 2), None),
     (MASKS, (8, 2, 4, 5), "classes")],
)  # fmt: skip
def test_what_is_right_follows_from_labels_and_outputs(labels, shape, accuracy):
    loss, _ = own(
        lambda outputs, labels: outputs.flatten(1).square().sum(1), torch.randn(shape), labels
    )
    assert loss.accuracy == accuracy


def test_batch_effects_are_told_or_refused():
    """A weighted mean divides by the weight of its only sample; per-sample losses must not mix."""
    loss, note = own(own_functions.weighted)
    assert "return the loss of each sample" in note
    outputs = torch.randn(8, 4, generator=DRAW)
    unweighted = F.cross_entropy(outputs, CLASSES[:8], reduction="none")
    assert torch.allclose(loss.values(outputs, CLASSES[:8]), unweighted, atol=1e-6)
    with pytest.raises(ConfigError, match="mixes the samples of a batch"):
        own(own_functions.standardised)


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda o, y: 3.0, "returned 3.0: return a tensor"),
     (lambda o, y: float(o.sum()), "returned -?[0-9.e-]+: return a tensor"),
     (lambda o, y: o[:3, 0], r"float32 \[3\] for 8 samples"),
     (lambda o, y: y, "returned torch.int64"),
     (lambda o, y: o.detach().sum(), "without a gradient"),
     (own_functions.failing, "loss 'failing': KeyError: 'weights' .in failing, own_functions")],
)  # fmt: skip
def test_wrong_functions_are_refused_in_one_line(function, message):
    with pytest.raises(ConfigError, match=message) as error:
        own(function)
    assert "\n" not in str(error.value)


def test_given_losses_equal_named_ones(config, toy):
    """As an object, by import path, and pickled; a lambda cannot be sent to worker processes."""
    flags = {"split": "iid", "clients": 4, "rounds": 1, "chunk": 2}
    rows = [
        wirelessfl.run(config("fedavg", **flags, **more), data=toy, loss=loss).rows[-1]["loss"]
        for loss, more in ((own_functions.scalar, {}), (f"{OWN}:scalar", {}))
    ]
    assert rows[0] == rows[1]
    outputs = torch.randn(8, 4, generator=DRAW)
    for loss in (own(own_functions.scalar)[0], LOSSES.find(f"{OWN}:scalar")()):
        sent = pickle.loads(pickle.dumps(loss))  # as to a worker process
        assert sent == loss
    assert torch.equal(
        pickle.loads(pickle.dumps(own(own_functions.scalar, outputs)[0])).values(
            outputs, CLASSES[:8]
        ),
        own(own_functions.scalar, outputs)[0].values(outputs, CLASSES[:8]),
    )
    with pytest.raises(ConfigError, match=r"the loss cannot be sent .* define it in a module file"):
        wirelessfl.run(
            config("fedavg", **flags, workers=2), data=toy, loss=lambda o, y: o.square().mean()
        )
    with pytest.raises(ConfigError, match=r"loss=... is given to wirelessfl.run and replaces"):
        wirelessfl.run(config("fedavg", **flags, loss="mse"), data=toy, loss=own_functions.scalar)
    with pytest.raises(ConfigError, match=r"unknown. Do you mean 'mse'"):
        wirelessfl.run(config("fedavg", **flags), data=toy, loss="mze")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("case", "algorithm", "more"),
    [("reals", "fedavg", {"validation_fraction": 0.2, "metric": "rmse"}), ("pairs", "moon", {}),
     ("several", "fedprox", {"mu": 0.1}), ("masks", "fedavg", {}),
     ("pairs", "heterofl", {"hidden": (8, 6)}), ("reals", "hist", {"cells": 2, "hidden": (8, 6)}),
     ("several", "fedast", {"step_seconds": 0.1}),
     ("reals", "hfedavg", {"cells": 2, "schedule": "buffered", "buffer": 1}),
     ("pairs", "fedavg", {"select": "power-of-choice", "clients_per_round": 2}),
     ("reals", "fedavg", {"sessions": 2, "presence": "arrivals", "arrival_rate": 1.0,
      "mean_stay": 3.0, "tested_labels": "all"})],
)  # fmt: skip
def test_every_regime_trains_every_kind_of_labels(config, case, algorithm, more):
    """Rows have the loss of the final parameters on the test set; resumed, they are the same."""
    name, labels, make = CASES[case]
    options = {"classes": 2 if case == "masks" else 3} if labels.dtype == torch.int64 else {}
    data = data_of(labels, IMAGES if case == "masks" else X, **options)
    objects = {"data": data} | ({"model": make()} if case == "masks" else {})
    flags = {"loss": name, "split": "iid", "clients": 4, "rounds": 2, "lr": 0.01, **more}
    made = config(algorithm, **flags)
    result = wirelessfl.run(made, **objects)
    module = objects.get("model") or FCNN((9,), data.classes, hidden=more.get("hidden", (300,)))
    module.load_state_dict(result.params, strict=False)
    with torch.no_grad():
        outputs = module.eval()(data.test_inputs)
    row = result.rows[-1]
    assert row["loss"] == pytest.approx(float(plain(name, outputs, data.test_labels)), rel=1e-5)
    right = {"several": lambda: (outputs > 0) == (data.test_labels > 0)}
    right["masks"] = lambda: outputs.argmax(1) == data.test_labels
    if case in right:
        assert row["accuracy"] == pytest.approx(float(right[case]().float().mean()))
    else:
        assert "accuracy" not in row
        field = "validation_loss" if "validation_fraction" in more else "loss"
        best = min(result.rows, key=lambda row: row[field])
        assert result.summary()["best_loss"] == best["loss"]
    again = wirelessfl.resume(result.directory, **objects)
    assert again.rows == result.rows


@pytest.mark.parametrize(
    ("labels", "flags", "message"),
    [(REALS, {}, 'does not take the labels .*float32 .60.: choose loss "huber", "l1", "mse"'),
     (CLASSES, {"loss": "mse"}, 'int64 .60.: choose loss "cross-entropy"'),
     (REALS, {"loss": "mse", "split": "noniid"}, 'split "noniid" needs one class per sample'),
     (REALS, {"loss": "mse", "target": 0.5}, "target=0.5 refers to the accuracy"),
     (REALS, {"loss": "mse", "monitor": "accuracy"}, "monitor is 'accuracy', which is not"),
     (REALS, {"loss": "mse", "sessions": 2}, 'presence "labels" needs one class per sample'),
     (SEVERAL, {}, 'choose loss "binary-cross-entropy"')],
)  # fmt: skip
def test_what_does_not_fit_is_refused(config, labels, flags, message):
    options = {"classes": 3} if labels is SEVERAL else {}
    made = config("fedavg", **{"split": "iid", "clients": 4} | flags)
    with pytest.raises(ConfigError, match=message) as error:
        wirelessfl.run(made, data=data_of(labels, **options))
    assert "\n" not in str(error.value)
    assert not made.run.out.exists()


def test_classes_are_derived_where_labels_tell_them():
    assert data_of(CLASSES).classes == int(CLASSES.max()) + 1
    assert (data_of(REALS).classes, data_of(PAIRS).classes) == (1, 2)
    with pytest.raises(DataError, match="classes cannot be inferred"):
        data_of(SEVERAL)
    with pytest.raises(DataError, match="NaN or infinite"):
        data_of(REALS / 0.0)
    with pytest.raises(DataError, match=r"span 0..1; with classes=1 give labels in 0..0"):
        data_of(CLASSES.clamp(max=1), classes=1)
    with pytest.raises(DataError, match=r"float64 .60.; give int64 .n. for classes"):
        data_of(REALS.double())
    with pytest.raises(DataError, match="give both the same dtype and shape"):
        Dataset("toy", X[:60], REALS[:60], X[60:], PAIRS[60:])


def test_losses_of_tasks_differ(config):
    """A task's table may name its own loss."""
    tasks = [f"digits,name=a,loss={OWN}:scalar", "digits,name=b,label_smoothing=0.3"]
    flags = {"task": tasks, "rounds": 2, "eval_every": 2, "step_seconds": 0.1, "clients": 4}
    result = wirelessfl.run(config("fedast", **flags))
    first, second = (result.rows_of(task)[0]["loss"] for task in ("a", "b"))
    assert first != second


def test_a_stored_run_names_its_loss(config, toy):
    """Code in a file needs trust; the loss of a batch follows the samples' weights."""
    made = config("fedavg", loss=f"{OWN}:scalar", clients=4, rounds=1, metric=f"{OWN}:top_two")
    assert made.code == {f"{OWN}:scalar", f"{OWN}:top_two"}
    result = wirelessfl.run(made, data=toy)
    with pytest.raises(ConfigError, match=r"importing it runs code"):
        Config.from_toml(result.directory / "config.toml")
    again = Config.from_toml(result.directory / "config.toml", trust=True)
    assert again.tables["loss"] == {"name": f"{OWN}:scalar"}
    module = FCNN((9,), 4, hidden=(5,))
    objective = replace(Objective.of(module), criterion=own(own_functions.scalar)[0])
    weight = torch.tensor([0.5, 0.5, 0.0, 0.0])
    batch = Batch(X[:4], CLASSES[:4], weight, torch.zeros(2, dtype=torch.int32))
    found = objective.loss(objective.spec.views(objective.spec.from_module(module)), batch)
    assert torch.allclose(found, F.cross_entropy(module(X[:2]), CLASSES[:2]), atol=1e-6)
    assert np.isfinite(float(found))


def test_flops_are_counted_with_any_loss(config):
    """The cost of a step is that of the layers for any kind of labels."""
    flags = {"cycles_per_flop": 1.0, "split": "iid", "clients": 4, "rounds": 1, "lr": 0.01}
    two = torch.cat([CLASSES[:, None], CLASSES[:, None]], 1).float()
    results = [
        wirelessfl.run(config("fedavg", **flags, **loss), data=data_of(labels, **more))
        for labels, loss, more in (
            (two, {"loss": "mse"}, {}),
            (CLASSES % 2, {}, {"classes": 2}),
            (CLASSES % 2, {"loss": f"{OWN}:scalar"}, {"classes": 2}),
        )
    ]
    assert len({result.rows[-1]["sim_seconds"] for result in results}) == 1
