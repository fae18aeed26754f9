"""Sweeps train once for many radios: priced runs equal trained ones, in all files."""

import json
import shutil

import pytest

import wirelessfl
from tests.wirelessfl.small import alike
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs import kept
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.kept import kept_folder, kept_run, price_run, priced_from, training_key
from wirelessfl.runs.sweep import SweepError

SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 1, "clients": 6, "threads": 1}
SMALL |= {"hidden": (8,)}
CELLS = SMALL | {"cells": 2, "edge_rounds": 2}
RADIOS = {
    "hist": (
        "hist",
        CELLS,
        [
            {"uplink": "tdma", "snr_db": 5.0},
            {"uplink": "ofdma", "allocation": "optimal"},
            {"cpu_hz": (1e8, 2e8), "transmit_power_w": 0.01, "backhaul_mbps": 3.0},
            {"uplink": "fixed"},
            {"layout": "hexagonal", "path_loss": "umi"},
        ],
    ),
    "star": (
        "scaffold",
        SMALL | {"clients_per_round": 3, "client_states": "disk", "eval_every": 2, "rounds": 3},
        [{}, {"uplink": "ofdma"}, {"cycles_per_flop": 1.5}],
    ),
    "target": (
        "fedavg",
        SMALL | {"target": 0.12, "stop_at_target": True, "rounds": 8, "local_steps": 8},
        [{"uplink": "ofdma", "allocation": "optimal"}, {"uplink": "tdma"}],
    ),
    "epochs": (
        "fedavg",
        {name: value for name, value in SMALL.items() if name != "local_steps"}
        | {"local_epochs": 1, "batch_size": 30, "split": "dirichlet"},
        [{}, {"uplink": "ofdma", "allocation": "optimal"}],
    ),
    "patience": (
        "hfedavg",
        CELLS
        | {"rounds": 9, "lr": 1.0, "patience": 1, "min_delta": 0.02, "monitor": "macro_f1"}
        | {"metric": "macro-f1,tests.wirelessfl.models.losses.own_functions:top_two"}
        | {"loss": "tests.wirelessfl.models.losses.own_functions:per_sample"},
        [{}, {"uplink": "ofdma"}],
    ),
    "sessions": (
        "fedavg",
        SMALL | {"sessions": 2, "warm_start": "proposed", "presence": "labels"},
        [{}, {"uplink": "ofdma"}],
    ),
}
ABOUT = ("date", "priced_from", "checksum")
WALL = ("wall_seconds", "tensors_checksum", "rows_checksum", "rows_bytes")


def files_of(folder):
    """All that a folder stores, without wall-clock times, dates and places."""
    tensors, state = RunFolder(folder).load()
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    for told in (state, *rows):
        for name in WALL:
            told.pop(name, None)
    told = json.loads((folder / "about.json").read_text())
    told = {key: value for key, value in told.items() if key not in ABOUT}
    lines = (folder / "config.toml").read_text().splitlines()
    config = [line for line in lines if not line.startswith("out = ")]
    logs = {f.name: f.read_bytes() for form in ("*.log", "*.npz") for f in folder.glob(form)}
    return tensors, (state, [[*row.items()] for row in rows], told, config, logs)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", RADIOS)
def test_priced_runs_are_those_that_are_trained(case, tmp_path):
    """Rows, parameters, state, settings and ``about.json``; in rounds, cells and sessions."""
    algorithm, base, radios = RADIOS[case]
    configs = [Config.from_flags(algorithm, **(base | radio)) for radio in radios]
    seen = []
    trained = wirelessfl.sweep(configs, tmp_path / "all", train_all=True)
    priced = wirelessfl.sweep(
        configs, str(tmp_path / "once"), on_row=lambda place, row: seen.append(place)
    )
    first = priced[0].directory.name
    assert [priced_from(run.directory) for run in priced] == [None] + [first] * (len(radios) - 1)
    assert {priced_from(run.directory) for run in trained} == {None}
    assert [seen.count(place) for place in range(len(radios))] == [len(r.rows) for r in priced]
    for one, other in zip(priced, trained, strict=True):
        (tensors, told), (others, other_told) = files_of(one.directory), files_of(other.directory)
        assert told == other_told
        assert tensors.keys() == others.keys()
        assert all(map(alike, tensors.values(), (others[name] for name in tensors)))
        assert wirelessfl.resume(one.directory, trust=True).rows == one.rows
    seconds = {run.rows[-1]["sim_seconds"] for run in priced}
    assert len(seconds) == len(radios)
    again = []
    wirelessfl.sweep(configs, tmp_path / "once", on_row=lambda place, row: again.append(row))
    assert not again


@pytest.mark.parametrize(
    ("algorithm", "flags", "varied"),
    [
        ("hist", CELLS | {"uplink": "aircomp"}, {"snr_db": [0.0, 9.0]}),
        ("hist", CELLS | {"mask_sizes": "optimized"}, {"snr_db": [0.0, 9.0]}),
        ("fedavg", SMALL | {"max_seconds": 9.0}, {"snr_db": [0.0, 9.0]}),
        ("fedavg", SMALL | {"cutoff_seconds": 0.2}, {"snr_db": [0.0, 9.0]}),
        ("fedavg", SMALL | {"schedule": "buffered"}, {"snr_db": [0.0, 9.0]}),
        ("fedavg", SMALL, {"loss": ["cross-entropy", "mse"]}),
        ("fedavg", SMALL, {"metric": [None, "macro-f1"]}),
        ("fedavg", SMALL | {"metric": "macro-f1"}, {"monitor": ["loss", "macro_f1"]}),
        ("fedavg", SMALL, {"patience": [1, 2]}),
        (
            "fedavg",
            SMALL
            | {"sessions": 2, "presence": "arrivals", "presence_unit": "seconds"}
            | {"arrival_rate": 2.0, "mean_stay": 2.0},
            {"snr_db": [0.0, 9.0]},
        ),
        ("fedavg", SMALL, {"lr": [0.1, 0.2]}),
        ("fedavg", SMALL, {"seed": [1, 2]}),
        ("fedavg", SMALL, {"eval_every": [1, 2]}),
        ("hfedavg", SMALL, {"cells": [2, 3]}),
    ],
)
def test_what_trains_another_model_is_not_priced(algorithm, flags, varied):
    ((name, values),) = varied.items()
    keys = [training_key(Config.from_flags(algorithm, **flags, **{name: v})) for v in values]
    assert keys == [None, None] or keys[0] != keys[1]


OWN = """
from dataclasses import dataclass
from wirelessfl.extend import Assigner, FedAvg, Tdma

@dataclass(frozen=True)
class Mine(FedAvg):
    pass

@dataclass(frozen=True)
class Sized(Assigner, FedAvg):
    def submodels(self, context):
        return super().submodels(context)

@dataclass(frozen=True)
class Link(Tdma):
    name = "link"
"""


def test_own_classes_that_may_see_the_radio_are_trained(tmp_path, monkeypatch):
    (tmp_path / "own_radio.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert training_key(Config.from_flags("own_radio:Mine")) is not None
    assert training_key(Config.from_flags("own_radio:Sized")) is None
    assert training_key(Config.from_flags("fedavg", uplink="own_radio:Link")) is None


def test_other_cells_are_trained(tmp_path):
    """Positions in a file decide which cell a client is in."""
    configs = []
    for name, cells in (("a", "000111"), ("b", "001111"), ("c", "000111")):
        sites = "".join(f"base_station,{100 * cell},0,{cell}\n" for cell in range(2))
        clients = "".join(f"client,{30 + ord(name)},{n},{cell}\n" for n, cell in enumerate(cells))
        file = tmp_path / f"{name}.csv"
        file.write_text("kind,x_m,y_m,cell\n" + sites + clients)
        configs.append(Config.from_flags("hfedavg", **CELLS, layout="file", layout_file=file))
    found = wirelessfl.sweep(configs, tmp_path / "runs")
    sources = [priced_from(run.directory) for run in found]
    assert sources == [None, None, found[0].directory.name]


def test_an_interrupted_run_is_resumed_and_a_missing_price_is_trained(
    tmp_path, monkeypatch, halt_at
):
    configs = wirelessfl.combinations("fedavg", SMALL | {"uplink": ["tdma", "ofdma", "fixed"]})

    with pytest.raises(KeyboardInterrupt):
        kept_run(configs[1], tmp_path, halt_at(0))

    def refuse(config, source, folder):
        raise ConfigError("it has no price")

    found = wirelessfl.sweep(configs[:2], tmp_path)
    sources = [priced_from(run.directory) for run in found]
    assert sources == [found[1].directory.name, None]
    monkeypatch.setattr(kept, "price_run", refuse)
    last = wirelessfl.sweep(configs, tmp_path)[2]
    assert priced_from(last.directory) is None


def test_a_price_is_stored_whole_or_not_at_all(tmp_path, monkeypatch):
    configs = wirelessfl.combinations("fedavg", SMALL | {"uplink": ["tdma", "ofdma"]})
    first = kept_run(configs[0], tmp_path)
    folder = kept_folder(configs[1], tmp_path)

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(RunFolder, "save", full)
    with pytest.raises(OSError, match="no space left"):
        price_run(configs[1], first.directory, folder)
    assert [path.name for path in tmp_path.iterdir()] == [first.directory.name]
    monkeypatch.undo()
    shutil.copytree(first.directory, tmp_path / "moved")
    price_run(configs[1], tmp_path / "moved", folder)
    assert priced_from(folder) == "moved"


def test_each_run_is_tried_if_the_first_one_fails(tmp_path):
    """Not only the run that would be trained for all."""
    (tmp_path / "data").write_text("a file where the data should be")
    lost = SMALL | {"dataset": "mnist", "data_dir": tmp_path / "data"}
    configs = wirelessfl.combinations("fedavg", lost | {"uplink": ["tdma", "ofdma", "fixed"]})
    with pytest.raises(SweepError, match="all 3 runs failed"):
        wirelessfl.sweep(configs, tmp_path / "runs")


def test_the_command_says_how_many_runs_were_priced(tmp_path, capsys):
    words = "sweep fedavg --clients 4 --rounds 1 --local-steps 1 --threads 1 --uplink tdma,ofdma"
    words = [*words.split(), "--seed", "1,2", "--out", str(tmp_path), "--json"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "trained 2, priced 2: runs that differ only in an error-free radio" in shown.err
    entries = json.loads(shown.out)
    assert ["priced_from" in entry for entry in entries] == [False, False, True, True]
    assert main([*words, "--train-all"]) == 0
    assert "priced 2" not in capsys.readouterr().err
