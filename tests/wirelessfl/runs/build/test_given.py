"""Networks, models and data sets given as objects: replaced settings and stored files."""

import copy
import pickle
import tomllib
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import wirelessfl
from channels import Network
from tests.wirelessfl.small import model
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.config.sections import NetworkSection
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.timeline import timeline

BESIDE = {
    "coherence": "edge-round",
    "downlink_mbps": 5.0,
    "backhaul_mbps": 7.0,
}
BESIDE_TASKS = {
    "downlink_mbps": 5.0,
    "busy_clients": 3,
    "drop_out": 0.2,
}
BESIDE_ROUNDS_OF_TASKS = {"availability": 1.0}
OF_CELLS = {
    "cells": 1,
    "slowdown": 1.0,
}
LINKS = {
    "fading": "rician",
    "rician_k_db": 6.0,
    "layout": "disc",
    "radius_m": 300.0,
    "path_loss": "uma",
    "carrier_ghz": 2.0,
}
REPLACED = {
    **OF_CELLS,
    "clients": 60,
    "bandwidth_hz": 9e6,
    "antennas": 10,
    "antenna_correlation": 0.0,
    "snr_db": 20.0,
    "cpu_hz": (1e9, 2e9),
    "devices": "mixed",
    "cycles_per_step": 1e6,
    "cycles_per_flop": 2.0,
    "step_seconds": 0.1,
    "transmit_power_w": 0.1,
    "transmit_power_dbm": 23.0,
    "noise_figure_db": 5.0,
    "noise_dbm_per_hz": -174.0,
    "interference_watts": 1e-13,
    "channel": "channels.npz",
    "switched_capacitance": 1e-28,
    "path_gain_db": (-3.0, 3.0),
    "network": f"{__name__}:named",
}
"""A value of each setting of [network] that a network replaces; the default if there is one."""
MOVING = (
    *("doppler_hz", "doppler_model", "block_seconds", "pilot_symbols", "handover"),
    *("delay_spread_ns", "delay_profile", "subcarriers"),
)
"""Those that need one another, and rounds."""


def named():
    return Network(np.zeros(60, dtype=int), cpu_hz=1e9, gain_db=-100.0)


@pytest.fixture
def star(network_of):
    return network_of(np.zeros(7, dtype=int))


def elsewhere(file, out):
    """The configuration in a file, with a different output folder."""
    config = Config.from_toml(file)
    return config.with_run({"out": out})


@pytest.mark.parametrize("algorithm", ["fedavg", "sync-st", "fedast"])
def test_the_given_network_determines_the_cost_of_a_step(config, toy, algorithm):
    """An update takes H V_0 / F + 2 32 P / rate seconds and H V_0 kappa F^2 joules, by hand."""
    network = Network.from_snr(
        np.zeros(5, dtype=int), cpu_hz=2e9, snr_db=20, cycles_per_step=4e8,
        switched_capacitance=3e-28,
    )  # fmt: skip
    own = {"requests": 1, "buffer": 1, "eval_every": 1} if algorithm == "fedast" else {}
    settings = config(algorithm, network=True, uplink="fixed", rate_mbps=8, rounds=1, **own)
    result = wirelessfl.run(settings, data=toy, network=network)
    size = sum(value.numel() for value in result.params.values())
    row = result.rows[-1]
    assert row["sim_seconds"] == pytest.approx(3 * 4e8 / 2e9 + 2 * 32 * size / 8e6)
    trainings = 1 if algorithm == "fedast" else 5
    assert row["joules"] == pytest.approx(trainings / 5 * 3 * 4e8 * 3e-28 * 4e18)


def test_task_tables_override_the_cost_of_a_step(tmp_path, toy):
    """A step takes its task's cycles divided by the CPU speed, or its task's seconds."""
    cycles, seconds = "digits,name=b,cycles_per_step=1e8", "digits,name=c,step_seconds=.3"
    flags = {"clients": 4, "local_steps": 5, "threads": 1, "chunk": 2}
    for shared, tables, expected in (
        ({}, [cycles, seconds], lambda cpu_hz: [1e6 / cpu_hz, 1e8 / cpu_hz, 0.3]),
        ({"cycles_per_step": 2e7}, [cycles], lambda cpu_hz: [2e7 / cpu_hz, 1e8 / cpu_hz]),
        ({"step_seconds": 0.2}, [seconds], lambda cpu_hz: [0.2, 0.3]),
    ):
        tasks = ["digits,name=a", *tables]
        setup = build(Config.from_flags("fedast", **flags, **shared, task=tasks))
        network = setup.network
        delays = setup.handler.requests.delays
        for client, cpu_hz in enumerate(network.cpu_hz):
            found = [delays.seconds(task, client, 0) for task in range(len(tasks))]
            assert found == pytest.approx([5 * step for step in expected(cpu_hz)])
    with pytest.raises(ConfigError, match=r"cycles_per_step=1e8 conflicts with step_seconds=0\.2"):
        Config.from_flags("fedast", **flags, step_seconds=0.2, task=["digits", cycles])


def test_every_network_setting_is_listed_as_replaced_or_kept():
    names = {*REPLACED, *MOVING, *BESIDE, *BESIDE_TASKS, *BESIDE_ROUNDS_OF_TASKS}
    defaults = vars(NetworkSection())
    assert names == defaults.keys()
    for name, default in defaults.items():
        if name in REPLACED and default is not None:
            assert REPLACED[name] == default


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", ["rounds", "sessions", "tasks"])
@pytest.mark.parametrize("key", [*REPLACED, *LINKS])
def test_settings_that_a_network_replaces_are_refused_before_any_work(
    config, toy, star, regime, key
):
    of_cells = key in OF_CELLS
    # Interference has no effect on requests, a network or not.
    tasks = ("fedast", {})
    if key == "interference_watts":
        tasks = ("sync-st", {"uplink": "aircomp"})
    algorithm, flags = {
        "rounds": ("hfedavg" if of_cells else "fedavg", {}),
        "sessions": ("hfedavg" if of_cells else "fedavg", {"sessions": 2}),
        "tasks": ("hfedavg", {"schedule": "buffered", "buffer": 1}) if of_cells else tasks,
    }[regime]
    flags |= LINKS if key in LINKS else {key: REPLACED[key]}
    flags |= {"layout": "disc"} if key.startswith("noise") else {}
    settings = config(algorithm, **({"network": True} | flags))
    with pytest.raises(ConfigError, match=rf"network=\.\.\. .* replaces .*{key}=") as caught:
        wirelessfl.run(settings, data=toy, network=star)
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


def test_the_error_names_all_replaced_settings(toy, star, tmp_path):
    """The error names settings from tables, a Config or a copy of one, unless they are None."""
    said = r"replaces clients=4, antennas=10: leave these settings out, or the network"
    tables = {"algorithm": "fedavg", "network": {"clients": 4, "antennas": 10, "snr_db": None}}
    with pytest.raises(ConfigError, match=said):
        wirelessfl.run(tables, data=toy, network=star)
    with pytest.raises(ConfigError, match=said):
        wirelessfl.run(Config.of(Config.of(tables).given_tables()), network=star)
    plain = Config.from_flags("fedavg", snr_db=None)
    changed = plain.changed(clients=4)
    with pytest.raises(ConfigError, match=r"replaces clients=4: leave this setting out"):
        wirelessfl.run(changed, data=toy, network=star)
    flags = {"threads": 1, "rounds": 1, "chunk": 2, "out": tmp_path / "run"}
    made = wirelessfl.run(Config.from_flags("fedavg", snr_db=None, **flags), data=toy, network=star)
    assert made.config.network.clients == 7


def test_a_finished_run_has_its_network_as_given_settings(star, tmp_path):
    """A finished run's configuration counts all network settings as given.

    A network passed with this configuration is therefore refused.
    """
    made = wirelessfl.run(
        Config.from_flags("fedavg", rounds=1, local_steps=1, out=tmp_path / "run")
    )
    for config in (made.config, Config.from_toml(made.directory / "config.toml")):
        with pytest.raises(ConfigError, match=r"replaces .*clients=60, .*antennas=10"):
            wirelessfl.run(config.with_run({"out": tmp_path / "other"}), network=star)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update(lr=0.5),
        lambda table: table.__setitem__("lr", 0.5),
        lambda table: table.pop("lr"),
        lambda table: table.__ior__({"lr": 0.5}),
    ],
)
def test_settings_are_not_changed_in_place(change):
    """A resolved configuration is read-only, also the plain tables of its choices, and copies."""
    config = Config.from_flags("fedavg", rounds=1)
    for each in (config, copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        with pytest.raises(ConfigError, match="settings of 'fedavg' are read-only: make another"):
            change(each.tables["algorithm"])
        with pytest.raises(FrozenInstanceError):
            each.algorithm.lr = 0.5
        assert each.tables["algorithm"] == {
            "name": "fedavg",
            "lr": 0.01,
            "server_lr": 1.0,
            "momentum": 0.0,
        }
    assert config.tables["algorithm"] | {"lr": 0.5} == {**config.tables["algorithm"], "lr": 0.5}


@pytest.mark.parametrize("delays", ["wireless", "shifted-exponential"])
def test_step_costs_in_task_tables_are_replaced_too(star, delays, tmp_path):
    """A network replaces step costs of tasks, except with shifted-exponential delays.

    Then step_seconds is the delay's parameter beta.
    """
    shared = {"delays": delays, "rounds": 1, "threads": 1, "chunk": 2, "local_steps": 2}
    tables = ["digits,name=a,step_seconds=0.1", "digits,name=b,cycles_per_step=1e7"]
    shared_out = shared | {"out": tmp_path / "run"}
    if delays == "wireless":
        settings = Config.from_flags("fedast", **shared_out, task=tables)
        said = "replaces step_seconds=0.1 of task 'a', cycles_per_step=10000000.0 of task 'b':"
        with pytest.raises(ConfigError, match=said):
            wirelessfl.run(settings, network=star)
        assert not settings.run.out.exists()
    else:
        tables[1] = "mnist,name=b,cycles_per_step=1e7"
        said = f"task 'b': cycles_per_step=.* conflicts with delays \"{delays}\", which draws"
        with pytest.raises(ConfigError, match=said):
            Config.from_flags("fedast", **shared_out, task=tables)
        one = Config.from_flags("fedast", **shared, task=tables[:1], step_seconds=9.0)
        setup = build(one, network=star)
        assert setup.handler.requests.delays.min_seconds == [0.1]
        assert tomllib.loads(setup.config.to_toml())["network"]["step_seconds"] == 9.0


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("hfedavg", BESIDE),
        ("hfedavg", BESIDE | {"sessions": 2}),
        ("fedast", BESIDE_TASKS),
        ("sync-st", BESIDE_ROUNDS_OF_TASKS),
    ],
)
def test_settings_kept_beside_a_network_are_stored(config, toy, star, network_of, algorithm, flags):
    """The stored file has settings kept beside a network, not those that the network replaces."""
    network = network_of([0, 0, 0, 0, 1, 1, 1, 1]) if algorithm == "hfedavg" else star
    result = wirelessfl.run(config(algorithm, network=True, **flags), data=toy, network=network)
    stored = tomllib.loads((result.directory / "config.toml").read_text())
    beside = {key: value for key, value in flags.items() if key != "sessions"}
    assert stored["network"].keys() <= {*BESIDE, *BESIDE_TASKS, *BESIDE_ROUNDS_OF_TASKS}
    assert "fading" not in stored
    assert stored["network"].items() >= beside.items()
    assert stored["given"]["network"] == {"cells": network.cells, "clients": network.clients}
    assert Config.from_toml(result.directory / "config.toml") == result.config


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags", "said"),
    [
        ("fedavg", {"clients_per_round": 70}, "clients_per_round=70 conflicts with 60 clients"),
        ("fadamgc", {"tracking_clients": 70}, "tracking_clients=70 conflicts with 60"),
        ("fedast", {"busy_clients": 70}, "busy_clients=70 exceeds the 60 clients"),
        ("sync-st", {"availability": 0.9, "clients_per_round": 59}, "tasks need 59 clients"),
        (
            "fedavg",
            {
                "sessions": 2, "presence": "arrivals", "arrival_rate": 1.0, "mean_stay": 80.0,
                "initially_present": 70,
            },
            "initially_present is 70, and there are 60 clients",
        ),
    ],
)  # fmt: skip
def test_limits_are_checked_against_the_given_network(
    config, toy, network_of, algorithm, flags, said
):
    """Limits such as 70 clients are valid for a network of 80, but not of 65 or the default 60."""
    settings = config(algorithm, network=True, rounds=1, split="iid", **flags)
    with pytest.raises(ConfigError, match=said):
        wirelessfl.run(settings, data=toy)
    assert not settings.run.out.exists()
    with pytest.raises(ConfigError, match=said.replace("60", "65")):
        wirelessfl.run(settings, data=toy, network=network_of(np.zeros(65, dtype=int)))
    assert not settings.run.out.exists()
    large = network_of(np.zeros(80, dtype=int))
    assert wirelessfl.run(settings, data=toy, network=large).rows[-1]["round"] > 0
    if algorithm == "fedast":
        with pytest.raises(ConfigError, match=said):
            timeline(settings, 1.0)


def test_a_star_requires_one_cell(config, toy, network_of):
    for algorithm in ("fedavg", "fedast"):
        with pytest.raises(ConfigError, match="has one server, but the network has 2 cells"):
            wirelessfl.run(config(algorithm, network=True), data=toy, network=network_of([0, 0, 1]))


def test_stored_settings_cannot_be_used_without_the_given_objects(
    config, toy, star, same, tmp_path, capsys
):
    """The file lacks the settings that the network replaced, and is refused without a network."""
    network = Network.from_snr(
        np.zeros(7, dtype=int), cpu_hz=1e9, snr_db=15, bandwidth_hz=2e7, antennas=4
    )
    result = wirelessfl.run(config("fedavg", network=True), data=toy, network=network)
    file = result.directory / "config.toml"
    text = file.read_text()
    for key in REPLACED:
        assert f"\n{key} = " not in text.replace("[given.network]\ncells = 1\nclients = 7\n", "")
    assert "dataset" not in text
    assert tomllib.loads(text)["given"] == {
        "data": "toy",
        "network": {"cells": 1, "clients": 7},
    }
    assert Config.from_toml(file) == result.config
    assert result.config.dataset.name == result.summary()["dataset"] == "toy"

    settings = elsewhere(file, tmp_path / "again")
    for given, absent in (
        ({}, r"data=\.\.\., network=\.\.\."),
        ({"data": toy}, r"network=\.\.\."),
        ({"network": network}, r"data=\.\.\."),
    ):
        with pytest.raises(ConfigError, match=rf"belong to a run with {absent} given") as caught:
            wirelessfl.run(settings, **given)
        assert "\n" not in str(caught.value)
        with pytest.raises(ConfigError, match=rf"a run with {absent} given"):
            wirelessfl.run(file, **given)
    assert main(["run", "--config", str(file), "--out", str(tmp_path / "again")]) == 2
    error = capsys.readouterr().err
    assert "ConfigError: the settings belong to a run with data=..., network=... given" in error
    assert error.count("\n") == 1
    with pytest.raises(ConfigError, match=r"a run with data=\.\.\., network=\.\.\. given"):
        settings_hash(settings)
    assert not (tmp_path / "again").exists()

    same(wirelessfl.run(settings, data=toy, network=network), result)
    same(wirelessfl.resume(tmp_path / "again"), result)
    named = settings.changed(out=tmp_path / "third")
    other = wirelessfl.run(named, data=toy, network=star).rows
    assert other[-1]["sim_seconds"] != result.rows[-1]["sim_seconds"]


def test_a_network_of_another_size_is_refused(config, toy, star, tmp_path, network_of):
    result = wirelessfl.run(config("fedavg", network=True), data=toy, network=star)
    again = elsewhere(result.directory / "config.toml", tmp_path / "again")
    with pytest.raises(ConfigError, match=r"a network of \d+ clients in 1 cell,.* has 3 in"):
        wirelessfl.run(again, data=toy, network=network_of([0, 0, 0]))


def test_network_settings_added_to_the_file_are_refused(config, toy, star, tmp_path):
    result = wirelessfl.run(config("fedavg", network=True), data=toy, network=star)
    file = result.directory / "config.toml"
    edited = tmp_path / "edited.toml"
    text = file.read_text()
    assert "[network]" not in text
    edited.write_text(text + "[network]\nantennas = 4\n")
    said = r"antennas=4 conflicts with network=\.\.\., which is given .*: leave antennas out"
    with pytest.raises(ConfigError, match=said):
        wirelessfl.run(elsewhere(edited, tmp_path / "again"), data=toy, network=star)
    with pytest.raises(ConfigError, match="replaces antennas=4: leave this setting out"):
        wirelessfl.run(edited, data=toy, network=star)
    edited.write_text(text + "[fading]\nname = 'rician'\n")
    with pytest.raises(ConfigError, match="replaces fading=rician: leave this setting out"):
        wirelessfl.run(edited, data=toy, network=star)


def test_a_given_model_is_marked_and_its_settings_are_not_stored(config, toy, same, tmp_path):
    result = wirelessfl.run(
        config("hist", layers="layers.1,layers.4"), data=toy, model=model((9, 8))
    )
    file = result.directory / "config.toml"
    stored = tomllib.loads(file.read_text())
    assert stored["given"] == {"model": "FCNN", "data": "toy"}
    assert stored["model"] == {"layers": ["layers.1", "layers.4"]}
    assert Config.from_toml(file) == result.config
    settings = elsewhere(file, tmp_path / "again")
    with pytest.raises(ConfigError, match=r"belong to a run with model=\.\.\. given"):
        wirelessfl.run(settings, data=toy)
    same(wirelessfl.run(settings, data=toy, model=model((9, 8))), result)
    for flags, said in (
        ({"hidden": (5,)}, r"replaces hidden=\(5,\): leave this setting out, or the model"),
        ({"model": "fcnn"}, "replaces model=fcnn: leave this setting out, or the model"),
        ({"model": "mlp", "dropout": 0.1}, "replaces model=mlp, dropout=0.1: leave these"),
    ):
        settings = config("hfedavg", **flags)
        with pytest.raises(
            ConfigError, match=rf"model=\.\.\. is given to wirelessfl.run and {said}"
        ):
            wirelessfl.run(settings, data=toy, model=model((9, 8)))
        assert not settings.run.out.exists()


def test_a_given_data_set_conflicts_with_the_name_of_another(config, toy):
    settings = config("fedavg", dataset="digits")
    with pytest.raises(
        ConfigError, match=r"data=\.\.\. .* replaces dataset=digits: leave this sett"
    ):
        wirelessfl.run(settings, data=toy)
    assert not settings.run.out.exists()


def test_warm_starts_that_draw_models_refuse_a_given_model(config, toy):
    """The model is refused even if its class is named like a configurable model, fcnn."""
    own = type("fcnn", (FCNN,), {})((12,), 4, hidden=(9, 8))
    settings = config("fedavg", sessions=4, split="iid", warm_start="random-pilot")
    with pytest.raises(ConfigError, match="draws new models, but the model, fcnn, is a given"):
        wirelessfl.run(settings, data=toy, model=own)


def test_resume_needs_the_given_objects_even_without_a_checkpoint(config, toy, star):
    settings = build(config("fedavg", network=True), data=toy, network=star).config
    directory = wirelessfl.run(settings, data=toy, network=star).directory
    for name in ("checkpoint.safetensors", "rows.jsonl"):
        (directory / name).unlink()
    with pytest.raises(ConfigError, match=r"run with data=\.\.\. given .*: give data=\.\.\. again"):
        wirelessfl.resume(directory)
    with pytest.raises(ConfigError, match=r"resume got model=\.\.\., without which"):
        wirelessfl.resume(directory, model=model((9, 8)), data=toy, network=star)
    with pytest.raises(ConfigError, match=r"resume got network=\.\.\., without which"):
        wirelessfl.resume(directory, data=toy, network="my_module:network")


def test_the_name_of_given_data_may_have_a_slash(config, toy, same):
    """It is not the path of a folder, in settings, titles and resumed runs."""
    data = replace(toy, name="group/toy")
    settings = config("fedast", dataset="group/toy", rounds=1)
    made = wirelessfl.run(settings, data=data)
    assert made.tasks == ["group/toy"]
    assert made.summary()["dataset"] == "group/toy"
    for name in ("checkpoint.safetensors", "rows.jsonl"):
        (made.directory / name).unlink()
    same(wirelessfl.resume(made.directory, data=data), made)


@pytest.mark.parametrize(
    ("function", "keyword", "near"),
    [
        (wirelessfl.run, "modle", "model"),
        (wirelessfl.run, "on_rows", "on_row"),
        (wirelessfl.price, "networks", "network"),
        (wirelessfl.pilot, "splits", "split"),
        (wirelessfl.plan, "datas", "data"),
        (build, "los", "loss"),
        (wirelessfl.design, "targt", "target"),
        (wirelessfl.sweep, "job", "jobs"),
        (wirelessfl.combinations, "setings", "settings"),
    ],
)
def test_unknown_keywords_are_refused_with_the_nearest(function, keyword, near):
    with pytest.raises(TypeError) as error:
        function(Config.from_flags("fedavg"), **{keyword: None})
    name = function.__name__
    assert str(error.value) == f"{name}() has no argument {keyword!r}. Do you mean {near!r}?"


@pytest.mark.parametrize(
    ("function", "keyword", "advice"),
    [
        (
            wirelessfl.run,
            "rounds",
            "Settings belong to the configuration, see help(wirelessfl.run).",
        ),
        (wirelessfl.sweep, "model", 'name code by its path, such as model="my_file.py:cnn".'),
        (wirelessfl.combinations, "seed", 'combinations("fedavg", {"seed": [1, 2]}).'),
    ],
)
def test_keywords_without_a_near_one_say_where_they_belong(function, keyword, advice):
    with pytest.raises(TypeError) as error:
        function(Config.from_flags("fedavg"), **{keyword: None})
    assert str(error.value).endswith(advice)


def test_help_leads_to_what_can_be_given():
    assert "``wirelessfl.Given``" in wirelessfl.run.__doc__
    names = wirelessfl.Given.__annotations__.keys()
    assert all(f"``{name}``" in wirelessfl.Given.__doc__ for name in names)
    assert names == vars(GivenObjects()).keys()
