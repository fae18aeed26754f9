"""A run reads and resolves its settings once."""

import pytest

import wirelessfl
from wirelessfl.cli import main
from wirelessfl.config import Config, settings
from wirelessfl.config.build_choices import build_choices
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.setup.given_objects import configured

SMALL = ["--cells", "2", "--clients", "4", "--rounds", "2", "--local-steps", "1", "--quiet"]


@pytest.fixture
def counted(monkeypatch):
    """Number of times that settings are read, choices made, and settings resolved."""
    found = {"read": 0, "chosen": 0, "resolved": 0}
    read, chosen, resolved = Settings.read.__func__, build_choices, Config.of.__func__

    def count(what, call):
        def counting(*args, **options):
            found[what] += 1
            return call(*args, **options)

        return counting

    monkeypatch.setattr(Settings, "read", classmethod(count("read", read)))
    monkeypatch.setattr(settings, "build_choices", count("chosen", chosen))
    monkeypatch.setattr(Config, "of", classmethod(count("resolved", resolved)))
    return found


ONCE = {"read": 1, "chosen": 1, "resolved": 1}


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
