"""Settings of a file that flags drop are named, and predictions are those of the design alone."""

import pytest

import wirelessfl
from wirelessfl.cli import main
from wirelessfl.cli.flags import merged
from wirelessfl.config import Config
from wirelessfl.config.combinations import dropped_notes

FILE = {
    "algorithm": {"name": "fedavg", "lr": 0.07},
    "uplink": {"name": "ofdma", "allocation": "optimal"},
    "network": {"clients": 4},
    "run": {"predicted": [1.0, 2.0, 3.0, 0.5], "seed": 2},
}
LEFT = "the settings are not those of the design: its predictions are left out."


@pytest.mark.parametrize(
    ("flags", "notes"),
    [
        ({"seed": 3}, []),
        ({"algorithm": "fedavg"}, []),
        ({"lr": 0.07}, []),
        ({"lr": 0.1}, [LEFT]),
        (
            {"algorithm": "fedprox"},
            [
                "algorithm 'fedprox' replaces 'fedavg', without its lr=0.07. To keep lr, give "
                "--lr 0.07.",
                LEFT,
            ],
        ),
        ({"algorithm": "fedprox", "lr": 0.2}, [LEFT]),
        (
            {"uplink": "tdma"},
            ["uplink 'tdma' replaces 'ofdma', without its allocation='optimal'.", LEFT],
        ),
    ],
)  # fmt: skip
def test_each_dropped_setting_is_named_with_the_flag_that_keeps_it(flags, notes):
    config = Config.merged(FILE, flags)
    assert dropped_notes(FILE, config) == notes
    assert (config.run.predicted is None) == (LEFT in notes)


def test_settings_without_effect_on_the_new_choice_are_named():
    tables = {"algorithm": {"name": "hist", "mask_sizes": "uniform"}, "network": {"cells": 3}}
    notes = dropped_notes(tables, Config.merged(tables, {"algorithm": "fedavg", "clients": 6}))
    assert notes == [
        "algorithm 'fedavg' replaces 'hist', without its mask_sizes='uniform'.",
        "no effect, so dropped: cells=3 of [network].",
    ]


def test_commands_and_combinations_warn_once():
    for call in (
        lambda: merged(FILE, {"algorithm": "fedprox"}),
        lambda: wirelessfl.combinations("fedavg,fedprox", {"seed": [1, 2]}, base=FILE),
    ):
        with pytest.warns(wirelessfl.Note) as caught:
            call()
        texts = [str(warning.message) for warning in caught]
        assert sum("replaces 'fedavg', without its lr=0.07" in text for text in texts) == 1


def test_the_comparison_is_that_of_the_design_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = {"clients": 4, "rounds": 1, "local_steps": 1, "hidden": (4,), "lr": 0.07}
    config = Config.from_flags("fedavg", **settings).with_run({"predicted": (1.0, 2.0, 3.0, 0.5)})
    (tmp_path / "design.toml").write_text(config.to_toml())
    for further, compared in ((["--seed", "3"], True), (["--lr", "0.01"], False)):
        assert main(["run", "--config", "design.toml", "--quiet", *further]) == 0
        caught = capsys.readouterr()
        assert ("the design and its run" in caught.out) == compared
        assert (LEFT in caught.err) != compared
