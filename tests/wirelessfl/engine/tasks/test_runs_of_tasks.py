"""Runs of several tasks: equivalent runs, batching, interruption, and limits."""

import json
import pickle
from itertools import groupby

import numpy as np
import pytest
import torch

import wirelessfl
from wirelessfl.algorithms.fedasync import FedAsync
from wirelessfl.algorithms.fedbuff import FedBuff
from wirelessfl.config import Config
from wirelessfl.engine.events import Report
from wirelessfl.engine.tasks import deferred_training
from wirelessfl.engine.tasks.request import spread
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.training.rules import Received

ALONE = {
    "clients": 6,
    "local_steps": 3,
    "batch_size": 8,
    "lr": 0.1,
    "threads": 1,
    "step_seconds": 0.01,
    "uplink": "fixed",
    "eval_every": 1,
}


def flags(tmp_path, name, **more):
    return ALONE | {"out": tmp_path / name} | more


def engine_run(config, data, choose=None):
    """Run to the end; return the engine and the rows. ``choose`` maps requests to clients."""
    engine = Engine(build(config, data=data))
    if choose is not None:
        engine.setup.handler.requests.choose = choose
    execution = Execution(engine, create(config.run.out, config), None)
    execution.run()
    return engine, execution.directory.rows()


def test_fedast_with_full_buffers_is_synchronous_fedavg(tmp_path, toy):
    """With b = R = N and one request per client, FedAST has the rows and model of FedAvg."""
    settings = flags(tmp_path, "fedavg", rounds=4, server_lr=0.7)
    reference = wirelessfl.run(Config.from_flags("fedavg", **settings), data=toy)
    settings = flags(tmp_path, "fedast", rounds=4, server_lr=0.7, requests=6, buffer=6)
    config = Config.from_flags("fedast", **settings)
    engine, rows = engine_run(config, toy, choose=lambda number: number % 6)
    for name, value in engine.params().items():
        assert torch.allclose(value, reference.params[name], atol=1e-6)
    assert [row["accuracy"] for row in rows] == [row["accuracy"] for row in reference.rows]
    for mine, other in zip(rows, reference.rows, strict=True):
        assert mine["sim_seconds"] == pytest.approx(other["sim_seconds"])
        assert mine["uplink_mib"] == pytest.approx(other["uplink_mib"])
        assert mine["staleness_max"] == 0


def test_one_request_at_a_time_is_fedasync(tmp_path, toy):
    """With b = R = 1, FedAST with server rate eta_s equals FedAsync with weight eta_s."""
    for weight in (1.0, 0.6):
        ends = []
        for algorithm, buffer in (("fedast", {"buffer": 1}), ("fedasync", {})):
            own = {"requests": 1, "rounds": 12, "server_lr": weight, **buffer}
            settings = flags(tmp_path, f"{algorithm}{weight}", **own)
            ends.append(wirelessfl.run(Config.from_flags(algorithm, **settings), data=toy))
        one, two = ends
        for name, value in one.params.items():
            assert torch.allclose(value, two.params[name], atol=1e-5)
        assert [r["sim_seconds"] for r in one.rows] == [r["sim_seconds"] for r in two.rows]


def test_sync_st_of_one_task_is_fedavg(tmp_path, toy):
    reference = wirelessfl.run(
        Config.from_flags("fedavg", **flags(tmp_path, "fedavg", rounds=4)), data=toy
    )
    settings = flags(tmp_path, "sync", rounds=4, first=0)
    found = wirelessfl.run(Config.from_flags("sync-st", **settings), data=toy)
    for name, value in found.params.items():
        assert torch.allclose(value, reference.params[name], atol=1e-6)
    seconds = [row["sim_seconds"] for row in found.rows]
    assert seconds == pytest.approx([row["sim_seconds"] for row in reference.rows])
    assert [r["accuracy"] for r in found.rows] == [r["accuracy"] for r in reference.rows]


TWO = {
    "task": [
        "digits,model=fcnn,requests=7,buffer=2,step_seconds=0.1",
        "digits,model=mlp,requests=5,buffer=2,lr=0.05,step_seconds=0.3,name=slow",
    ],
    "clients": 9,
    "samples_per_client": 12,
    "split": "dirichlet",
    "reuse": True,
    "local_steps": 3,
    "batch_size": 6,
    "rounds": 14,
    "weight_decay": 1e-3,
    "delays": "shifted-exponential",
    "threads": 1,
    "chunk": 4,
    "eval_seconds": 1.0,
}


def plain(rows):
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A run that trains one client at a time."""
    alone = TWO | {"executor": "loop", "chunk": 1, "out": tmp_path_factory.mktemp("one") / "alone"}
    return wirelessfl.run(Config.from_flags("fedast", **alone))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("executor", ["stacked", "vmap", "loop"])
def test_batched_training_gives_the_rows_of_single_clients(tmp_path, executor, one):
    """Except for wall-clock time, rows equal those of training one client at a time."""
    both = TWO | {"executor": executor, "out": tmp_path / "both"}
    two = wirelessfl.run(Config.from_flags("fedast", **both))
    for mine, other in zip(plain(two.rows), plain(one.rows), strict=True):
        assert mine.pop("loss") == pytest.approx(other.pop("loss"), abs=1e-4)
        assert mine.pop("accuracy") == other.pop("accuracy")
        assert mine == other
    for name, value in two.params.items():
        assert torch.allclose(value, one.params[name], atol=1e-4)


def test_the_chosen_chunk_and_executor_of_each_task_are_stored(tmp_path):
    """The run directory's settings contain the chunk, executor and workers chosen per task."""
    settings = {k: v for k, v in TWO.items() if k not in ("chunk", "eval_seconds")}
    config = Config.from_flags("fedast", **settings, out=tmp_path / "run", eval_every=7)
    result = wirelessfl.run(config)
    stored = Config.from_toml(tmp_path / "run" / "config.toml")
    assert stored.to_toml() == result.config.to_toml()
    for own in stored.tasks.values():
        assert own.run.chunk >= 1
        assert own.run.executor == "stacked"
        assert own.run.workers == 1


def test_worker_processes_give_the_same_rows(tmp_path):
    alone = wirelessfl.run(Config.from_flags("fedast", **TWO, out=tmp_path / "alone"))
    settings = TWO | {"workers": 2, "out": tmp_path / "two"}
    both = wirelessfl.run(Config.from_flags("fedast", **settings))
    for mine, other in zip(plain(both.rows), plain(alone.rows), strict=True):
        assert mine.pop("loss") == pytest.approx(other.pop("loss"), abs=1e-4)
        assert mine == other


def test_the_counts_in_rows_are_consistent(tmp_path):
    own = {"option": "D", "floor": 2, "drop_out": 0.2, "busy_clients": 4, "period": 0.3}
    result = wirelessfl.run(Config.from_flags("fedast", **TWO | own, out=tmp_path / "run"))
    assert result.tasks == ["digits", "slow"]
    with pytest.raises(ValueError, match=r"'digit', .* Do you mean 'digits'\? Choose digits, slow"):
        result.rows_of("digit")
    lost = [row["lost"] for row in result.rows_of("digits")]
    assert lost == sorted(lost)
    assert lost[-1] > 0
    for row in result.rows:
        assert row["requests"] <= 12
        assert row["round"] == row["version"] <= 14
        assert 0 <= row["staleness_mean"] <= row["staleness_max"]
        assert row["allocation"] >= 2
    for _, same in groupby(result.rows, key=lambda row: row["sim_seconds"]):
        own = list(same)
        if len(own) == 2 and own[0]["sim_seconds"] > 0:
            assert sum(row["requests"] for row in own) <= 12
    last = result.rows_of("slow")[-1]
    assert last["version"] == 14
    assert last["allocation"] == 12  # all requests, after the other task has ended
    assert {name.partition(".")[0] for name in result.params} == {"digits", "slow"}


def test_tasks_end_at_their_targets_and_the_run_with_the_last_task(tmp_path):
    tasks = [TWO["task"][0] + ",target=0.3", TWO["task"][1] + ",target=0.2"]
    settings = TWO | {"task": tasks, "rounds": 10_000, "max_seconds": 500.0, "server_lr": 0.5}
    result = wirelessfl.run(Config.from_flags("fedast", **settings, out=tmp_path / "run"))
    for task, target in (("digits", 0.3), ("slow", 0.2)):
        accuracies = [row["accuracy"] for row in result.rows_of(task)]
        assert accuracies[-1] >= target
        assert max(accuracies[:-1]) < target
    summary = result.summary()
    each = result.summaries()
    ends = [result.rows_of(task)[-1]["sim_seconds"] for task in result.tasks]
    assert [own["seconds_to_target"] for own in each] == ends
    assert summary["seconds_to_target"] == max(ends) == result.rows[-1]["sim_seconds"]
    assert summary["target"] == "of each task"


def test_fedast_nobuffer_keeps_buffers_of_one_after_a_reallocation(tmp_path):
    tasks = ["digits,requests=8,step_seconds=0.1,rounds=5,name=a", "digits,requests=8,name=b"]
    settings = TWO | {"task": tasks, "rounds": 40, "step_seconds": 0.2, "eval_every": 5}
    del settings["eval_seconds"]
    result = wirelessfl.run(Config.from_flags("fedast-nobuffer", **settings, out=tmp_path / "run"))
    last = result.rows_of("b")[-1]
    assert last["allocation"] == 16
    assert {row["buffer"] for row in result.rows} == {1}


def test_rows_of_option_s_count_all_requests_as_active(tmp_path):
    """Rows are written after the request that replaces an update; row 0, after the first ones."""
    settings = flags(tmp_path, "run", dataset="digits", rounds=20, requests=5, buffer=2)
    result = wirelessfl.run(Config.from_flags("fedast", **settings))
    assert {row["requests"] for row in result.rows[:-1]} == {5}


def test_a_task_that_diverges_does_not_stop_the_others(tmp_path):
    tasks = [TWO["task"][0] + ",lr=1e6", TWO["task"][1]]
    own = {"option": "D", "floor": 2, "period": 0.3, "spread_updates": 3}
    notes = []
    config = Config.from_flags("fedast", **TWO | own | {"task": tasks}, out=tmp_path / "d")
    result = wirelessfl.run(config, on_note=notes.append)
    assert result.rows_of("digits")[-1]["loss"] is None
    assert result.rows_of("slow")[-1]["loss"] < 2.4
    assert sum("training of digits has diverged" in note for note in notes) == 1
    tasks = [
        t.replace("requests=7,buffer=2,", "").replace("requests=5,buffer=2,", "") for t in tasks
    ]
    config = Config.from_flags("sync-ucb-st", **TWO | {"task": tasks}, out=tmp_path / "u", first=2)
    result = wirelessfl.run(config)
    assert result.rows_of("digits")[-1]["loss"] is None
    assert result.rows_of("slow")[-1]["loss"] < 2.4


def test_updates_trained_ahead_are_bounded(tmp_path, monkeypatch):
    """With a memory limit of 1 byte, at most one chunk is stored besides the needed updates."""
    monkeypatch.setattr(deferred_training, "RESULT_BYTES", 1)
    settings = flags(tmp_path, "run", dataset="digits", requests=24, buffer=3, chunk=4, clients=30)
    engine = Engine(build(Config.from_flags("fedast", **settings, rounds=20)))
    updates, ready = engine.setup.learners[0].deferred, []
    train = updates._train

    def watched(numbers):
        train(numbers)
        ready.append(len(updates._ready))

    updates._train = watched
    Execution(engine, create(tmp_path / "run", engine.setup.config), None).run()
    assert len(ready) == 20
    assert max(ready) <= 4 + 3


def test_a_run_ends_at_max_seconds(tmp_path):
    settings = TWO | {"max_seconds": 4.5, "rounds": 10_000}
    result = wirelessfl.run(Config.from_flags("fedast", **settings, out=tmp_path / "run"))
    times = sorted({row["sim_seconds"] for row in result.rows})
    assert times == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0, 4.5])
    one = flags(tmp_path, "one", rounds=10_000, max_seconds=1.0, dataset="digits")
    rows = wirelessfl.run(Config.from_flags("fedavg", **one)).rows
    assert rows[-1]["sim_seconds"] == 1.0
    assert rows[-1]["round"] == rows[-2]["round"] > 5


def test_fedbuff_weighs_by_staleness():
    """The merged model is x + eta_g (1/K) sum (1 + s_i)^-a update_i."""
    rule = FedBuff(server_lr=0.5, staleness_exponent=1.0)
    updates = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    nodes = np.zeros(2, dtype=np.int64)
    received = Received({}, {"update": updates}, nodes, nodes, staleness=np.array([0, 3]))
    merged = rule.merge({"params": torch.zeros(1, 2)}, received)["params"]
    assert torch.allclose(merged, 0.5 * torch.tensor([[(1 + 0.75) / 2, (2 - 1.0) / 2]]))


def test_fedasync_mixes_by_staleness():
    rule = FedAsync(server_lr=0.8, staleness_exponent=0.5)
    nodes = np.zeros(1, dtype=np.int64)
    model = torch.tensor([[2.0, 4.0]])
    received = Received({}, {"model": model}, nodes, nodes, staleness=np.array([3]))
    merged = rule.merge({"params": torch.tensor([[1.0, 1.0]])}, received)["params"]
    assert torch.allclose(merged, torch.tensor([[1.4, 2.2]]))  # weight 0.8 / 2


def test_spread_is_algorithm_4():
    """The spread equals a hand calculation, is invariant to scale, and is None for zero updates."""
    updates = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 3.0]])
    # Mean (2, 1), squared 5; squares of the deviations 2, 2, 4.
    expected = (0.2 * 0.5 * 7 * (8 / 3) / 5) ** 0.5
    assert spread(updates, 0.2, 0.5, 7) == pytest.approx(expected)
    assert spread(10.0 * updates, 0.2, 0.5, 7) == pytest.approx(expected)
    assert spread(torch.zeros(3, 2), 0.2, 0.5, 7) is None


def test_weight_decay_is_part_of_the_gradient(tmp_path, toy):
    """In every executor, weight decay lambda adds lambda x to the gradient."""
    from wirelessfl.algorithms.sync_st import TaskRule

    class Written(TaskRule):
        name = "written"
        shrink = 1.0

        def gradient(self, grads, params, cohort):
            return grads + 0.3 * params

    ends = {}
    for executor in ("loop", "vmap", "stacked"):
        for replay in ("off", "on") if executor == "vmap" else (None,):
            for chunk in (1, 4):
                settings = flags(
                    tmp_path,
                    f"{executor}{replay}{chunk}",
                    rounds=2,
                    executor=executor,
                    replay=replay,
                    chunk=chunk,
                    first=0,
                    weight_decay=0.3,
                )
                found = wirelessfl.run(Config.from_flags("sync-st", **settings), data=toy)
                ends[executor, replay, chunk] = found.params
    settings = flags(tmp_path, "sgd", rounds=2, executor="loop", first=0)
    setup = build(Config.from_flags("sync-st", **settings), data=toy)
    learner = setup.learners[0]
    learner.server.rule = Written(lr=0.1)
    for _ in range(2):
        learner.train_round(np.arange(6))
    expected = setup.models[0].objective.spec.views(learner.server.cloud["params"])
    for key, found in ends.items():
        for name, value in found.items():
            assert torch.allclose(value, expected[name], atol=1e-5), key


@pytest.mark.thorough
def test_clients_of_many_tasks_take_little_memory(tmp_path):
    """Four tasks with 20,000 clients share data; only clients with requests have step counts."""
    tasks = [f"digits,name=t{i},step_seconds=0.1" for i in range(4)]
    settings = TWO | {"task": tasks, "clients": 20_000, "max_seconds": 0.5}
    setup = build(Config.from_flags("fedast", **settings, out=tmp_path / "run"))
    assert len({id(model.data) for model in setup.models}) == 1
    assert len({id(model.client_samples) for model in setup.models}) == 1
    assert len(pickle.dumps(setup.models[0].client_samples)) < 4e6
    engine = Engine(setup)
    execution = Execution(engine, create(tmp_path / "run", setup.config), None)
    execution.run()
    rows = execution.directory.rows()
    assert len(rows) == 8
    assert json.dumps(engine.setup.handler.snapshot())
    assert len(engine.setup.handler.requests.queues) <= 384
    issued = engine.setup.handler.requests.issued
    assert 0 < sum(len(learner.steps_done) for learner in setup.learners) <= issued < 20_000


def test_metrics_of_merges_are_in_the_rows(tmp_path, toy):
    """Rows contain the metrics of the last merge besides the common fields; NaN becomes None."""
    config = Config.from_flags(
        "fedast", clients=4, requests=4, buffer=2, rounds=1, local_steps=1, batch_size=8,
        delays="shifted-exponential", step_seconds=0.1, threads=1, workers=1, chunk=2,
        out=tmp_path / "run",
    )  # fmt: skip
    engine = Engine(build(config, data=toy, model=FCNN((12,), 4)))
    bare, _ = engine.row(Report(0, 0))
    engine.setup.learners[0].metrics = {"coverage": 2.0, "air_error": float("nan")}
    row, _ = engine.row(Report(0, 0))
    assert row == {**bare, "coverage": 2.0, "air_error": None}
