"""Cycles per FLOP: costs of runs, stored settings, and conflicts."""

import json
import tomllib

import pytest
import torch
from torch import nn

import wirelessfl
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.build import build
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.timeline import timeline

PER_FLOP = 2.5
REGIMES = {
    "rounds": ("hist", {"cells": 2, "mask_sizes": "optimized"}),
    "submodels": ("ra-fed", {"capacities": (1.0, 0.5), "hidden": (16,)}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid"}),
    "requests": ("fedast", {"requests": 4, "buffer": 2, "eval_every": 1}),
    "cells": ("hfedavg", {"schedule": "buffered", "buffer": 1, "cells": 2}),
}
SMALL = {"clients": 6, "rounds": 2, "local_steps": 2, "batch_size": 8, "threads": 1, "chunk": 3}


def flops(batch, *sizes):
    """FLOPs of a training step of linear layers, by hand."""
    return sum((2 if layer == 0 else 3) * 2 * batch * size for layer, size in enumerate(sizes))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
def test_cycles_per_flop_equal_the_same_cycles_per_step(regime, tmp_path, same):
    """Rows and parameters are identical; a note and ``about.json`` report the counted cycles."""
    algorithm, own = REGIMES[regime]
    step = flops(8, 64 * 16, 16 * 10)
    made, notes = [], []
    for cost in ({"cycles_per_flop": PER_FLOP}, {"cycles_per_step": PER_FLOP * step}):
        given = SMALL | {"hidden": (16,)} | own | cost | {"out": tmp_path / str(len(made))}
        made.append(wirelessfl.run(Config.from_flags(algorithm, **given), on_note=notes.append))
    same(*made)
    assert made[0].rows[-1]["joules"] > 0
    said = f"FCNN on 8 samples takes {step} FLOPs, which is cycles_per_step={PER_FLOP * step!r}."
    assert [note for note in notes if "FLOPs" in note] == [f"a local step of {said}"]
    told = json.loads((made[0].directory / "about.json").read_text())["step_costs"]
    cost = {"model": "FCNN", "batch_size": 8, "flops": step, "cycles": PER_FLOP * step}
    assert told == [cost]
    assert "step_costs" not in json.loads((made[1].directory / "about.json").read_text())


def test_latency_and_energy_follow_from_the_counted_cycles(toy, config):
    """Training takes H X FLOPs / F seconds at kappa F^3 watts, for X cycles per FLOP."""
    settings = config("fedavg", cycles_per_flop=40.0, uplink="fixed", rate_mbps=1000.0, rounds=1)
    setup = build(settings, data=toy)
    network = build_network(settings.network, Stream(settings.run.seed), settings)
    step = 40.0 * flops(8, 12 * 300, 300 * 4)
    result = wirelessfl.run(settings, data=toy)
    size = sum(value.numel() for value in result.params.values())
    seconds = 3 * step / network.cpu_hz
    assert setup.network.cycles_per_step == step
    row = result.rows[-1]
    assert row["sim_seconds"] == pytest.approx(float(seconds.max()) + 2 * 32 * size / 1e9)
    joules = network.switched_capacitance * network.cpu_hz**3 * seconds
    assert row["joules"] == pytest.approx(float(joules.mean()))


TABLES = [
    "digits,hidden=20,name=a",
    "digits,hidden=12,name=b,batch_size=4,cycles_per_flop=7",
    "digits,model=linear,name=c",
]


def in_cycles(run_wide):
    """The tables of tasks with the equivalent cycles per step."""
    cycles = [
        run_wide * flops(8, 64 * 20, 20 * 10),
        7 * flops(4, 64 * 12, 12 * 10),
        run_wide * flops(8, 64 * 10),
    ]
    tables = [table.replace(",cycles_per_flop=7", "") for table in TABLES]
    return [f"{table},cycles_per_step={each}" for table, each in zip(tables, cycles, strict=True)]


@pytest.mark.parametrize(
    ("algorithm", "own"), [("fedast", {"requests": 4, "buffer": 2}), ("sync-st", {})]
)
def test_each_task_has_the_flops_of_its_model(algorithm, own, tmp_path, same):
    """Tasks may override the factor, and a timeline has the same times as the run."""
    own = SMALL | own | {"rounds": 4, "eval_every": 1}
    counted = Config.from_flags(
        algorithm, **own, task=TABLES, cycles_per_flop=PER_FLOP, out=tmp_path / "counted"
    )
    plain = Config.from_flags(algorithm, **own, task=in_cycles(PER_FLOP), out=tmp_path / "plain")
    made = [wirelessfl.run(config) for config in (counted, plain)]
    same(*made)
    end = made[0].rows[-1]["sim_seconds"]
    first, second = timeline(counted, end), timeline(plain, end)
    assert first == second
    assert first.merges[0].seconds == next(r for r in made[0].rows if r["round"])["sim_seconds"]
    told = json.loads((made[0].directory / "about.json").read_text())["step_costs"]
    assert [cost["flops"] for cost in told] == [
        flops(8, 64 * 20, 20 * 10), flops(4, 64 * 12, 12 * 10), flops(8, 64 * 10)
    ]  # fmt: skip


def test_one_task_may_use_cycles_per_flop(tmp_path):
    """Cycles per FLOP may be set for one task; the others keep the default cost.

    The stored file gives the same run.
    """
    tables = ["digits,hidden=12,name=a", "digits,hidden=12,name=b,cycles_per_flop=3"]
    config = Config.from_flags("sync-st", **SMALL, task=tables, out=tmp_path / "run")
    made = wirelessfl.run(config)
    again = Config.from_toml(made.directory / "config.toml").with_run({"out": tmp_path / "again"})
    assert wirelessfl.run(again).rows[-1]["sim_seconds"] == made.rows[-1]["sim_seconds"]
    costs = json.loads((made.directory / "about.json").read_text())["step_costs"]
    assert costs[0] is None
    assert costs[1]["flops"] == flops(8, 64 * 12, 12 * 10)


def test_the_factor_is_stored(toy, config, same, halt_at):
    """The file has the factor but not the counted cycles; a resumed run counts FLOPs again."""
    settings = config("fedavg", cycles_per_flop=PER_FLOP, checkpoint_seconds=0, rounds=4)
    whole = wirelessfl.run(config("fedavg", cycles_per_flop=PER_FLOP, rounds=4), data=toy)
    stored = tomllib.loads((whole.directory / "config.toml").read_text())["network"]
    assert stored["cycles_per_flop"] == PER_FLOP
    assert "cycles_per_step" not in stored
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(2))
    same(wirelessfl.resume(settings.run.out, data=toy), whole)
    hashes = {settings_hash(config("fedavg", **one)) for one in ({}, {"cycles_per_flop": 1.0})}
    assert len(hashes) == 2


def test_a_sweep_can_vary_the_factor(tmp_path, capsys):
    words = ["sweep", "fedavg", "--clients", "4", "--rounds", "1", "--local-steps", "1"]
    words += ["--cycles-per-flop", "2,4", "--out", str(tmp_path / "sweep"), "--threads", "1"]
    assert main([*words, "--uplink", "fixed", "--rate-mbps", "1e9"]) == 0
    capsys.readouterr()
    seconds = []
    for folder in (tmp_path / "sweep").rglob("rows.jsonl"):
        per_flop = Config.from_toml(folder.parent / "config.toml").network.cycles_per_flop
        row = json.loads(folder.read_text().splitlines()[-1])
        seconds.append((per_flop, row["sim_seconds"]))
    (low, short), (high, long) = sorted(seconds)
    assert (low, high) == (2.0, 4.0)
    assert long == pytest.approx(2 * short, rel=1e-3)


@pytest.mark.parametrize("other", [{"cycles_per_step": 1e6}, {"step_seconds": 0.1}])
def test_two_costs_of_a_step_conflict(other):
    """They conflict in the run, in a task's table, or with one in each; defaults do not count."""
    ((key, value),) = other.items()
    one = rf"cycles_per_flop=2\.0 conflicts with {key}={value:g}, which replaces it: choose one of"
    two = rf"{key}={value} conflicts with cycles_per_flop=2, which replaces it: choose one of them"
    with pytest.raises(ConfigError, match=f"^({one}|{two})"):
        Config.from_flags("fedavg", cycles_per_flop=2.0, **other)
    with pytest.raises(ConfigError, match=f"^(task 'digits': )?({one}|{two})"):
        Config.from_flags("fedast", **other, task=["digits,cycles_per_flop=2"])
    with pytest.raises(ConfigError, match=f"^(task 'digits': )?({one}|{two})"):
        Config.from_flags("fedast", cycles_per_flop=2.0, task=[f"digits,{key}={value}"])
    assert Config.from_flags("fedavg", cycles_per_flop=2.0, step_seconds=None)


class Scaled(nn.Module):
    """A model with element-wise products only, which torch does not count."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 12))

    def forward(self, x):
        return (x[:, None, :] * self.weight).sum(-1)


def test_a_model_without_counted_operations_is_refused(toy, config):
    with pytest.raises(ConfigError, match=r"cycles_per_flop is 2\.0, but torch counts no FLOPs"):
        build(config("fedavg", cycles_per_flop=2.0), data=toy, model=Scaled())
