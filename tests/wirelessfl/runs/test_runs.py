"""Runs on disk: reproducibility, rows, contents of the folder, and errors before training."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open

import wirelessfl
from channels import Network
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.training.workers.shards import Shards


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["fedavg", "hfedavg", "hist"])
def test_runs_with_equal_seeds_are_identical_and_others_differ(config, toy, algorithm, same, bare):
    first = wirelessfl.run(config(algorithm, dropout=0.3), data=toy)
    same(first, wirelessfl.run(config(algorithm, dropout=0.3), data=toy))
    other = wirelessfl.run(config(algorithm, dropout=0.3, seed=2), data=toy)
    assert bare(other.rows) != bare(first.rows)


def test_rows_have_the_documented_fields(config, toy):
    result = wirelessfl.run(config(rounds=4, eval_every=3), data=toy)
    assert [row["round"] for row in result.rows] == [0, 3, 4]
    for row in result.rows:
        assert 0.0 <= row["accuracy"] <= 1.0
        assert row["loss"] > 0
    for name in ("sim_seconds", "uplink_mib", "downlink_mib", "joules", "wall_seconds"):
        values = [row[name] for row in result.rows]
        assert values == sorted(values)
        assert values[-1] > 0
    assert result.rows[0]["sim_seconds"] == result.rows[0]["uplink_mib"] == 0.0
    on_disk = (result.directory / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in on_disk] == result.rows
    assert wirelessfl.Config.from_toml(result.directory / "config.toml") == result.config
    with pytest.raises(ValueError, match=r"task is 'toy', which the run does not have\. Use rows"):
        result.rows_of("toy")


def test_a_folder_contains_five_files_and_no_drafts(config, toy):
    result = wirelessfl.run(config(), data=toy)
    names = sorted(path.name for path in result.directory.iterdir())
    arrays = ["partition.npz"]
    assert names == ["about.json", "checkpoint.safetensors", "config.toml", *arrays, "rows.jsonl"]


def test_checkpoints_are_not_pickles(config, toy):
    result = wirelessfl.run(config(), data=toy)
    with safe_open(result.directory / "checkpoint.safetensors", framework="pt") as file:
        assert "server.cloud.params" in file.keys()  # noqa: SIM118
        assert json.loads(file.metadata()["state"])["finished"] is True


def test_folders_in_use_are_refused_before_any_work(config, toy, tmp_path):
    settings = config()
    settings.run.out.mkdir()
    (settings.run.out / "thesis.tex").write_text("years of work")
    message = r"out is .*: it is not an empty folder\. Choose another folder, or empty it\.$"
    with pytest.raises(wirelessfl.ConfigError, match=message):
        wirelessfl.run(settings, data=toy)
    assert [p.name for p in settings.run.out.iterdir()] == ["thesis.tex"]
    message = r"is not a run directory \(no config\.toml\)\. Give the folder of a run"
    with pytest.raises(wirelessfl.ConfigError, match=message):
        wirelessfl.resume(tmp_path / "nothing")


def test_impossible_settings_create_no_folder(config, toy):
    impossible = config("hist", mask_sizes="optimized", size_cap=1.0, cells=6)
    wide = torch.nn.Sequential(torch.nn.Linear(12, 10), torch.nn.ReLU(), torch.nn.Linear(10, 4))
    wide.fully_connected = ("0", "2")
    with pytest.raises(wirelessfl.ConfigError, match="cap"):
        wirelessfl.run(impossible, data=toy, model=wide)
    assert not impossible.run.out.exists()


def test_uneven_cells_of_a_network_get_equal_shares_of_the_data(config, toy, network_of):
    """cell-iid divides the training set into equal parts, one for each cell."""
    setup = build(
        config(network=True, split="cell-iid"), data=toy, network=network_of([0, 0, 0, 0, 0, 1])
    )
    sizes = [len(part) for part in setup.model.client_samples]
    assert (sum(sizes[:5]), sizes[5]) == (120, 120)
    assert setup.config.network.cells == 2
    assert setup.config.dataset.name == "toy"


def test_natural_clients_and_clients_of_one_sample(config, toy):
    """Each group of the data becomes a client, even a group with a single sample."""
    groups = np.minimum(np.arange(len(toy.train_labels)) // 40, 5)
    groups[-1] = 6
    natural = replace(toy, groups=groups)
    settings = config("hist", split="natural", clients=7, weighting="samples")
    setup = build(settings, data=natural)
    assert [len(part) for part in setup.model.client_samples] == [40, 40, 40, 40, 40, 39, 1]
    result = wirelessfl.run(settings, data=natural)
    assert result.rows[-1]["accuracy"] > result.rows[0]["accuracy"] + 0.2


def test_long_runs_with_fixed_shapes_are_replayed(config, toy):
    def replay(algorithm="hfedavg", **flags):
        settings = config(algorithm, **({"executor": "vmap", "rounds": 10**6} | flags))
        return build(settings, data=toy).config.run.replay

    assert replay() == "on"
    assert replay("hist") == "on"
    assert replay("hist", mask_sizes="optimized") == "off"  # a different shape in every round
    assert replay(rounds=1) == "off"
    assert replay(rounds=1, replay="on") == "on"
    assert replay(replay="off") == "off"
    assert replay(chunk=2) == "on"
    assert (
        replay(executor="stacked", replay="on") == "off"
    )  # stacked layers do not gain from replay
    with pytest.raises(wirelessfl.ConfigError, match="replay is 'perhaps'"):
        replay(replay="perhaps")


def test_the_stacked_executor_refuses_modules_with_hooks(config, toy):
    def doubled():
        module = FCNN((12,), 4, hidden=(9, 8))
        module.layers[1].register_forward_hook(lambda layer, inputs, output: 2 * output)
        return module

    with pytest.raises(wirelessfl.ConfigError, match=r'"stacked" cannot train.*Choose "vmap"'):
        build(config("hfedavg", executor="stacked"), data=toy, model=doubled())
    assert build(config("hfedavg"), data=toy, model=doubled()).config.run.executor == "vmap"


def test_runs_without_a_folder_get_one_each(config, toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = {wirelessfl.run(config(out=None, rounds=1), data=toy).directory for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.parent == Path("runs") for folder in folders)


def test_an_unresolved_configuration_is_completed(config, toy, tmp_path):
    by_hand = wirelessfl.Config(
        algorithm={"name": "hist"},
        uplink={"name": "tdma"},
        training={"rounds": 1, "local_steps": 2},
        network={"clients": 8},
        run={"out": tmp_path / "by-hand"},
    )
    result = wirelessfl.run(by_hand, data=toy)
    assert (result.config.network.cells, result.config.training.edge_rounds) == (4, 5)


def test_more_cells_than_neurons_are_refused(config, toy):
    torch.manual_seed(0)
    with pytest.raises(
        wirelessfl.ConfigError, match="cells=6 conflicts with the model's 4 neurons"
    ):
        wirelessfl.run(config(cells=6), data=toy, model=FCNN((12,), 4, hidden=(4,)))


def test_a_diverging_run_continues_and_its_loss_is_none(config, toy):
    result = wirelessfl.run(config(lr=1e6, rounds=4), data=toy)
    assert result.rows[-1]["loss"] is None
    assert len(result.rows) == 5


def test_the_number_of_threads_is_restored(config, toy):
    before = torch.get_num_threads()
    wirelessfl.run(config(threads=1), data=toy)
    assert torch.get_num_threads() == before


def test_a_module_with_nn_dropout_runs_in_the_loop_with_a_note(config, toy, same):
    def with_dropout():
        torch.manual_seed(1)
        return torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4)
        )

    notes = []
    first = wirelessfl.run(config("hfedavg"), data=toy, model=with_dropout(), on_note=notes.append)
    assert len(notes) == 1
    assert "global generator" in notes[0]
    assert first.config.run.executor == "loop"
    same(first, wirelessfl.run(config("hfedavg"), data=toy, model=with_dropout()))
    submodels = wirelessfl.run(config("hist", layers="0, 3"), data=toy, model=with_dropout())
    assert submodels.rows[-1]["accuracy"] > 0.4
    with pytest.raises(wirelessfl.ConfigError, match=r"replaces dropout=0\.5: leave this"):
        wirelessfl.run(config("hfedavg", dropout=0.5), data=toy, model=with_dropout())
    with pytest.raises(wirelessfl.ConfigError, match="model=resnet18, norm=batch: leave these"):
        wirelessfl.run(
            config("hfedavg", model="resnet18", norm="batch"), data=toy, model=with_dropout()
        )
    with pytest.raises(wirelessfl.ConfigError, match='Choose "loop"'):
        wirelessfl.run(config("hfedavg", executor="vmap"), data=toy, model=with_dropout())


SLOW = """
from dataclasses import dataclass

import numpy as np

from channels import Access, Service
from wirelessfl.extend import Uplink


class Slow(Access):
    def serve(self, load, draw):
        seconds = np.full(draw.snr_hz.shape, 4e307)
        return Service(seconds, np.zeros_like(seconds), np.isfinite(seconds))


@dataclass(frozen=True)
class Slowly(Uplink):
    access = Slow()
"""


def test_a_sum_of_seconds_that_overflows_is_an_error(config, toy, tmp_path):
    """Every round takes finite time, but the sum over 30 rounds does not; JSON has no infinity."""
    (tmp_path / "slow.py").write_text(SLOW)
    settings = config("fedavg", rounds=30, uplink=f"{tmp_path / 'slow.py'}:Slowly")
    with pytest.raises(TrainingError, match=r"sim_seconds is inf in round \d+: .*bandwidth_hz"):
        wirelessfl.run(settings, data=toy)
    rows = (settings.run.out / "rows.jsonl").read_text()
    assert len(rows.splitlines()) > 1
    assert "Infinity" not in rows


def test_divergence_is_reported_once(config, toy):
    notes = []
    settings = config("fedavg", lr=1e30, rounds=3)
    rows = wirelessfl.run(settings, data=toy, on_note=notes.append).rows
    assert rows[-1]["loss"] is None
    assert [n for n in notes if "diverged" in n] == [
        "training has diverged by round 1. Lower --lr or --server-lr."
    ]


@pytest.fixture
def uneven():
    """A network of four cells with unequal speed."""
    cpu_hz = [1e9, 2e9, 1.1e9, 3e8, 4e8, 7e8, 9e8]
    return Network.from_snr([0, 0, 0, 1, 1, 2, 3], cpu_hz=cpu_hz, snr_db=20)


def under(buffer):
    return {"schedule": "buffered", "buffer": buffer}


def go(setup, directory, on_row=None):
    """Start or resume the run in this folder."""
    engine = Engine(setup)
    Execution(engine, directory, on_row).run()
    return SimpleNamespace(rows=directory.rows(), params=engine.params())


def test_rows_and_end_at_simulated_times(config, toy, uneven):
    """There are rows at multiples of eval_seconds and at max_seconds, where the run ends."""

    def rows(**flags):
        made = config("hfedavg", network=True, **under(1), **flags)
        setup = build(made, data=toy, network=uneven)
        return setup, go(setup, create(made.run.out, setup.config)).rows

    setup, ticks = rows(rounds=99, max_seconds=0.045, eval_seconds=0.01)
    assert [row["sim_seconds"] for row in ticks] == pytest.approx(
        [0, 0.01, 0.02, 0.03, 0.04, 0.045]
    )
    assert ticks[-1]["round"] == sum(setup.handler.rounds_done) > 1
    _, every = rows(rounds=7, eval_every=3)
    assert [row["round"] for row in every] == [0, 3, 6, 7]


def test_several_processes_are_refused(config, toy):
    with pytest.raises(ConfigError, match=r'3 processes, .* "hfedavg" with schedule .* needs one'):
        build(config("hfedavg", **under(2)), data=toy, shards=Shards(0, 3))
