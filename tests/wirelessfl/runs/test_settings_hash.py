"""The hash of settings: written when a run is made, and kept when later versions add settings."""

import json

from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS
from wirelessfl.runs.folder import identity as module
from wirelessfl.runs.folder.identity import non_defaults, settings_hash
from wirelessfl.runs.kept import kept_run

SMALL = {"clients": 4, "rounds": 1, "local_steps": 1}


def test_a_run_is_made_with_its_hash(tmp_path):
    """The hash does not depend on what the setup resolves, on the folder or on resuming."""
    config = Config.from_flags("fedavg", **SMALL)
    folder = kept_run(config, tmp_path).directory
    told = json.loads((folder / "about.json").read_text())
    assert folder.name == f"fedavg-{told['settings']}"
    assert told["settings"] == settings_hash(config.with_run({"out": tmp_path}))


def test_defaults_of_later_settings_and_kinds_do_not_count():
    """Only values that are stated, or follow from stated ones, are hashed."""
    found = non_defaults(Config.from_flags("fedavg", clients=8, seed=3, antennas=10))
    assert {"network.clients": 8, "run.seed": 3}.items() <= found.items()
    assert "network.antennas" not in found
    assert not [kind for kind in DEFAULTS if f"{kind}.name" in found]
    named = non_defaults(Config.from_flags("fedavg", split="iid", uplink="ofdma"))
    assert (named["split.name"], named["uplink.name"]) == ("iid", "ofdma")


def test_a_setting_may_move_to_another_section(monkeypatch):
    config, hashes = Config.from_flags("fedavg"), []
    for place in ("network.cpu_hz", "training.cpu_hz", "uplink.cpu_hz"):
        monkeypatch.setattr(module, "non_defaults", lambda _, place=place: {place: (1e9, 2e9)})
        hashes.append(settings_hash(config))
    assert hashes[0] == hashes[1] != hashes[2]
