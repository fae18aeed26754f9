"""Runs over given networks: their groups are told apart, and nothing is pooled without a word."""

from dataclasses import dataclass

import numpy as np
import pytest

from channels import Network, Rayleigh
from wirelessfl import Config, load_all, run
from wirelessfl.cli.main import main
from wirelessfl.results import Runs
from wirelessfl.results.comparison import compare


@dataclass(frozen=True)
class OwnFading(Rayleigh):
    """Fading of a user, which a run's folder cannot keep."""


def network(bandwidth_hz=5e6, nearest_db=-90.0, fading=None):
    gains = np.linspace(nearest_db, -100, 4)
    return Network([0] * 4, cpu_hz=1e9, gain_db=gains, bandwidth_hz=bandwidth_hz, fading=fading)


@pytest.fixture
def trained(tmp_path):
    """Train one round over some networks, each with the seeds 1 and 2."""

    def train(**networks):
        for name, one in networks.items():
            for seed in (1, 2):
                out = tmp_path / "runs" / f"{name}-{seed}"
                settings = {"dataset": "digits", "rounds": 1, "local_steps": 1, "hidden": (4,)}
                config = Config.from_flags("fedavg", seed=seed, out=out, **settings)
                run(config, network=one)
        return load_all(tmp_path / "runs")

    return train


def test_numbers_of_given_networks_are_settings(trained, tmp_path):
    """Bands tell groups apart in tables, plots, selections and comparisons."""
    runs = trained(narrow=network(5e6), wide=network(20e6))
    assert runs.varied == ["bandwidth_hz"]
    rows = runs.table().rows
    assert {row["bandwidth_hz"]: row["runs"] for row in rows} == {5e6: 2, 20e6: 2}
    assert [*runs.by("bandwidth_hz")] == [5e6, 20e6]
    assert len(runs.where(bandwidth_hz=5e6)) == 2
    assert not runs.table().notes
    mixed = str(runs.table("algorithm"))
    assert "its runs differ in bandwidth_hz, not only in seeds" in mixed
    both = [load_all(tmp_path / "runs" / f"{name}-*") for name in ("narrow", "wide")]
    compared = compare(dict(zip(("narrow", "wide"), both, strict=True)))
    assert compared.settings["bandwidth_hz"] == [[5e6], [20e6]]
    assert "no settings differ" not in str(compared)


def test_other_values_of_given_networks_are_noted(trained, tmp_path, capsys):
    """Gains are no settings: groups are the same, and a note and a comparison tell them."""
    runs = trained(near=network(nearest_db=-80.0), far=network(nearest_db=-95.0))
    table = runs.table()
    assert [row["runs"] for row in table.rows] == [4]
    assert any("the networks given to its runs differ in" in note for note in table.notes)
    assert any("SNR" in note for note in table.notes)
    with pytest.warns(UserWarning, match="the networks given to its runs differ in"):
        runs.plot()
    assert main(["plot", str(tmp_path / "runs"), "-o", str(tmp_path / "runs.png")]) == 0
    assert capsys.readouterr().err.count("the networks given to its runs differ in") == 1
    seeds = runs.by("seed")
    compared = compare({"far": Runs(runs[:2]), "near": Runs(runs[2:])})
    assert {len(set(hashes)) for hashes in compared.settings["network"]} == {1}
    assert compared.settings["network"][0] != compared.settings["network"][1]
    assert not compared.notes, "each group has one network"
    same = compare({"1": seeds[1], "2": seeds[2]})
    assert "network" not in same.settings, "both have both networks"


def test_networks_that_are_not_stored_are_noted(trained):
    """Nothing says whether they differ."""
    runs = trained(own=network(fading=OwnFading()))
    (note,) = runs.table().notes
    assert "not all are stored, so they may differ" in note


def test_names_of_settings_in_all_forms(trained):
    """A list, several names, or commas as on the command line."""
    runs = trained(narrow=network(5e6), wide=network(20e6))
    expected = runs.table(by=["algorithm", "bandwidth_hz"]).rows
    assert runs.table("algorithm", "bandwidth_hz").rows == expected
    assert runs.table("algorithm,bandwidth_hz").rows == expected
    assert runs.table("algorithm, bandwidth_hz").rows == expected
    assert [*runs.by("algorithm,bandwidth_hz")] == [*runs.by("algorithm", "bandwidth_hz")]
