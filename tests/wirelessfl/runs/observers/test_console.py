"""Bars on a terminal, one changing line in notebooks, otherwise a line per row."""

import io
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console as Terminal

import wirelessfl
from wirelessfl.cli import main
from wirelessfl.observers import Console, Observer
from wirelessfl.runs.observers import console
from wirelessfl.runs.observers.console import in_notebook, line_of

SMALL = "--clients 4 --rounds 2 --local-steps 1 --batch-size 8 --threads 1 --hidden 4".split()
ROW = {"round": 12, "accuracy": 0.8123, "loss": 0.5249, "sim_seconds": 34.12}


def test_a_line_has_round_metrics_and_time():
    assert line_of(ROW, "/30") == "round 12/30  accuracy 0.812  loss 0.52  34.1 s simulated"
    assert line_of(ROW | {"task": "a"}).startswith("a  round 12  accuracy")
    assert line_of(ROW | {"sim_seconds": 0.04127}).endswith("  0.0413 s simulated")
    assert line_of(ROW | {"loss": None}) == "round 12  diverged  34.1 s simulated"


def test_the_last_round_of_a_session_and_the_start_of_the_next_are_told_apart(config):
    """Both are tested, on the labels of their session, with the same number of rounds done."""
    out = io.StringIO()
    shown_lines = Console(Terminal(file=out, force_terminal=False, width=120))
    result = wirelessfl.run(
        config("fedavg", clients=4, sessions=2, rounds=1), observers=[shown_lines]
    )
    places = [(row["session"], row["round"]) for row in result.rows]
    assert len({*places}) == len(places) > len({number for _, number in places})
    assert [line.split("  ")[:2] for line in out.getvalue().splitlines()] == [
        [f"session {session}", f"round {number}/2"] for session, number in places
    ]
    assert "session 1  accuracy" in shown(config("fedavg"), True, [ROW | {"session": 1}])


def shown(config, terminal, rows=(ROW,), **options):
    stream = io.StringIO()
    console = Console(Terminal(file=stream, force_terminal=terminal, width=120), **options)
    run = SimpleNamespace(config=config, rows=[])
    console.begin(run)
    for row in rows:
        console.row(run, row)
    console.end(run)
    return stream.getvalue()


def test_a_terminal_gets_a_bar_and_other_streams_a_line(config):
    settings = config("fedavg", rounds=30)
    text = shown(settings, True)
    assert "fedavg on digits" in text
    assert "round 12/30 accuracy 0.812  34.1 s simulated" in text
    assert shown(settings, False) == line_of(ROW, "/30") + "\n"
    assert shown(settings, False, label="hist") == f"hist  {line_of(ROW, '/30')}\n"
    assert shown(settings, False, lines=False) == ""
    assert shown(settings, True, quiet=True) == shown(settings, False, quiet=True) == ""


def test_a_limit_of_time_counts_seconds_and_has_no_last_round(config):
    settings = config("fedavg", max_seconds=100.0)
    assert "second 34/100" in shown(settings, True)
    assert shown(settings, False).startswith("round 12  accuracy")


def test_notebooks_are_recognised_without_importing_ipython(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    assert "IPython" not in sys.modules
    for name, expected in (("ZMQInteractiveShell", True), ("TerminalInteractiveShell", False)):
        shell = type(name, (), {})()
        fake = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", fake)
        assert in_notebook() is expected


def test_a_plain_script_is_silent(config, toy, capsys):
    wirelessfl.run(config(), data=toy)
    assert capsys.readouterr() == ("", "")


def test_commands_write_a_line_per_row_unless_quiet(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["run", "fedavg", *SMALL, "--max-seconds", "1e-9"]
    assert main([*words, "--out", str(out)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:2] for line in lines] == [["round", "0"], ["round", "0"]]
    words = ["run", "fedavg", *SMALL]
    assert main([*words, "--out", str(tmp_path / "one")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"round {n}/2" for n in range(3)]
    assert main([*words, "--out", str(tmp_path / "two"), "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert "accuracy" in quiet.out
    assert main(["resume", str(out), "--quiet", "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_sweep_writes_a_line_per_finished_run_unless_quiet(tmp_path, capsys, quiet):
    words = ["sweep", "fedavg", *SMALL, "--seed", "1,2", "--out", str(tmp_path), "--keep-best"]
    assert main([*words, *quiet]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == (
        [] if quiet else ["seed 1: round 2", "seed 2: round 2"]
    )
    assert len([*tmp_path.glob("*/best.safetensors")]) == 2
    assert main([*words, *quiet]) == 0
    again = capsys.readouterr().err
    assert again == "" if quiet else again.startswith("reading 2 finished runs from")


@pytest.mark.parametrize(
    ("flags", "tested"),
    [({"eval_samples": 7}, "7 test samples"), ({}, "all test samples (fewer: --eval-samples N)")],
)
def test_a_run_that_starts_slowly_says_what_it_does(config, toy, monkeypatch, flags, tested):
    """The line comes before the first row, from a metric that waits for it; not in a quick run."""
    seen = io.StringIO()
    terminal = Console(terminal=Terminal(file=seen, width=120))
    settings = config("fedavg", rounds=1, **flags)
    wirelessfl.run(settings, data=toy, observers=[terminal])
    assert "evaluating" not in seen.getvalue()
    monkeypatch.setattr(console, "SILENT_SECONDS", 0.01)

    class Slow(Observer):
        def begin(self, run):
            time.sleep(0.5)

    again = config("fedavg", rounds=1, **flags)
    wirelessfl.run(again, data=toy, observers=[terminal, Slow()])
    lines = seen.getvalue().splitlines()
    assert lines[-3].startswith(f"evaluating the initial model on {tested}")
