"""Runs on disk: the same rows and parameters whether or not stopped, and clear refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

import wirelessfl
from channels import Network
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.directory import RunDirectory

COMMAND = [sys.executable, "-m", "wirelessfl"]


def bare(rows):
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


def same(first, second):
    assert bare(first.rows) == bare(second.rows)
    assert first.params.keys() == second.params.keys()
    for name, value in first.params.items():
        assert torch.equal(value, second.params[name]), name


@pytest.mark.parametrize("algorithm", ["fedavg", "hfedavg", "hist"])
def test_equal_seeds_are_identical_and_others_are_not(config, toy, algorithm):
    first = wirelessfl.run(config(algorithm, dropout=0.3), data=toy)
    same(first, wirelessfl.run(config(algorithm, dropout=0.3), data=toy))
    other = wirelessfl.run(config(algorithm, dropout=0.3, seed=2), data=toy)
    assert bare(other.rows) != bare(first.rows)


def test_rows_have_the_promised_fields(config, toy):
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


def test_the_folder_holds_config_rows_and_checkpoint_and_no_drafts(config, toy):
    result = wirelessfl.run(config(), data=toy)
    names = sorted(path.name for path in result.directory.iterdir())
    assert names == ["checkpoint.safetensors", "config.toml", "rows.jsonl"]


def run_flags(out):
    return [
        *("run", "hist", "--dataset", "digits", "--clients", "8", "--cells", "2"),
        *("--rounds", "200", "--local-steps", "4", "--edge-rounds", "2", "--batch-size", "16"),
        *("--mask-sizes", "optimized", "--dropout", "0.2", "--threads", "1"),
        *("--checkpoint-seconds", "0", "--out", str(out)),
    ]


def wait_for_rows(path, rows, process):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= rows:
            return
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.002)
    raise AssertionError("the run wrote no rows in two minutes")


def test_killed_thrice_and_resumed_equals_uninterrupted(tmp_path):
    """kill -9 at three moments, one in the first round: as if it had never been stopped."""
    whole = tmp_path / "whole"
    subprocess.run([*COMMAND, *run_flags(whole)], check=True, capture_output=True)
    killed = tmp_path / "killed"
    again = ["resume", str(killed)]
    commands = [run_flags(killed), again, again]
    for command, rows in zip(commands, (1, 20, 60), strict=True):
        process = subprocess.Popen([*COMMAND, *command], stdout=subprocess.DEVNULL)
        wait_for_rows(killed / "rows.jsonl", rows, process)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert len(RunDirectory(killed).rows()) < 201, "no work was left"
    done = subprocess.run(
        [*COMMAND, "resume", str(killed), "--json"], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["round"] == 200
    same(wirelessfl.resume(whole), wirelessfl.resume(killed))


def test_resume_cuts_off_what_lies_behind_the_checkpoint(config, toy):
    """Rows after the checkpoint, and half a row, are forgotten and made again."""
    reference = wirelessfl.run(config(rounds=5), data=toy)

    class Halt(Exception):
        pass

    def halt(row):
        if row["round"] == 4:
            raise Halt

    settings = config(rounds=5, checkpoint_seconds=0)
    with pytest.raises(Halt):
        wirelessfl.run(settings, data=toy, on_row=halt)
    rows = settings.run.out / "rows.jsonl"
    assert len(rows.read_text().splitlines()) == 5
    with rows.open("a") as file:
        file.write('{"round": 5, "accu')
    (settings.run.out / "checkpoint.safetensors.part").write_bytes(b"half a checkpoint")
    same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_stopped_in_the_first_round_row_0_stands_once(config, toy):
    """At the rows 0 and 1, with a checkpoint at every chance."""
    reference = wirelessfl.run(config(rounds=3), data=toy)
    for stop in (0, 1):
        settings = config(rounds=3, checkpoint_seconds=0)

        def halt(row, stop=stop):
            if row["round"] == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            wirelessfl.run(settings, data=toy, on_row=halt)
        same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_resume_before_the_first_checkpoint_starts_anew(config, toy):
    reference = wirelessfl.run(config(rounds=2), data=toy)
    settings = config(rounds=2)
    directory = RunDirectory.create(settings.run.out, settings)
    directory.append({"round": 0})
    same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_resuming_a_finished_run_changes_nothing(config, toy):
    result = wirelessfl.run(config(), data=toy)
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in result.directory.iterdir()}
    same(wirelessfl.resume(result.directory, data=toy), result)
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in result.directory.iterdir()}
    assert after == before


def test_an_interrupted_checkpoint_leaves_the_old_one(config, toy, monkeypatch):
    settings = config(rounds=2)
    directory = RunDirectory.create(settings.run.out, settings)
    directory.save({"x": torch.ones(3)}, {"note": 1})

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        directory.save({"x": torch.zeros(3)}, {"note": 2})
    monkeypatch.undo()
    tensors, state = directory.load()
    assert torch.equal(tensors["x"], torch.ones(3))
    assert state["note"] == 1
    assert not list(settings.run.out.glob("*.part"))


def test_checkpoints_are_not_pickles(config, toy):
    result = wirelessfl.run(config(), data=toy)
    with safe_open(result.directory / "checkpoint.safetensors", framework="pt") as file:
        assert "cloud.params" in file.keys()  # noqa: SIM118
        assert json.loads(file.metadata()["state"])["finished"] is True


def test_folders_in_use_are_refused_before_any_work(config, toy, tmp_path):
    settings = config()
    settings.run.out.mkdir()
    (settings.run.out / "thesis.tex").write_text("years of work")
    with pytest.raises(wirelessfl.ConfigError, match="not an empty folder"):
        wirelessfl.run(settings, data=toy)
    assert [p.name for p in settings.run.out.iterdir()] == ["thesis.tex"]
    with pytest.raises(wirelessfl.ConfigError, match="holds no run"):
        wirelessfl.resume(tmp_path / "nothing")


def test_impossible_settings_leave_no_folder_behind(config, toy):
    impossible = config("hist", mask_sizes="optimized", size_cap=1.0, cells=6, model="fcnn")
    wide = torch.nn.Sequential(torch.nn.Linear(12, 10), torch.nn.ReLU(), torch.nn.Linear(10, 4))
    wide.fully_connected = ("0", "2")
    with pytest.raises(wirelessfl.ConfigError, match="cap"):
        wirelessfl.run(impossible, data=toy, model=wide)
    assert not impossible.run.out.exists()


def network_of(cell_of, speed=1e9):
    return Network(cell_of, cpu_hz=speed, snr_db=20)


def test_resume_wants_what_the_run_was_given(config, toy):
    """A network, model or data from Python have to be given again, and be the same."""
    other = replace(toy, train_inputs=toy.train_inputs.flip(0))
    even, uneven = network_of([0, 0, 0, 1, 1, 1]), network_of([0, 0, 0, 0, 0, 1])
    reference = wirelessfl.run(config(rounds=4), data=toy, network=even)
    halted = config(rounds=4, checkpoint_seconds=0)

    def halt(row):
        if row["round"] == 2:
            raise KeyboardInterrupt

    notes = []
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(halted, data=toy, network=even, on_row=halt, on_note=notes.append)
    out = halted.run.out
    assert notes == [f"stopped; to go on: wirelessfl resume {out}"]
    for given, message in (
        ({}, r"began with data=..., network=... given to wirelessfl.run, and resume got none"),
        ({"data": toy}, "resume got data=..."),
        ({"data": toy, "network": uneven}, "the network's values are not those"),
        ({"data": toy, "network": network_of([0, 0, 0, 1, 1, 1], 2e9)}, "the network's values"),
        ({"data": other, "network": even}, "the data are not those"),
    ):
        with pytest.raises(wirelessfl.ConfigError, match=message):
            wirelessfl.resume(out, **given)
    same(wirelessfl.resume(out, data=toy, network=even), reference)


def test_changed_settings_are_refused(config, toy):
    result = wirelessfl.run(config(), data=toy)
    file = result.directory / "config.toml"
    file.write_text(file.read_text().replace("rounds = 3", "rounds = 9"))
    with pytest.raises(wirelessfl.ConfigError, match=r"settings in config\.toml are not those"):
        wirelessfl.resume(result.directory, data=toy)


def test_uneven_cells_of_a_network_get_equal_shares_of_the_data(config, toy):
    """cell-iid cuts the training set into one equal part a cell, whoever is in it."""
    parts = build(config(split="cell-iid"), data=toy, network=network_of([0, 0, 0, 0, 0, 1]))
    sizes = [len(part) for part in parts.world.parts]
    assert (sum(sizes[:5]), sizes[5]) == (120, 120)
    assert parts.config.network.cells == 2
    assert parts.config.data.dataset == "toy"


def test_natural_clients_and_clients_of_one_sample(config, toy):
    """Groups of the data become clients; one of them holds a single sample."""
    groups = np.minimum(np.arange(len(toy.train_labels)) // 40, 5)
    groups[-1] = 6
    natural = replace(toy, groups=groups)
    settings = config("hist", split="natural", clients=7, weighting="samples")
    parts = build(settings, data=natural)
    assert [len(part) for part in parts.world.parts] == [40, 40, 40, 40, 40, 39, 1]
    result = wirelessfl.run(settings, data=natural)
    assert result.rows[-1]["accuracy"] > result.rows[0]["accuracy"] + 0.2


@pytest.mark.parametrize("junk", [b"", b"not a checkpoint", b"\x10\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_checkpoint_is_named(config, toy, junk):
    result = wirelessfl.run(config(), data=toy)
    (result.directory / "checkpoint.safetensors").write_bytes(junk)
    with pytest.raises(wirelessfl.ConfigError, match=r"checkpoint\.safetensors is damaged"):
        wirelessfl.resume(result.directory, data=toy)


def test_lost_rows_are_named(config, toy):
    settings = config(rounds=5, checkpoint_seconds=0)

    def halt(row):
        if row["round"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt)
    rows = settings.run.out / "rows.jsonl"
    whole = rows.read_bytes()
    rows.write_bytes(whole[:40])
    with pytest.raises(wirelessfl.ConfigError, match="has 40 bytes, and the checkpoint knows of"):
        wirelessfl.resume(settings.run.out, data=toy)
    assert rows.read_bytes() == whole[:40]
    rows.write_bytes(whole)
    same(wirelessfl.resume(settings.run.out, data=toy), wirelessfl.run(config(rounds=5), data=toy))


def halted_run(config, toy, **given):
    """The settings of a run that was stopped after its second round."""
    settings = config(rounds=4, checkpoint_seconds=0)

    def halt(row):
        if row["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt, **given)
    return settings


def test_two_processes_do_not_share_a_run(config, toy):
    out = halted_run(config, toy).run.out
    with (
        RunDirectory(out).at_work(),
        pytest.raises(wirelessfl.ConfigError, match="another process is at work"),
    ):
        wirelessfl.resume(out, data=toy)


def test_frozen_parameters_and_test_data_are_compared(config, toy):
    def frozen(seed):
        torch.manual_seed(seed)
        module = FCNN((12,), 4, hidden=(9, 8))
        for parameter in module.layers[1].parameters():
            parameter.requires_grad_(False)
        return module

    halted = halted_run(lambda **k: config("hfedavg", **k), toy, model=frozen(1)).run.out
    with pytest.raises(wirelessfl.ConfigError, match="frozen parameters are not those"):
        wirelessfl.resume(halted, data=toy, model=frozen(2))
    other = replace(toy, test_inputs=-toy.test_inputs)
    with pytest.raises(wirelessfl.ConfigError, match="the data are not those"):
        wirelessfl.resume(halted, data=other, model=frozen(1))
    assert wirelessfl.resume(halted, data=toy, model=frozen(1)).rows[-1]["round"] == 4


def test_buffers_are_compared_also_those_that_are_not_stored(config, toy):
    class Scaled(FCNN):
        def __init__(self, scale):
            super().__init__((12,), 4, hidden=(9, 8))
            self.register_buffer("scale", torch.full((12,), scale), persistent=False)

        def get_extra_state(self):
            return {"version": 1}

        def set_extra_state(self, state):
            assert state == {"version": 1}

        def forward(self, x):
            return super().forward(x * self.scale)

    torch.manual_seed(1)
    halted = halted_run(lambda **k: config("hfedavg", **k), toy, model=Scaled(1.0)).run.out
    with pytest.raises(wirelessfl.ConfigError, match="frozen parameters are not those"):
        wirelessfl.resume(halted, data=toy, model=Scaled(5.0))
    assert wirelessfl.resume(halted, data=toy, model=Scaled(1.0)).rows[-1]["round"] == 4


def test_what_tuning_leaves_in_a_module_does_not_count(config, toy):
    """Dropout keys change with every step, also those that only find the chunk."""
    settings = {"executor": "vmap", "chunk": None, "dropout": 0.5}
    halted = halted_run(lambda **k: config("hfedavg", **(k | settings)), toy)
    assert wirelessfl.resume(halted.run.out, data=toy).rows[-1]["round"] == 4


def test_long_runs_of_one_shape_are_replayed(config, toy):
    def replay(algorithm="hfedavg", **flags):
        settings = config(algorithm, **({"executor": "vmap", "rounds": 10**6} | flags))
        return build(settings, data=toy).config.run.replay

    assert replay() == "on"
    assert replay("hist") == "on"
    assert replay("hist", mask_sizes="optimized") == "off"  # another shape every round
    assert replay(rounds=1) == "off"
    assert replay(rounds=1, replay="on") == "on"
    assert replay(replay="off") == "off"
    assert replay(chunk=2) == "on"
    assert replay(executor="stacked", replay="on") == "off"  # has no use for it
    with pytest.raises(wirelessfl.ConfigError, match="replay is 'perhaps'"):
        replay(replay="perhaps")


def test_a_replayed_run_that_was_stopped_goes_on_bit_for_bit(config, toy):
    def make(**flags):
        return config("hist", executor="vmap", replay="on", chunk=2, **flags)

    resumed = wirelessfl.resume(halted_run(make, toy).run.out, data=toy)
    assert resumed.config.run.replay == "on"
    same(resumed, wirelessfl.run(make(rounds=4), data=toy))


def test_the_stacked_executor_refuses_what_it_would_train_otherwise(config, toy):
    def doubled():
        module = FCNN((12,), 4, hidden=(9, 8))
        module.layers[1].register_forward_hook(lambda layer, inputs, output: 2 * output)
        return module

    with pytest.raises(wirelessfl.ConfigError, match=r'"stacked" cannot train.*Choose "vmap"'):
        build(config("hfedavg", executor="stacked"), data=toy, model=doubled())
    assert build(config("hfedavg"), data=toy, model=doubled()).config.run.executor == "vmap"


def test_a_finished_run_needs_neither_data_nor_device(config, toy):
    """Also when a later version has settings that its file does not name."""
    result = wirelessfl.run(config(), data=toy)
    again = wirelessfl.resume(result.directory)
    same(again, result)
    rows = result.directory / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"accuracy"', "accuracy", 1))
    with pytest.raises(wirelessfl.ConfigError, match=r"rows\.jsonl, line 1 is damaged"):
        wirelessfl.resume(result.directory)


def test_runs_without_a_folder_get_one_each(config, toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = {wirelessfl.run(config(out=None, rounds=1), data=toy).directory for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.parent == Path("runs") for folder in folders)


def test_a_configuration_made_by_hand_is_completed(config, toy, tmp_path):
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
    with pytest.raises(wirelessfl.ConfigError, match="cells is 6, and the model has 4 neurons"):
        wirelessfl.run(config(cells=6), data=toy, model=FCNN((12,), 4, hidden=(4,)))


def test_a_diverging_run_goes_on_and_says_so_in_its_rows(config, toy):
    result = wirelessfl.run(config(lr=1e6, rounds=4), data=toy)
    assert result.rows[-1]["loss"] is None
    assert len(result.rows) == 5


def test_threads_are_put_back(config, toy):
    before = torch.get_num_threads()
    wirelessfl.run(config(threads=1), data=toy)
    assert torch.get_num_threads() == before


def test_a_module_with_its_own_dropout_runs_in_the_loop_and_says_so(config, toy):
    def own():
        torch.manual_seed(1)
        return torch.nn.Sequential(
            torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4)
        )

    notes = []
    first = wirelessfl.run(config("hfedavg"), data=toy, model=own(), on_note=notes.append)
    assert len(notes) == 1
    assert "global generator" in notes[0]
    assert first.config.run.executor == "loop"
    same(first, wirelessfl.run(config("hfedavg"), data=toy, model=own()))
    submodels = wirelessfl.run(config("hist", layers="0, 3"), data=toy, model=own())
    assert submodels.rows[-1]["accuracy"] > 0.4
    with pytest.raises(wirelessfl.ConfigError, match=r"dropout is 0\.5, and the model is given"):
        wirelessfl.run(config("hfedavg", dropout=0.5), data=toy, model=own())
    with pytest.raises(wirelessfl.ConfigError, match='Choose "loop"'):
        wirelessfl.run(config("hfedavg", executor="vmap"), data=toy, model=own())
