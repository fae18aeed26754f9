"""A run reads and resolves its settings once."""

import tomllib

import numpy as np
import pytest
from torch.nn.functional import cross_entropy

import wirelessfl
from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config, settings
from wirelessfl.config.settings import Settings
from wirelessfl.config.typed_tables import build_choices
from wirelessfl.data import load_dataset
from wirelessfl.models import FCNN
from wirelessfl.runs.build.configured import configured
from wirelessfl.runs.build.given import GivenObjects

SMALL = ["--cells", "2", "--clients", "4", "--rounds", "2", "--local-steps", "1", "--quiet"]


@pytest.fixture
def counted(monkeypatch):
    """Number of times that settings are read, choices made, and settings resolved."""
    found = {"read": 0, "chosen": 0, "resolved": 0}
    read, chosen = Settings.read.__func__, build_choices
    resolved = Config._resolved.__func__

    def count(what, call):
        def counting(*args, **options):
            found[what] += 1
            return call(*args, **options)

        return counting

    monkeypatch.setattr(Settings, "read", classmethod(count("read", read)))
    monkeypatch.setattr(settings, "build_choices", count("chosen", chosen))
    monkeypatch.setattr(Config, "_resolved", classmethod(count("resolved", resolved)))
    return found


ONCE = {"read": 1, "chosen": 1, "resolved": 1}
TWICE_READ = {"read": 2, "chosen": 2, "resolved": 1}
"""Objects replace settings, which are read before and after."""


def test_a_run_resolves_its_settings_once(counted, tmp_path):
    assert main(["run", "hist", *SMALL, "--workers", "1", "--out", str(tmp_path / "run")]) == 0
    assert counted == ONCE


def test_a_resumed_run_resolves_its_settings_once(counted, tmp_path):
    """Those of its folder; a finished run is only read."""
    folder = tmp_path / "run"
    wirelessfl.run(Config.from_flags("hist", cells=2, clients=4, rounds=1, out=folder))
    counted.update(dict.fromkeys(counted, 0))
    wirelessfl.resume(folder)
    assert counted == ONCE


OBJECTS = {
    "model": lambda data: FCNN(data.input_shape, 10, hidden=(6,)),
    "data": lambda data: data,
    "network": lambda _: Network(np.array([0, 0, 1, 1]), cpu_hz=1e9, gain_db=-100.0),
    "loss": lambda _: lambda outputs, labels: cross_entropy(outputs, labels, reduction="none"),
    "metrics": lambda _: ["macro-f1"],
    "augment": lambda _: lambda x, generator: x.flip(-1),
    "split": lambda _: [list(range(i, 40, 4)) for i in range(4)],
}


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("as_tables", [False, True])
@pytest.mark.parametrize("names", [*((name,) for name in OBJECTS), tuple(OBJECTS)])
def test_a_run_with_given_objects_resolves_its_settings_once(counted, tmp_path, names, as_tables):
    """Defaults depend on the objects, so nothing is resolved without them."""
    data = load_dataset("digits")
    given = {name: OBJECTS[name](data) for name in names}
    flags = {"local_steps": 1, "rounds": 1, "out": tmp_path / "run"}
    flags |= {} if "network" in names else {"cells": 2, "clients": 4}
    config = Config.from_flags("hist", **flags)
    counted.update(dict.fromkeys(counted, 0))
    result = wirelessfl.run(config.given_tables() if as_tables else config, **given)
    assert counted == (TWICE_READ if as_tables else ONCE)
    assert result.config.network.clients == 4
    assert result.config.clients_known
    stored = (tmp_path / "run" / "config.toml").read_text()
    assert stored == result.config.to_toml()
    marked = {name for name in names if name != "metrics"}  # its name is a setting
    assert {*result.config.given.names} == marked
    counted.update(dict.fromkeys(counted, 0))
    wirelessfl.resume(tmp_path / "run", **given)
    assert counted == ONCE


def test_a_loss_given_by_name_resolves_the_settings_once(counted):
    config = configured(Config.from_flags("fedavg"), GivenObjects(loss="cross-entropy"))
    assert counted == {"read": 2, "chosen": 2, "resolved": 2}  # before and after
    assert config == Config.from_flags("fedavg", loss="cross-entropy").with_known_network()


def test_marked_settings_are_those_that_are_read_with_the_marks():
    """Settings with objects equal those of their stored file, which names the objects."""
    data = load_dataset("digits")
    for flags in (
        {"cells": 2, "clients": 4, "coherence": "round"},
        {"lr_schedule": "poly", "rounds": 3, "transmit_power_dbm": 10.0},
    ):
        config = Config.from_flags("hist", **flags)
        for name in ("model", "data", "metrics"):
            found = configured(config, GivenObjects(**{name: OBJECTS[name](data)}))
            again = Config.of(tomllib.loads(found.to_toml()))
            assert again.to_toml() == found.to_toml()
            assert again.all_tables() == found.all_tables()


def test_resolved_settings_stay(counted):
    """Without given objects, only the defaults of the network are added, and only once."""
    config = Config.from_flags("fedavg", rounds=3)
    known = configured(config)
    assert configured(known) is known
    assert counted == ONCE
    assert known.to_toml() == config.to_toml()
    assert not config.clients_known
    assert known.clients_known


def test_changed_settings_of_the_run_are_read_and_checked(tmp_path):
    """As those of a file, although nothing else is resolved again."""
    config = Config.from_flags("fedavg")
    changed = config.with_run({"out": str(tmp_path / "run"), "seed": "1e3"})
    assert changed.run.out == tmp_path / "run"
    assert changed.run.seed == 1000
    with pytest.raises(ConfigError, match=r"^run\.seed is 'x': give a whole number"):
        config.with_run({"seed": "x"})


@pytest.mark.parametrize(
    "flags",
    [
        {"schedule": "buffered", "busy_clients": 61},
        {"select": "round-robin", "clients_per_round": 61},
    ],
)
def test_defaults_of_the_network_are_checked(flags):
    """The number of clients is checked once no network can be given any more."""
    config = Config.from_flags("fedavg", **flags)
    assert config.network.clients == 60
    with pytest.raises(ConfigError, match="60"):
        configured(config)
