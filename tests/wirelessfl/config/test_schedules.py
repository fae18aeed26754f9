"""Schedules: defaults implied by algorithms, settings and tables; conflicts."""

import tomllib
from dataclasses import dataclass, replace

import pytest

import wirelessfl
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.config.choices import PRESETS
from wirelessfl.config.named import GivenNetwork, GivenSection
from wirelessfl.engine.assignment.bayes import Bayes
from wirelessfl.engine.assignment.built_in import Bandit, Random
from wirelessfl.engine.schedules import Buffered, Rounds, Simultaneous

TIMES = {"dataset": "digits", "step_seconds": 0.1}
SMALL = TIMES | {"clients": 6, "rounds": 2}


@pytest.mark.parametrize(
    ("name", "schedule", "assignment"),
    [
        ("fedast", Buffered(requests=96, buffer=3), None),
        ("fedast-nobuffer", Buffered(requests=96, buffer=1, fixed_buffer=True), None),
        ("fedasync", Buffered(requests=96, buffer=1, fixed_buffer=True), None),
        ("fedbuff", Buffered(requests=96, buffer=10), None),
        ("sync-st", Simultaneous(first=30), Random()),
        ("sync-bayes-st", Simultaneous(first=30), Bayes()),
        ("sync-ucb-st", Simultaneous(first=30), Bandit()),
        ("fadamgc", Rounds(), None),
    ],
)
def test_algorithm_names_imply_schedule_and_assignment(name, schedule, assignment):
    choices = Config.from_flags(name, **TIMES)
    assert (choices.schedule, choices.assignment) == (schedule, assignment)
    assert choices.algorithm.name == name


def test_every_preset_belongs_to_an_algorithm():
    assert set(PRESETS) < set(algorithm_classes())


def test_given_settings_override_implied_defaults():
    """A given setting replaces one implied default; a given schedule replaces all of them."""
    choices = Config.from_flags("fedbuff", **TIMES, requests=5)
    assert choices.schedule == Buffered(requests=5, buffer=10)
    choices = Config.of({"algorithm": "fedbuff", "schedule": {"buffer": 4}})
    assert choices.schedule == Buffered(buffer=4)
    assert Config.from_flags("fedbuff", schedule="rounds").schedule == Rounds()
    choices = Config.from_flags("fedbuff", **TIMES, schedule="simultaneous")
    assert (choices.schedule, choices.assignment) == (Simultaneous(), Random())
    choices = Config.from_flags("sync-bayes-st", **TIMES, assignment="bandit", discount=0.5)
    assert choices.assignment == Bandit(discount=0.5)
    choices = Config.from_flags("fadamgc", schedule="buffered", requests=4)
    assert choices.schedule == Buffered(requests=4)


def test_flags_tables_and_toml_give_the_same_configuration(tmp_path):
    flags = Config.from_flags("scaffold", **TIMES, schedule="buffered", requests=4, buffer=2)
    tables = Config.of(
        {
            "algorithm": "scaffold",
            "schedule": {"name": "buffered", "requests": 4, "buffer": 2},
            "dataset": "digits",
            "network": {"step_seconds": 0.1},
        }
    )
    assert flags == tables
    file = tmp_path / "run.toml"
    file.write_text(flags.to_toml(), encoding="utf-8")
    assert Config.from_toml(file) == flags
    cells = Config.from_flags("hfedavg", schedule="buffered", buffer=2)
    file.write_text(cells.to_toml(), encoding="utf-8")
    assert Config.from_toml(file) == cells
    assert cells.tables["schedule"] == {"name": "buffered", "buffer": 2}


def test_each_task_may_have_its_own_algorithm():
    config = Config.from_flags(
        "fedast",
        task=["digits,name=a", "digits,algorithm=scaffold,lr=0.3,requests=5,name=b"],
        step_seconds=0.1,
        server_lr=0.5,
    )
    first, second = config.tasks.values()
    assert (first.algorithm.name, first.algorithm.server_lr) == ("fedast", 0.5)
    assert (second.algorithm.name, second.algorithm.lr) == ("scaffold", 0.3)
    assert second.algorithm.server_lr == 1.0
    assert (first.schedule.requests, second.schedule.requests) == (96, 5)
    assert config.task[1]["algorithm"] == "scaffold"
    for tables in (config.given_tables(), tomllib.loads(config.to_toml())):
        again = Config.of(tables)
        assert again.tasks == config.tasks


def test_settings_are_accepted_under_schedules_that_use_them():
    for algorithm, flags in (
        ("fedbuff", {"schedule": "buffered", "staleness_exponent": 2.0}),
        ("fadamgc", {"schedule": "rounds", "uplink": "fixed", "wait": "slowest"}),
        ("fadamgc", {"schedule": "rounds", "client_states": "disk"}),
        ("fadamgc", {"schedule": "buffered", "client_states": "disk"}),
        ("hfedavg", {"schedule": "buffered", "buffer": 2, "eval_seconds": 0.5}),
        ("fedbuff", {"schedule": "rounds"}),
    ):
        Config.from_flags(algorithm, **(SMALL | flags))


def test_a_copy_with_another_algorithm_has_the_implied_schedule():
    for config in (Config.from_flags("fedavg"), Config.of({"algorithm": "fedavg"})):
        copy = config.changed(algorithm="sync-bayes-st")
        assert copy == Config.from_flags("sync-bayes-st")
        assert copy.changed(algorithm="fedavg") == config
    scaffold = Config.from_flags("fedast", requests=5).changed(algorithm="scaffold")
    assert scaffold.schedule == Buffered(requests=5)


def test_a_table_without_a_name_belongs_to_the_implied_choice():
    config = Config.of({"algorithm": "sync-ucb-st", "assignment": {"discount": 0.3}})
    assert config.tables["assignment"] == {"name": "bandit", "discount": 0.3, "exploration": 0.1}
    config = Config.of({"algorithm": "fedbuff", "schedule": {"requests": 7}})
    assert (config.schedule.requests, config.schedule.buffer) == (7, 10)


def test_a_setting_in_the_wrong_table_is_refused_with_its_owner():
    with pytest.raises(ConfigError) as caught:
        Config.of({"algorithm": {"name": "fedast", "requests": 4}})
    assert str(caught.value) == (
        "unknown setting 'requests' of algorithm 'fedast', which has lr, server_lr, weight_decay. "
        "It is a setting of schedule buffered."
    )


@dataclass(frozen=True)
class Halved(Rounds):
    """A schedule with half of the requested rounds."""

    name = "halved"

    def scheduler(self, tasks, scope):
        return super().scheduler(tasks, replace(scope, rounds=[scope.rounds[0] // 2]))


def test_a_users_schedule_is_used(tmp_path):
    mine = {"dataset": "digits", "schedule": f"{__name__}:Halved", "rounds": 6, "clients": 4}
    result = wirelessfl.run(Config.from_flags("fedavg", **mine, out=tmp_path / "run"))
    assert [row["round"] for row in result.rows] == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match=r'sessions=2 conflicts with schedule ".*Halved"'):
        Config.from_flags("fedavg", **mine, sessions=2)


def test_a_list_of_one_entry_needs_no_comma_in_a_task():
    task = "digits,algorithm=heterofl,capacities=0.5"
    config = Config.from_flags("fedavg", schedule="buffered", task=[task, "digits"])
    narrow, whole = (task.algorithm for task in config.tasks.values())
    assert narrow.capacities == (0.5,)
    assert whole.name == "fedavg"
    config = Config.from_flags("heterofl", schedule="buffered", task=["digits,capacities=0.5"])
    (narrow,) = (task.algorithm for task in config.tasks.values())
    assert narrow.capacities == (0.5,)


@pytest.mark.parametrize(
    ("algorithm", "flags", "merges"),
    [
        ("fedavg", {}, 30),
        ("sync-st", {}, 30),
        ("fedast", {}, 600),
        ("fedast", {"clients": 7}, 70),
        ("fedbuff", {}, 180),
        ("fedbuff", {"clients": 7, "buffer": 4}, 53),
        ("fedasync", {}, 1800),
        ("fedasync", {"rounds": 30}, 30),
        ("hist", {"schedule": "buffered", "buffer": 2, "cells": 4}, 60),
    ],
)
def test_default_merges_use_the_updates_of_30_rounds(algorithm, flags, merges):
    """The default number is 30 n / b, or 30 N / B with asynchronous cells, rounded up."""
    config = Config.from_flags(algorithm, **flags)
    assert config.training.rounds == merges
    assert Config.of(tomllib.loads(config.to_toml())) == config


def test_default_merges_follow_the_schedule_and_a_given_network():
    config = Config.from_flags("fedast")
    assert config.changed(buffer=10).training.rounds == 180
    marks = GivenSection(network=GivenNetwork(cells=1, clients=9))
    assert config.changed(given=marks).training.rounds == 90


def test_a_latency_model_of_ones_own_is_named(tmp_path):
    """It draws one time, like the built-in model from which it derives."""
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from wirelessfl.extend import ShiftedExponentialDelays\n\n\n"
        "@dataclass(frozen=True)\n"
        "class Own(ShiftedExponentialDelays):\n"
        '    """Own."""\n'
    )
    flags = {"schedule": "buffered", "uplink": "aircomp", "delays": f"{file}:Own"}
    with pytest.raises(ConfigError, match=r'^delays=".*own.py:Own" conflicts with uplink "airc'):
        Config.from_flags("fedavg", **flags)
