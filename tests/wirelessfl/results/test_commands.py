"""The commands for stored runs: output, files, and one line per error."""

import csv
import json
import resource
import zlib

import pyarrow.parquet
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import wirelessfl
from tests.drawn import lines, recorded
from tests.wirelessfl.results.conftest import rows_of
from wirelessfl import Config, load, load_all
from wirelessfl.base.stored_tensors import checksum
from wirelessfl.cli import main


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Run a command from the folder that contains ``runs``; return its output."""
    monkeypatch.chdir(tmp_path)

    def call(*words, status=0):
        assert main([str(word) for word in words]) == status
        out, err = capsys.readouterr()
        return err if status else out

    return call


def test_runs_lists_all(command, stored, tmp_path):
    """One line per run with its progress and state; damaged runs are listed too."""
    stored("fedavg", [0.1, 0.25], finished=False)
    stored("hist", [0.1, 0.2, 0.3, 0.9375], cells=2, seed=7)
    damaged = stored("fedavg", [0.1])
    (damaged / "rows.jsonl").write_text("{}\n")
    lines = command("runs").splitlines()
    assert len(lines) == 7
    text = "\n".join(lines)
    assert "1/3 │    0.250 │ unfinished" in text
    assert "hist      │ digits │ tdma   │    7 │   3/3 │    0.938 │ finished" in text
    assert "damaged" in text
    entries = json.loads(command("runs", "runs", "--json"))
    assert {entry["state"] for entry in entries} == {"unfinished", "finished", "damaged"}
    by = {entry["folder"]: entry for entry in entries}
    assert by["runs/hist-2"]["accuracy"] == 0.9375
    assert by["runs/hist-2"]["rounds"] == 3
    assert "x does not exist" in command("runs", "x", status=2)


def test_show_says_what_differs_from_defaults(command, stored):
    """Settings that differ, with defaults of the chosen uplink and split; last row; files."""
    path = stored("hist", [0.1, 0.7, 0.6], cells=2, uplink="aircomp", split="dirichlet",
                  alpha=0.3, target=0.6)  # fmt: skip
    facts = json.loads(command("show", path, "--json"))
    assert facts["settings"] == {
        "algorithm": {"name": "hist", "lr": 0.1},
        "uplink": {"name": "aircomp"},
        "split": {"name": "dirichlet", "alpha": 0.3},
        "network": {"cells": 2, "clients": 4},
        "training": {"rounds": 3},
        "evaluation": {"target": 0.6},
    }
    assert facts["last_rows"] == load(path).rows[-1:]
    assert facts["summaries"][0]["best_accuracy"] == 0.7
    assert set(facts["files"]) == {
        "about.json", "checkpoint.safetensors", "config.toml", "rows.jsonl"
    }  # fmt: skip
    text = command("show", path)
    assert "[split] name = dirichlet, alpha = 0.3" in text
    assert "accuracy 0.600, best 0.700" in text
    assert "target 0.6: round 1, 2 s, 0.500 MiB per client" in text
    assert "no rows yet" in command("show", stored("fedavg", [], finished=False))
    endless = stored("fedavg", None, rows=rows_of([0.1], equal_seconds=float("inf")))
    assert "equal_seconds inf" in command("show", endless)
    assert "is not a run directory" in command("show", "runs", status=2)


def test_show_names_the_task_of_a_target(command):
    """One task has a target, which no round reaches; the other has none."""
    small = "--clients 4 --rounds 1 --local-steps 1 --batch-size 8 --threads 1 --quiet".split()
    tasks = ["--task", "digits,target=0.999", "--task", "digits,name=other"]
    command("run", "sync-st", *small, *tasks, "--out", "run")
    lines = command("show", "run").splitlines()
    assert [line for line in lines if "not reached" in line] == [
        "  digits: target 0.999: not reached"
    ]
    assert any(line.startswith("  other: accuracy") for line in lines)


def test_show_draws_the_partition_and_says_where_the_time_goes(command, tmp_path):
    flags = {"clients": 3, "rounds": 2, "local_steps": 1, "hidden": (4,), "client_log": True}
    run = wirelessfl.run(Config.from_flags("fedavg", out=tmp_path / "run", **flags))
    log = wirelessfl.read_client_log("run")
    text = command("show", "run", "--partition", "new/labels.pdf")
    assert "\nwhere the time goes:\n  " + "\n  ".join(log.lines()) + "\n" in text
    assert text.endswith("partition drawn: new/labels.png, new/labels.pdf\n")
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"labels.png", "labels.pdf"}
    assert load("run").partition[1].tolist() == run.partition[1].tolist()
    assert "partition is a.svg: name a .png" in command(
        "show", "run", "--partition", "a.svg", status=2
    )
    (tmp_path / "run" / "clients.csv").write_text("broken\n")
    assert "clients.csv is damaged" in command("show", "run")
    (tmp_path / "run" / "partition.npz").unlink()
    assert "run has no partition.npz" in command("show", "run", "--partition", "a.png", status=2)


def test_runs_of_regression(command, stored):
    """There is no accuracy, but a loss, and a metric of which smaller values are better."""
    for seed, more in ((1, 0.0), (2, 0.1)):
        rows = rows_of((0.5, 0.8 + more), mae=2.0 - more, class_accuracy=[0.5, 0.5])
        paths = [
            stored(
                algorithm,
                [],
                rows=[{k: v for k, v in row.items() if k != "accuracy"} for row in rows],
                seed=seed,
            )
            for algorithm in ("fedavg", "fedprox")
        ]
    assert "  loss 2.100, best 2.100, " in command("show", paths[0])
    assert "loss 2.100" in command("runs", "runs")
    found = json.loads(command("table", "runs", "--by", "algorithm", "--json"))
    assert [row["loss"] for row in found] == pytest.approx([2.15, 2.15])
    found = json.loads(
        command("table", *paths, "--by", "seed", "--field", "mae", "--target", "1.95", "--json")
    )
    assert [row["reached"] for row in found] == [2]
    assert "loss" in command("compare", "--by", "algorithm", "runs")
    with recorded(laid_out=False) as figures:
        command("plot", "runs", "-o", "fig.pdf")
    assert figures["fig"].axes[0].get_ylabel() == "test loss"
    assert "y is 'class_accuracy', which has 2 values: choose a field with one value" in command(
        "plot", "runs", "--y", "class_accuracy", status=2
    )


def test_compare_and_table(command, two_algorithms):
    """Each argument is a group, or --by makes the groups; formats; conflicts are one line."""
    groups = ("runs/fedavg*", "runs/fedprox*")
    text = command("compare", *groups, "--target", "0.8")
    assert "runs/fedprox* against runs/fedavg*, paired by seed" in text
    found = json.loads(command("compare", "runs", "--by", "algorithm", "--json"))
    assert found["groups"] == ["fedavg", "fedprox"]
    assert found["paired"]["fedprox"]["accuracy, in points"]["values"] == pytest.approx(
        [0, -10, 45]
    )
    assert "needs two runs" in command("compare", "runs", status=2)
    runs = load_all(two_algorithms)
    words = ("table", "runs", "--by", "algorithm", "--target", "0.8")
    table = runs.table("algorithm", target=0.8)
    assert command(*words) == f"{table}\n"
    assert command(*words, "--latex") == table.to_latex()
    assert command(*words, "--csv") == table.to_csv()
    assert json.loads(command(*words, "--json")) == table.rows
    with pytest.raises(SystemExit):
        command(*words, "--json", "--csv")
    assert "unknown setting 'algo'" in command("table", "runs", "--by", "algo", status=2)


def test_plot_draws_groups(command, two_algorithms):
    """The figure of ``Runs.plot``; its files are tested with those of all figures."""
    with recorded(laid_out=False) as figures:
        words = ["plot", "runs", "--group-by", "algorithm", "--label", "FedAvg=no prox, a = 1"]
        out = command(*words, "--x", "mib", "-o", "new/fig.pdf")
    assert out.splitlines() == ["drawn: new/fig.png", "drawn: new/fig.pdf"]
    (panel,) = figures["fig"].axes
    assert panel.get_xlabel() == "uplink traffic per client (MiB)"
    assert lines(panel)["FedProx"][0] == pytest.approx([0, 0.25, 0.5])
    assert [*lines(panel)] == ["no prox, a = 1", "FedProx"]
    assert "y is 'f1', which no row has" in command("plot", "runs", "--y", "f1", status=2)
    assert "write the group and its text" in command("plot", "runs", "--label", "x", status=2)
    assert "name a .png or .pdf" in command("plot", "runs", "-o", "a.svg", status=2)


def test_export_of_parameters(command, stored, tmp_path):
    """Files have the parameters by name, and say which run they are of."""
    path = stored("fedavg", [0.1, 0.2], seed=5)
    assert command("export", path, "-o", "m.safetensors") == "written: m.safetensors\n"
    want = load(path).params
    assert all(torch.equal(value, want[key]) for key, value in load_file("m.safetensors").items())
    with safe_open("m.safetensors", "pt") as file:
        said = file.metadata()
    assert (said["algorithm"], said["seed"], said["finished"]) == ("fedavg", "5", "true")
    assert json.loads(said["row"])["accuracy"] == 0.2
    command("export", path, "-o", "m.pt")
    assert torch.equal(torch.load("m.pt", weights_only=True)["w"], want["w"])
    assert "only runs with --keep-best" in command("export", path, "-o", "m.pt", "--best", status=2)
    best, row = {"w": torch.tensor([5.0])}, '{"round": 1}'
    seal = {"row": row, "checksum": str(zlib.crc32(row.encode(), checksum(best.items())))}
    save_file(best, path / "best.safetensors", metadata=seal)
    command("export", path, "-o", "m.safetensors", "--best")
    assert load_file("m.safetensors")["w"].item() == 5
    with safe_open("m.safetensors", "pt") as file:
        assert file.metadata()["row"] == row


def test_export_of_rows(command, two_algorithms, tmp_path):
    """CSV, Parquet and JSON lines have the same rows; several runs have their settings too."""
    rows = load_all("runs").to_rows()
    command("export", "runs", "-o", "rows.parquet")
    assert pyarrow.parquet.read_table("rows.parquet").to_pylist() == rows
    command("export", "runs", "-o", "rows.csv")
    with open("rows.csv", encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["accuracy"]) for row in read] == [row["accuracy"] for row in rows]
    assert [row["algorithm"] for row in read] == [row["algorithm"] for row in rows]
    command("export", "runs/fedavg-1", "-o", "rows.jsonl")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == load("runs/fedavg-1").rows


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs", "-o", "m.pt"), "6 runs are given, but m.pt holds the parameters of one"),
        (("runs", "-o", "m.csb"), "Do you mean '.csv'"),
        (("runs/fedavg-1", "-o", "runs/fedavg-1/m.pt"), "in the folder of a run"),
        (("runs/fedavg-1", "-o", "runs/fedavg-1/config.toml/m.pt"), "is not a folder"),
        (("runs", "-o", "m.csv", "--best"), "best conflicts with m.csv"),
        (("none", "-o", "m.csv"), "none does not exist"),
    ],
)
def test_what_cannot_be_exported_is_one_line(command, two_algorithms, words, message):
    text = command("export", *words, status=2)
    assert message in text
    assert text.count("\n") == 1


def test_runs_that_differ_in_seeds_alone_name_them(command, stored):
    for seed in (1, 2):
        stored("fedavg", [0.1, 0.3], seed=seed)
    lines = command("compare", "runs/fedavg-1", "runs/fedavg-2").splitlines()
    assert "│ seed    │             1 │             2 │" in lines
    facts = json.loads(command("compare", "runs/fedavg-1", "runs/fedavg-2", "--json"))
    assert facts["settings"] == {"seed": [[1], [2]]}


def test_a_metric_of_one_run_can_be_compared(command, stored, tmp_path):
    """The group without it is last, and has no value there."""
    stored("fedprox", [], rows=rows_of([0.1, 0.3]))
    stored("fedavg", [], rows=rows_of([0.1, 0.3], macro_f1=0.25))
    words = "runs/fedprox-1", "runs/fedavg-2", "--field", "macro_f1"
    values = [row["final"] for row in json.loads(command("compare", *words, "--json"))["table"]]
    assert values == [None, 0.25]
    assert [line.split("│")[4].strip() for line in command("compare", *words).splitlines()
            if "runs/" in line and "│" in line and "0.3" in line] == ["-", "0.250"]  # fmt: skip
    table = json.loads(command("table", "runs", "--field", "macro_f1", "--json"))
    assert [row["final"] for row in table] == [0.25, None]


@pytest.mark.parametrize("file", ["x.png", "x.safetensors", "x.pt", "x.csv", "x.jsonl"])
def test_a_full_disk_leaves_nothing(file, command, stored, tmp_path):
    """One line names the file, and nothing of it is left."""
    stored("fedavg", [0.1, 0.3])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    words = ["plot" if file == "x.png" else "export", "runs/fedavg-1", "-o", file]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        assert main(words) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*tmp_path.glob(f"{file}*")]


def test_names_in_folders_do_not_control_the_terminal(command, stored, tmp_path):
    """Not those of folders, data sets, settings, versions, fields or given objects."""
    escape = "\x1b]0;x\x07\x1b[31m\x9b"
    path = stored("fedavg", [], rows=rows_of([0.1, 0.3], **{f"my{escape}": 1.0}))
    about = json.loads((path / "about.json").read_text())
    about |= {"python": escape, "data": {escape: escape}, "named": {f"model {escape}": escape}}
    (path / "about.json").write_text(json.dumps(about))
    named = path.rename(path.with_name(f"a{escape}"))
    other = stored("fedavg", [0.1, 0.3], lr=0.2)
    for words in (
        ["runs"], ["show", named], ["table", "runs", "--field", f"my{escape}"],
        ["compare", named, other], ["export", "runs", "-o", f"x{escape}.csv"],
    ):  # fmt: skip
        text = command(*words)
        assert not {"\x1b", "\x07", "\x9b"} & {*text}
        assert r"\x1b]0;x\x07\x1b[31m\x9b" in text
    assert r"runs/b\x1b]0;x" in command("show", f"runs/b{escape}", status=2)
