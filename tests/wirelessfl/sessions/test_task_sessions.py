"""Tasks in sessions: one task equals one model, and each task has a memory of its own."""

import itertools

import pytest
import torch

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.sessions.task_flags import FLAGS, TASKS
from wirelessfl.assignment import RandomAssignment
from wirelessfl.observers import EndOfTask, Observer
from wirelessfl.runs.engine import Engine
from wirelessfl.schedules import Clock, TaskSessionsScheduler
from wirelessfl.schedules.events import (
    Arrived,
    Begin,
    Cancel,
    Close,
    Deadline,
    Give,
    Merge,
    Open,
    Present,
    Reached,
    Report,
    Save,
    Started,
    Stop,
)
from wirelessfl.schedules.loop import simulate
from wirelessfl.setup import build
from wirelessfl.tasks.model import Untrained
from wirelessfl.tasks.task_round import TaskRoundSettings
from wirelessfl.tasks.task_rounds import TaskRounds
from wirelessfl.warm_starts.distances import softmax_weights, two_norm

STAYS = """client,join,leave
0,0,
1,0,1.5
2,0,5
3,1,4.5
4,0,2.25
5,3,
6,2.5,7
7,0,2
1,6,
"""
"""Clients 1, 4, 3 and 6 leave during or at the end of a round."""
ONE_CLIENT = "client,join,leave\n0,0,\n1,0,3\n2,0,3\n"


@pytest.fixture
def stays(tmp_path):
    """Factory of settings for a recorded presence, in rounds."""

    def make(text=STAYS):
        path = tmp_path / "stays.csv"
        path.write_text(text)
        return {"presence": "trace", "trace": path, "presence_unit": "rounds"}

    return make


CASES = {
    "previous": ("fedavg", {}),
    "fresh": ("fedavg", {"warm_start": "fresh", "tested_labels": "all"}),
    "average": ("fedprox", {"warm_start": "average"}),
    "proposed": ("fedavg", {"warm_start": "proposed", "trial_rounds": 2}),
    "teacher": ("fedavg", {"warm_start": "continuous", "validation_fraction": 0.2}),
    "client states": ("scaffold", {"warm_start": "random-pilot"}),
    "server moments": ("fedadam", {"warm_start": "proposed", "lr_schedule": "poly"}),
    "submodels": ("heterofl", {"capacities": (0.5, 1.0), "warm_start": "proposed"}),
    "compression": ("fedavg", {"compression": "top-k", "warm_start": "continuous"}),
    "over the air": ("fadamgc", {"uplink": "aircomp", "warm_start": "proposed"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("leaving", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_one_task_equals_one_model(config, toy, stays, case, leaving):
    """Parameters and rows agree to 1e-6, also if clients leave during rounds."""
    name, flags = CASES[case]
    flags = FLAGS | flags | (stays() if leaving else {})
    one = wirelessfl.run(config(name, **flags), data=toy)
    task = wirelessfl.run(config(name, **flags, schedule="simultaneous"), data=toy)
    assert one.rows[-1]["session"] == 3
    assert {row["session"] for row in one.rows} == {0, 1, 2, 3}
    if leaving:
        assert one.rows[-1]["dropped"] > 1
    differing = {"wall_seconds", "silent"}
    for row, other in zip(task.rows, one.rows, strict=True):
        assert row["task"] == "toy"
        assert other.keys() - differing - row.keys() == set()
        for field in other.keys() - differing:
            if isinstance(other[field], float):
                assert row[field] == pytest.approx(other[field], rel=1e-6, abs=1e-9), field
            else:
                assert row[field] == other[field], field
    for key, value in one.params.items():
        torch.testing.assert_close(task.params[key], value, rtol=0, atol=1e-6)


@pytest.fixture
def watched(config):
    """Factory that runs two tasks to the end, and calls ``see(setup, report)`` at each row."""

    def make(see=lambda setup, report: None, algorithm="fedavg", **flags):
        setup = build(config(algorithm, **FLAGS | TASKS | flags))
        engine, rows = Engine(setup), []

        def report(decision):
            see(setup, decision)
            rows.append(engine.row(decision)[0])

        engine.start()
        simulate(setup.schedule, setup.handler, setup.clock, report, lambda: None)
        return setup, rows

    return make


def test_each_task_starts_from_the_mean_of_its_own_past_models(watched):
    """With warm start average and one pilot session, computed from the last models by hand."""
    last, starts = {}, {}

    def see(setup, report):
        key, params = (report.task, report.status["session"]), setup.learners[report.task].server
        last[key] = params.cloud["params"].clone()
        starts.setdefault(key, last[key])

    setup, rows = watched(see, warm_start="average", rounds=2)
    for task in (0, 1):
        torch.testing.assert_close(starts[task, 1], last[task, 0])
        mean = (last[task, 1] + last[task, 2]) / 2
        torch.testing.assert_close(starts[task, 3], mean)
        assert not torch.equal(starts[task, 3], last[task, 2])
        assert setup.handler.models[task].past.sessions == (1, 2)
    assert not torch.equal(starts[0, 3], starts[1, 3])
    assert {row["stored_bytes"] for row in rows if row["session"] == 3} == {
        2 * 4 * setup.models[0].objective.spec.size
    }


def test_each_task_has_trial_rounds_and_weights_of_its_own(watched):
    """Weights of warm start proposed are those of the task's own gradients."""
    gradients = {}

    def see(setup, report):
        model, session = setup.handler.models[report.task], report.status["session"]
        gradients[report.task, session] = model.gradient

    setup, rows = watched(see, warm_start="proposed", trial_rounds=2, rounds=2)
    spec = setup.models[0].objective.spec
    for row in rows:
        task, session = ("one", "two").index(row["task"]), row["session"]
        assert (gradients[task, session] is None) == (session == 0)
        if session == 3:
            past = [gradients[task, other] for other in (1, 2)]
            apart = [two_norm(gradients[task, 3], g, spec) for g in past]
            weights = softmax_weights(apart, 10.0)
            assert row["warm_weights"] == {
                "1": pytest.approx(weights[0], abs=2e-6), "2": pytest.approx(weights[1], abs=2e-6)
            }  # fmt: skip
    assert not torch.equal(gradients[0, 3], gradients[1, 3])
    last = rows[-1]
    assert last["extra_rounds"] == 3 * 2
    assert last["extra_uploads"] == 6 * 4  # half of the clients in each session
    assert last["extra_broadcasts"] == 6 * 2
    vector = 4 * spec.size / 2**20
    assert last["extra_mib"] == pytest.approx(6 * 4 * 2 * vector / 8)
    assert last["uplink_mib"] == pytest.approx((6 + 4 * 2) * 4 * vector / 8)
    assert last["updates"] == (6 + 4 * 2) * 4


def test_each_task_has_a_teacher_of_its_own(watched):
    """It is the task's last model; the broadcasts take one downlink model per task."""
    last = {}

    def see(setup, report):
        task, session = report.task, report.status["session"]
        teacher = setup.learners[task].teacher
        if report.status["session_round"] == 0:
            assert (teacher is None) == (session == 0)
            assert teacher is None or torch.equal(teacher, last[task])
        last[task] = setup.learners[task].server.cloud["params"].clone()

    _, rows = watched(see, warm_start="continuous", downlink_mbps=0.2)
    setup, plain = watched(downlink_mbps=0.2)
    size = setup.models[0].objective.spec.size
    extra = rows[-1]["extra_seconds"]
    assert extra == pytest.approx(3 * 2 * 32 * size / 2e5)
    assert rows[-1]["sim_seconds"] == pytest.approx(plain[-1]["sim_seconds"] + extra)
    more = rows[-1]["downlink_mib"] - plain[-1]["downlink_mib"]
    assert more == pytest.approx(rows[-1]["extra_mib"])
    assert more == pytest.approx(3 * 2 * 4 * size / 2**20 / 2)  # to half of the clients
    assert rows[-1]["extra_broadcasts"] == 6
    assert rows[-1]["loss"] != plain[-1]["loss"]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("assignment", ["random", "bayes", "bandit"])
def test_only_present_clients_train_and_each_one_task(watched, stays, monkeypatch, assignment):
    trained = []
    plan = TaskRounds.plan

    def noted(self, number, pool=None):
        found = plan(self, number, pool)
        trained.append((number, set(pool), [set(c) for c in found.chosen]))
        return found

    monkeypatch.setattr(TaskRounds, "plan", noted)
    watched(**stays(), assignment=assignment)
    assert [number for number, _, _ in trained] == [*range(12)]
    pools = [pool for _, pool, _ in trained]
    assert pools[:3] == [{0, 1, 2, 4, 7}, {0, 1, 2, 4, 7}, {0, 2, 4}]
    assert pools[3:6] == [{0, 2, 3, 5, 6}, {0, 2, 3, 5, 6}, {0, 5, 6}]
    for _, pool, (one, two) in trained:
        assert one | two == pool
        assert not one & two


def test_updates_of_clients_that_leave_are_dropped_at_no_other_change(watched, stays):
    """The round costs as much as if the client had stayed until its end; its update is missing."""
    _, left = watched(**stays("client,join,leave\n" + "".join(f"{c},0,\n" for c in range(3))
                              + "3,0,0.5\n"), sessions=1)  # fmt: skip
    _, stayed = watched(**stays("client,join,leave\n" + "".join(f"{c},0,\n" for c in range(3))
                                + "3,0,1\n"), sessions=1)  # fmt: skip
    changed = set()
    for row, other in zip(left, stayed, strict=True):
        assert other["dropped"] == 0
        assert row["dropped"] == (row["round"] > 0)
        for field in ("sim_seconds", "uplink_mib", "downlink_mib", "joules", "updates", "requests"):
            assert row[field] == other[field], field
        if row["round"] == 1 and row["loss"] != other["loss"]:
            changed.add(row["task"])
    assert len(changed) == 1  # the task that client 3 trained


def test_tasks_take_turns_if_there_are_fewer_clients(watched, stays):
    """In the second session, one client is present."""
    _, rows = watched(**stays(ONE_CLIENT), sessions=2, rounds=4, tested_labels="all")
    alone = [row for row in rows if row["session"] == 1]
    assert {row["present"] for row in alone} == {1}
    changes = {
        task: [
            row["session_round"]
            for before, row in itertools.pairwise(of_task)
            if row["loss"] != before["loss"]
        ]
        for task in ("one", "two")
        for of_task in [[row for row in alone if row["task"] == task]]
    }
    assert changes == {"one": [1, 3], "two": [2, 4]}


def test_turns_and_shares_by_hand():
    """Numbers of clients of three tasks, of which the first has half of the clients."""
    rounds = TaskRounds(
        [Untrained() for _ in range(3)], Clock(), None, RandomAssignment(Stream(1)),
        TaskRoundSettings(12, 6, (6, 3, 3)), Stream(2),
    )  # fmt: skip
    assert rounds.allocation(0, 12) == {0: 3, 1: 2, 2: 1}
    assert rounds.allocation(0, 8) == {0: 2, 1: 1, 2: 1}  # half of the clients are available
    assert rounds.allocation(0, 1) == {0: 1}
    assert [[*rounds.allocation(n, 4)] for n in range(4)] == [[0, 1], [0, 2], [1, 2], [0, 1]]
    rounds.running.remove(1)
    assert [[*rounds.allocation(n, 2)] for n in range(3)] == [[0], [2], [0]]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("sync-ucb-st", {"first": 2, "drop_out": 0.3, "delays": "shifted-exponential"}),
        ("scaffold", {"availability": 0.7, "cutoff_seconds": 0.05, "uplink": "tdma"}),
        ("fadamgc", {"uplink": "aircomp", "drop_out": 0.2}),
    ],
)
def test_trial_rounds_do_not_change_the_training(config, tmp_path, monkeypatch, algorithm, flags):
    """Runs with and without trial rounds have the same models and durations of training rounds."""
    (tmp_path / "tried_tasks.py").write_text(
        "from wirelessfl.warm_starts.previous import Previous\n"
        "class Tried(Previous):\n"
        "    def trials(self, session):\n"
        "        return session % 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    flags = FLAGS | TASKS | {"step_seconds": 0.01} | flags
    plain = wirelessfl.run(config(algorithm, **flags))
    tried = wirelessfl.run(config(algorithm, **flags, warm_start="tried_tasks:Tried"))
    assert tried.rows[-1]["extra_rounds"] == 0 + 1 + 2 + 0
    for key in ("accuracy", "loss", "round", "session", "requests"):
        assert [row[key] for row in tried.rows] == [row[key] for row in plain.rows], key
    for row, other in zip(tried.rows, plain.rows, strict=True):
        assert row["sim_seconds"] - row["extra_seconds"] == pytest.approx(other["sim_seconds"])
    for key, value in plain.params.items():
        assert torch.equal(value, tried.params[key])


def test_tasks_are_tested_on_the_labels_of_the_present_clients(watched):
    """Groups with digits 0 to 4 and 5 to 9 alternate."""
    sizes = []

    def see(setup, report):
        evaluation = setup.learners[report.task].evaluation
        samples = evaluation.tested.samples("test", evaluation.test)
        sizes.append((report.status["session"], *samples.labels.unique().tolist()))

    watched(see, rounds=1, sessions=2)
    assert set(sizes) == {(0, *range(5)), (1, *range(5, 10))}


def test_schedule_by_hand():
    """Two tasks in two sessions of one round; the first task ends in the first session."""
    schedule = TaskSessionsScheduler(2, 2, 1, lambda session: 0)
    assert schedule.decide(Started()) == [Open(0)]
    status = {"session": 0, "session_round": 0, "version": 0}
    both = [Report(0, 0, status), Report(0, 1, status)]
    assert schedule.decide(Present(3)) == [Begin(0), *both, Save(), Give(0)]
    assert schedule.decide(Reached(0)) == [Cancel(0)]
    assert schedule.decide(Reached(0)) == []
    assert schedule.decide(Arrived(0)) == [Merge(0)]
    status = {"session": 0, "session_round": 1, "version": 1}
    assert schedule.decide(Present(3)) == [Report(1, 1, status), Close(0), Save(), Open(1)]
    again = TaskSessionsScheduler(2, 2, 1, lambda session: 0)
    again.restore(schedule.snapshot())
    assert again.decide(Started()) == [Open(1)]
    assert again.decide(Present(1))[0] == Begin(1)
    assert [type(d) for d in again.decide(Deadline())] == [Report, Stop]
    assert again.decide(Reached(1)) == [Cancel(1), Stop()]


class EndsOne(Observer):
    """Ends task one at its first row after ``rounds`` rounds."""

    def __init__(self, rounds):
        self.rounds = rounds

    def row(self, run, row):
        ends = row["task"] == "one" and row["round"] >= self.rounds
        return EndOfTask("has had enough") if ends else None


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_task_that_an_observer_ends_trains_no_more(config, rounds):
    """Its clients go to the other task, also in trial rounds of later sessions."""
    flags = FLAGS | TASKS | {"warm_start": "proposed"}
    result = wirelessfl.run(config("fedavg", **flags), observers=[EndsOne(rounds)])
    assert result.rows_of("one")[-1]["round"] == rounds
    last = result.rows_of("two")[-1]
    assert (last["round"], last["session"], last["requests"]) == (12, 3, 4)
    assert last["extra_broadcasts"] == 3
    assert last["extra_uploads"] == 3 * 4
    assert result.ended.endswith("one: has had enough")


def test_targets_end_no_task(config):
    """In sessions the tests change, so a target is only reported."""
    result = wirelessfl.run(config("fedavg", **FLAGS | TASKS, target=0.2))
    assert result.rows[-1]["round"] == 12
    assert all(summary["rounds_to_target"] < 12 for summary in result.summaries())
    assert all(s["transition_accuracy"] is not None for s in result.summaries())


def test_transitions_are_those_of_one_task(config):
    result = wirelessfl.run(config("fedavg", **FLAGS | TASKS, tested_labels="all"))
    with pytest.raises(ValueError, match="several tasks: give task, one or two"):
        result.transitions()
    for task in ("one", "two"):
        rows = [row for row in result.rows if row["task"] == task]
        found = result.transitions(task=task)
        assert [change.session for change in found] == [1, 2, 3]
        for change in found:
            ended = [row for row in rows if row["session"] == change.session - 1][-1]
            assert change.before == ended["accuracy"]
