"""Real Flower apps and partitioners in runs: equality by hand, resume, refusals, the guide."""

import doctest
import inspect
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import wirelessfl
from channels import Stream
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.bridges.flower_app import decoded, encoded

flwr = pytest.importorskip("flwr.app")  # without the warnings of its imports
ClientApp = pytest.importorskip("flwr.clientapp").ClientApp

pytestmark = [
    pytest.mark.flower,
    # Warnings of the packages themselves, e.g. of functions that will change.
    pytest.mark.filterwarnings("default"),
]
CLIENTS = 6
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "flower.md"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 8), nn.Linear(8, 4)
        self.register_buffer("scale", torch.tensor([2, 3]))

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def parts(toy):
    """Samples of clients of different sizes."""
    return np.split(np.arange(240), np.cumsum([20, 60, 30, 50, 10]))


@pytest.fixture
def start():
    torch.manual_seed(3)
    return Net()


def make_app(toy, parts, change=lambda content, client: content):
    """An app that trains by SGD with momentum that its state keeps; it draws its batches.

    Args:
        change: changes the content of a reply to a training.
    """
    app = ClientApp()
    x, y = toy.train_inputs, toy.train_labels

    @app.train()
    def train(msg, context):
        client, lr = context.node_config["partition-id"], msg.content["config"]["lr"]
        assert context.node_config["num-partitions"] == CLIENTS
        net, rows = Net(), torch.from_numpy(parts[client])
        net.load_state_dict(msg.content.pop("arrays").to_torch_state_dict(keep_input=False))
        optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.5)
        if "momentum" in context.state:
            velocities = context.state["momentum"].to_torch_state_dict().values()
            for p, velocity in zip(net.parameters(), velocities, strict=True):
                optimizer.state[p]["momentum_buffer"] = velocity
        for batch in torch.randperm(len(rows)).split(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[rows[batch]]), y[rows[batch]])
            loss.backward()
            optimizer.step()
        kept = {n: optimizer.state[p]["momentum_buffer"] for n, p in net.named_parameters()}
        context.state["momentum"] = flwr.ArrayRecord(kept)
        counts = context.state.get("counts", flwr.MetricRecord({"trainings": 0}))
        context.state["counts"] = flwr.MetricRecord({"trainings": counts["trainings"] + 1})
        count = len(rows) - client  # it keeps some for its test
        metrics = {"num-examples": count, "train-loss": loss.item(), "parts": [1.0, float(client)]}
        content = {
            "arrays": flwr.ArrayRecord(net.state_dict()),
            "metrics": flwr.MetricRecord(metrics),
        }
        return flwr.Message(flwr.RecordDict(change(content, client)), reply_to=msg)

    @app.evaluate()
    def evaluate(msg, context):
        client = context.node_config["partition-id"]
        trained = "counts" in context.state
        context.state["counts"] = flwr.MetricRecord({"trainings": 1000})  # is not kept
        metrics = {"num-examples": 1 + client, "eval_client": client, "eval_trained": int(trained)}
        metrics["eval_round"] = msg.content["config"]["server-round"]
        return flwr.Message(flwr.RecordDict({"metrics": flwr.MetricRecord(metrics)}), reply_to=msg)

    return app


def by_hand(app, start, streams, rounds, lr):
    """FedAvg over the app's replies, in float64: Flower's own weighted mean."""
    model = {name: value.numpy() for name, value in start.state_dict().items()}
    states = [flwr.RecordDict() for _ in range(CLIENTS)]
    for number in range(rounds):
        total, sums = 0.0, dict.fromkeys(model, 0.0)
        for client in range(CLIENTS):
            arrays = flwr.ArrayRecord({n: flwr.Array(np.asarray(v)) for n, v in model.items()})
            config = flwr.ConfigRecord({"lr": lr, "server-round": number + 1})
            metadata = flwr.Metadata(1, "", 0, client, "", "", 0.0, 1e4, "train")
            content = flwr.RecordDict({"arrays": arrays, "config": config})
            nodes = {"partition-id": client, "num-partitions": CLIENTS}
            context = flwr.Context(1, client, nodes, states[client], {})
            torch.manual_seed(streams(client, number))
            reply = app(flwr.Message(content=content, metadata=metadata), context)
            weight = reply.content["metrics"]["num-examples"]
            total += weight
            for name, array in reply.content["arrays"].items():
                sums[name] = sums[name] + weight * array.numpy().astype(np.float64)
        mean = {name: value / total for name, value in sums.items()}
        model = {name: mean[name].astype(model[name].dtype) for name in model}
    return model


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_a_run_is_fedavg_over_the_replies(config, toy, parts, start, weighting):
    """With the generators seeded as documented, three rounds are those of a loop over the app."""
    app, settings = make_app(toy, parts), config("fedavg", weighting=weighting, batch_size=10)
    result = wirelessfl.run(
        settings, model=start, data=toy, split=parts, trainer=wirelessfl.bridges.flower(app)
    )
    local_steps = settings.training.local_steps

    def seed(client, number):
        stream = Stream(settings.run.seed).child("client", client, "trainer", number * local_steps)
        return stream.key() >> 1

    expected = by_hand(app, start, seed, 3, settings.algorithm.lr)
    assert [*result.params] == [name for name, _ in start.named_parameters()]
    for name, value in result.params.items():
        np.testing.assert_allclose(value.numpy(), expected[name], rtol=2e-5, atol=1e-6)
    counts = [len(part) - client for client, part in enumerate(parts)]
    parts_1 = sum(client * count for client, count in enumerate(counts)) / sum(counts)
    for row in result.rows[1:]:
        assert row["parts_0"] == pytest.approx(1.0)
        assert row["parts_1"] == pytest.approx(parts_1)
        assert 0 < row["train_loss"] < 2
    assert "train_loss" not in result.rows[0]


ASYNCHRONOUS = {"schedule": "buffered", "requests": 4, "buffer": 2, "rounds": 5, "eval_every": 1}
REGIMES = {
    "rounds": {"clients_per_round": 3, "select": "soonest", "uplink": "ofdma"},
    "failures": {"failures": "outage", "margin_db": 0.0, "uplink": "tdma"},
    "buffered": ASYNCHRONOUS | {"uplink": "ofdma"},
    "cut off": ASYNCHRONOUS | {"cutoff_seconds": 0.03, "drop_out": 0.2},
    "fedadam": {"algorithm": "fedadam", "server_lr": 0.01, "uplink": "aircomp"},
}


@pytest.mark.parametrize("regime", REGIMES)
def test_a_resumed_run_equals_an_uninterrupted_one(config, toy, parts, start, same, regime):
    """To the bit, with momentum in ``Context.state``; seconds and joules are those of any run."""
    settings = {"algorithm": "fedavg", "checkpoint_seconds": 0} | REGIMES[regime]
    algorithm = settings.pop("algorithm")
    app = make_app(toy, parts)
    given = {"model": start, "data": toy, "split": parts}

    def trainer():
        return wirelessfl.bridges.flower(app, fraction_evaluate=0.5)

    whole = wirelessfl.run(config(algorithm, **settings), **given, trainer=trainer())
    assert whole.rows[-1]["loss"] < whole.rows[0]["loss"]
    for stop in range(1, len(whole.rows) - 1):
        halted, rows = config(algorithm, **settings), []

        def end(row, rows=rows, stop=stop):
            rows.append(row)
            if len(rows) == stop:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            wirelessfl.run(halted, **given, trainer=trainer(), on_row=end)
        same(wirelessfl.resume(halted.run.out, model=start, data=toy, trainer=trainer()), whole)
    plain = wirelessfl.run(config(algorithm, **settings), **given)
    for name in ("sim_seconds", "joules", "uplink_mib", "lost"):
        assert [row[name] for row in whole.rows] == [row[name] for row in plain.rows]
    assert (whole.rows[-1]["lost"] > 0) == (regime in ("failures", "cut off"))


def test_states_matter(config, toy, parts, start):
    """Without them the second round is another, so that their loss at a resume would be seen."""
    app = make_app(toy, parts)

    def forgets(message, context):
        context.state = flwr.RecordDict()
        return app(message, context)

    forgetful = ClientApp()
    forgetful.train()(forgets)
    ends = [
        wirelessfl.run(
            config("fedavg", rounds=rounds),
            model=start,
            data=toy,
            split=parts,
            trainer=wirelessfl.bridges.flower(each),
        ).rows[-1]["loss"]
        for rounds in (1, 2)
        for each in (app, forgetful)
    ]
    assert ends[0] == ends[1]
    assert ends[2] != ends[3]


def test_evaluations_are_means_over_some_clients(config, toy, parts, start):
    """In each row, with the state of clients, which they cannot change."""
    app = make_app(toy, parts)
    settings = config("fedavg")
    result = wirelessfl.run(
        settings,
        model=start,
        data=toy,
        split=parts,
        trainer=wirelessfl.bridges.flower(app, fraction_evaluate=0.4),
    )
    weights = np.array([1, 3, 5])  # of clients 0, 2 and 4
    for number, row in enumerate(result.rows):
        assert row["eval_client"] == pytest.approx((weights * [0, 2, 4]).sum() / weights.sum())
        assert row["eval_trained"] == float(number > 0)
        assert row["eval_round"] == number
    plain = wirelessfl.run(
        config("fedavg"),
        model=start,
        data=toy,
        split=parts,
        trainer=wirelessfl.bridges.flower(app),
    )
    assert plain.rows[-1]["loss"] == result.rows[-1]["loss"]


def replaced(name, value):
    """A reply in which an array has another value."""

    def change(content, client):
        arrays = dict(content["arrays"])
        if client == 2:
            arrays[name] = flwr.Array(value)
        return content | {"arrays": flwr.ArrayRecord(arrays)}

    return change


def metrics(**values):
    return lambda content, _: content | {"metrics": flwr.MetricRecord(values)}


REPLIES = {
    "dtype": (replaced("first.bias", np.zeros(8)), r"client 2: .*'first.bias' as float64 \[8\]"),
    "shape": (replaced("first.bias", np.zeros(9, "f")), r"'first.bias' as float32 \[9\]"),
    "name": (replaced("third.bias", np.zeros(8, "f")), "arrays with 'third.bias'"),
    "buffer": (replaced("scale", np.array([2, 4])), "another value of 'scale'"),
    "no arrays": (lambda content, _: {"metrics": content["metrics"]}, "with 0 ArrayRecords"),
    "no weight": (metrics(loss_a=1.0), "without the metric 'num-examples'"),
    "weights": (metrics(**{"num-examples": [1, 2]}), "without the metric 'num-examples'"),
    "twice": (
        metrics(**{"num-examples": 1, "a-b": 1.0, "a_b": 2.0}),
        "are the field 'a_b' of rows",
    ),
    "negative": (metrics(**{"num-examples": -1}), "reports the weight -1.0"),
    "taken": (metrics(**{"num-examples": 1, "loss": 1.0}), "'loss', which is another field"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_other_replies_are_refused_in_one_line(config, toy, parts, start, name):
    change, message = REPLIES[name]
    trainer = wirelessfl.bridges.flower(make_app(toy, parts, change))
    settings = config("fedavg")
    with pytest.raises(TrainingError, match=message) as caught:
        wirelessfl.run(settings, model=start, data=toy, split=parts, trainer=trainer)
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


def fails(msg, context):
    raise KeyError("learning-rate")


def error(msg, context):
    return flwr.Message(flwr.Error(7, "no battery"), reply_to=msg)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fails, "KeyError: 'learning-rate'"),
        (error, "client 0: @app.train.. replied with the error 'no battery'"),
        (lambda msg, context: None, "returned None: return Message"),
    ],
)
def test_failing_apps_are_named_in_one_line(config, toy, start, function, message):
    app = ClientApp()
    app.train()(function)
    trainer = wirelessfl.bridges.flower(app)
    with pytest.raises(TrainingError, match=message) as caught:
        wirelessfl.run(config("fedavg"), model=start, data=toy, trainer=trainer)
    assert "\n" not in str(caught.value)


def test_wrong_arguments_are_refused(toy, parts):
    app, empty, old = make_app(toy, parts), ClientApp(), ClientApp(client_fn=lambda context: None)
    flower = wirelessfl.bridges.flower
    for call, message in (
        (lambda: flower("app"), "client_app is 'app': give a flwr.clientapp.ClientApp"),
        (lambda: flower(empty), "no function @app.train"),
        (lambda: flower(old), "a client_fn is not called"),
        (lambda: flower(app, fraction_evaluate=2), "fraction_evaluate is 2: give"),
        (lambda: flower(app, run_config=3), "run_config is 3: give a dict"),
        (lambda: flower(app, train_config={"lr": 1}), "train_config has 'lr'.*set lr in the run"),
    ):
        with pytest.raises(ConfigError, match=message):
            call()


def test_models_with_running_statistics_are_refused(config, toy, parts):
    module = nn.Sequential(nn.Linear(12, 4), nn.BatchNorm1d(4))
    trainer = wirelessfl.bridges.flower(make_app(toy, parts))
    with pytest.raises(ConfigError, match="running statistics"):
        wirelessfl.run(config("fedavg"), model=module, data=toy, trainer=trainer)


def test_edited_functions_are_noticed(config, toy, parts, start):
    """By a resumed run: the app has other functions, or another configuration."""
    app, settings = make_app(toy, parts), config("fedavg", checkpoint_seconds=0)
    given = {"model": start, "data": toy}

    def end(row):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        wirelessfl.run(
            settings, **given, split=parts, trainer=wirelessfl.bridges.flower(app), on_row=end
        )
    other = ClientApp()
    other.train()(fails)
    changed = (
        wirelessfl.bridges.flower(other),
        wirelessfl.bridges.flower(app, run_config={"a": 1}),
    )
    for trainer in changed:
        with pytest.raises(ConfigError, match=r"the code or a value of trainer=\.\.\. has changed"):
            wirelessfl.resume(settings.run.out, **given, trainer=trainer)


def test_states_are_stored_as_they_are():
    """All kinds of records and values, in their order, to the bit."""
    state = flwr.RecordDict()
    state["arrays"] = flwr.ArrayRecord(
        {
            "f": flwr.Array(np.array([[0.1, -0.0, np.nan]], "f")),
            "i": flwr.Array(np.arange(3)),
            "none": flwr.Array(np.zeros((0, 2), np.float16)),
        }
    )
    state["metrics"] = flwr.MetricRecord(
        {"a": 1, "b": 1.0, "c": [1, 2], "d": [0.1, 1e300], "e": []}
    )
    values = {"s": "ä", "y": b"\x00\xff", "t": True, "n": 1, "ys": [b"a", b""], "ts": [False]}
    state["config"] = flwr.ConfigRecord(values)
    state["empty"] = flwr.ArrayRecord()
    again = decoded(encoded(state), flwr)
    assert [*again] == [*state]
    assert again == state
    assert encoded(again) == encoded(state)
    for key in ("metrics", "config"):
        for name, value in state[key].items():
            assert type(again[key][name]) is type(value)
    assert decoded(encoded(flwr.RecordDict()), flwr) == flwr.RecordDict()


def test_states_of_earlier_names_are_stored_as_records():
    """Flower still has the classes ``MetricsRecord`` and ``ParametersRecord``."""
    earlier = pytest.importorskip("flwr.compat.common.record.metricrecord").MetricsRecord
    again = decoded(encoded(flwr.RecordDict({"kept": earlier({"a": 1.5})})), flwr)
    assert type(again["kept"]) is flwr.MetricRecord
    assert dict(again["kept"]) == {"a": 1.5}
    header = b'[["kept", "Context", []]]'
    with pytest.raises(ValueError, match="kept is a Context"):
        decoded(len(header).to_bytes(8, "little") + header, flwr)


def partitioners():
    from flwr_datasets import partitioner as kinds

    return {
        "iid": kinds.IidPartitioner(4),
        "dirichlet": kinds.DirichletPartitioner(4, partition_by="label", alpha=0.5),
        "shard": kinds.ShardPartitioner(4, partition_by="label", num_shards_per_partition=2),
        "pathological": kinds.PathologicalPartitioner(4, "label", num_classes_per_partition=2),
        "linear": kinds.LinearPartitioner(4),
        "natural": kinds.NaturalIdPartitioner(partition_by="writer"),
    }


@pytest.mark.parametrize("name", ["iid", "dirichlet", "shard", "pathological", "linear", "natural"])
def test_partitions_are_splits(config, toy, name):
    """Client k has the samples of partition k, as the run's partition says."""
    from datasets import Dataset

    columns = {
        "x": toy.train_inputs.tolist(),
        "label": toy.train_labels.tolist(),
        "writer": [f"w{i % 5}" for i in range(len(toy.train_labels))],
    }
    samples = Dataset.from_dict(columns)
    split = wirelessfl.bridges.flower_split(partitioners()[name], samples)
    other = partitioners()[name]
    other.dataset = samples
    assert len(split) == other.num_partitions == (5 if name == "natural" else 4)
    for number, indices in enumerate(split):
        partition = other.load_partition(number)
        assert sorted(map(tuple, partition["x"])) == sorted(map(tuple, samples[indices]["x"]))
        assert (np.diff(indices) > 0).all()
    settings = config("fedavg", rounds=1, network=True)
    result = wirelessfl.run(settings, data=toy, split=split)
    assert all((result.partition[k] == indices).all() for k, indices in enumerate(split))
    if name == "natural":
        assert all(len({samples[int(i)]["writer"] for i in indices}) == 1 for indices in split)


def test_other_partitioners_are_refused():
    from datasets import Dataset
    from flwr_datasets import partitioner as kinds

    samples = Dataset.from_dict({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    assigned = kinds.IidPartitioner(2)
    assigned.dataset = samples
    for partitioner, message in (
        (assigned, "has a data set already"),
        (kinds.VerticalEvenPartitioner(2), "gives clients columns instead of samples"),
    ):
        with pytest.raises(ConfigError, match=message):
            wirelessfl.bridges.flower_split(partitioner, samples)


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    """The app's files are Flower's, and the run prints what the page promises."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    blocks = re.findall(
        r"^```python( file=(\S+))?\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    for _, file, code in blocks:
        Path(file or "example.py").write_text(code)
    for name in ("task", "client_app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        assert "wirelessfl" not in Path(f"{name}.py").read_text()
    done = runpy.run_path("example.py")["result"]
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert done.rows[-1]["accuracy"] > 2 * done.rows[0]["accuracy"]
    assert done.rows[-1]["train_loss"] < done.rows[1]["train_loss"]


@pytest.mark.parametrize("name", wirelessfl.bridges.__all__)
def test_the_examples_give_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = getattr(wirelessfl.bridges, name)
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder(recurse=False).find(inspect.unwrap(thing), name, globs={}):
        runner.run(test)
    assert runner.summarize(verbose=False).attempted > 2
    assert runner.summarize(verbose=False).failed == 0
