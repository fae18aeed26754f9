"""The command line, with arguments as a user would type them."""

import errno
import importlib
import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from wirelessfl.cli import main
from wirelessfl.cli.main import GONE
from wirelessfl.cli.output import TOTALS, closing_table, submodels_line, summary_cells
from wirelessfl.config import Config

main_module = importlib.import_module("wirelessfl.cli.main")  # its name is that of the function

SMALL = (
    "--dataset digits --clients 4 --cells 2 --rounds 2 --local-steps 2 --edge-rounds 2 "
    "--batch-size 8 --threads 1"
).split()


def test_run_prints_a_table_and_json(tmp_path, capsys):
    out = tmp_path / "first"
    assert main(["run", "hist", *SMALL, "--target", "0.01", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "hist" in shown.out
    assert "accuracy" in shown.out
    assert len(shown.err.splitlines()) == 3  # without a terminal, a line per row and no bar
    assert main(["resume", str(out), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["round"] == 2
    assert summary["rounds_to_target"] == 0
    assert summary["directory"] == str(out)
    second = tmp_path / "second"
    words = ["run", "--config", str(out / "config.toml"), "--seed", "9", "--out", str(second)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["directory"] == str(second)
    third = tmp_path / "third"  # fedavg is a star, so the file's cells are dropped
    words = ["run", "fedavg", "--config", str(out / "config.toml"), "--out", str(third)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "fedavg"
    assert "cells" not in (third / "config.toml").read_text()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "hits"], "ConfigError: algorithm 'hits' is unknown"),
        (["run"], "ConfigError: no algorithm"),
        (["run", "hist", "--cells", "0"], "ConfigError: network.cells is '0'"),
        (
            ["run", "hist", "--dataset", "mnist", "--data-dir", "/nowhere"],
            "DataError: /nowhere/mnist",
        ),
        (["run", "hist", "--dataset", "digit"], "ConfigError: data set 'digit' is unknown"),
        (["run", "hist", "--model", "lenet5"], "28x28"),
        (["run", "hist", "--clients", "2000", "--cells", "4"], "DataError"),
        (["run", "hist", "--device", "tpu9"], "ConfigError: device 'tpu9' cannot be used"),
        (["run", "hist", "--device", "gpu"], "torch has no such device. Do you mean 'cuda'?"),
        (["run", "hist", "--snr-db", "5000"], "ConfigError: network: snr_db[0] is 5000.0"),
        (
            ["run", "fedavg", "--bandwidth-hz", "2e-303"],
            "network: bandwidth_hz[0] is 2e-303",
        ),
        (
            ["run", "hist", "--cpu-hz", "1e9"],
            "network.cpu_hz is '1e9': give two numbers, LOW,HIGH",
        ),
        (["run", "hist", "--device", "meta"], "ConfigError: device 'meta' cannot be used"),
        (["run", "hist", "--dataset", "os:getcwd"], "data set 'os:getcwd'"),
        (["run", "hist", "--model", "math:pi"], "model 'math:pi' cannot be built"),
        (["run", "hist", "--hidden", "1" + 18 * "0"], "Storage size calculation overflowed"),
        (["run", "hist", "--layers", "one,two"], "layers: 'one' is not an nn.Linear"),
        (
            ["run", "hfedavg", "--layers", "fc1,fc2"],
            "layers=('fc1', 'fc2') conflicts with algorithm \"hfedavg\", which does not "
            'split layers: choose "hist" or "ra-fed", or leave layers out.',
        ),
        (["run", "fedavg", "--cells", "1"], "ConfigError: cells=1 conflicts with algorithm"),
        (["run", "hist", "--out", "/proc/x"], "ConfigError: out is /proc/x"),
        (["run", "hist", "--layers", "layers.1"], "layers is 'layers.1': name at least two"),
        (["run", "hist", "--split", "natural"], 'DataError: split "natural" needs groups'),
        (["run", "--config", "/nowhere.toml"], "ConfigError: configuration /nowhere.toml"),
        (["run", "fedavg", "--chunk", "inf"], "run.chunk"),
        (["run", "fedavg", "--target", "80"], "give a number > 0 and <= 1 (0.8 for 80 %), or name"),
        (
            ["run", "fedavg", "--seed", "1,2"],
            "number >= 0. For a run of each value, use wirelessfl",
        ),
        (["run", "fedavg", "--uplink", "tdma,ofdma"], "unknown. For a run of each value, use wire"),
        (
            ["run", "fedavg", "--switched-capacitance", "1", "--cpu-hz=1e154,1e154"],
            "ConfigError: network: cpu_hz[0] is 1e+154: give a finite number > 0",
        ),
        (
            ["run", "fedavg", "--transmit-power-w", "23"],
            "transmit_power_w is 23: give at most 10 W (40 dBm). For dBm, give transmit_power_dbm",
        ),
        (["run", "fedavg", "--clients", "99999999999999"], "and at most 1,000,000,000"),
        (
            ["run", "fedavg", "--hidden", "9999999999999"],
            "MemoryError: the settings need more memory",
        ),
        (["resume", "/nowhere"], "ConfigError: /nowhere is not a run directory"),
        (["resume", "a" * 300], "is not a run directory"),
        (["run", "fedavg", "--out", "a" * 300], "aaa: File name too long. Choose another folder."),
        (
            ["run", "fedavg", "--dataset", "./" + "a" * 300],
            "train: File name too long",
        ),
        (["run", "fedast", "--task", "digits,lr"], "follow the data set as name=value"),
        (["bench", "--repeats", "0"], "ConfigError: repeats is 0"),
    ],
)
def test_user_errors_print_one_line_and_return_status_2(
    words, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_large_numbers_leave_room_for_other_columns():
    """38148285969094608.000 J took the column of the run at 80 characters."""
    cells = summary_cells(dict.fromkeys(TOTALS, 3.814828596909461e16), TOTALS)
    assert max(map(len, cells)) <= 8
    joules = {"joules": TOTALS["joules"]}
    assert summary_cells({"joules": 5.2}, joules) == ["5.200"]
    assert summary_cells({"joules": 0.0013149}, joules) == ["0.00131"]
    assert summary_cells({"joules": 0.0}, joules) == ["0.000"]


def test_names_of_own_classes_are_whole_at_80_characters():
    """They have two lines where one is too short, and no folder."""
    summary = dict.fromkeys(TOTALS, 1e3) | {"round": 2, "target": None}
    names = ("/home/me/study/algorithms.py:Nova", "/home/me/study/algorithms.py:NovaWithMomentum")
    file = io.StringIO()
    drawn = closing_table([summary | {"algorithm": name} for name in names])
    Console(file=file, width=80).print(drawn)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    column = "".join(line.split("│")[1].strip() if "│" in line else "" for line in lines)
    assert column == "algorithms.py:Novaalgorithms.py:NovaWithMomentum"


def test_samples_are_reused_only_with_the_flag(tmp_path):
    words = ["--split", "dirichlet", "--samples-per-client", "1000"]
    assert main(["run", "hist", *SMALL, *words, "--out", str(tmp_path / "once")]) == 2
    assert main(["run", "hist", *SMALL, *words, "--reuse", "--out", str(tmp_path / "again")]) == 0
    assert "reuse = true" in (tmp_path / "again" / "config.toml").read_text()


def test_help_explains_flags_with_units(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        main(["run", "hist", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for part in (
        "--bandwidth-hz X       bandwidth per cell, Hz [9e6]\n",
        "--mask-sizes NAME      sizes of the cells' submodels: uniform, fixed by\n",
        "latency (19) [uniform]\n",
        "multiple access of the uplink: aircomp, fixed, ofdma,\n",
    ):
        assert part in text
    with pytest.raises(SystemExit):
        main(["run", "fedavg", "--help"])
    assert "--mask-sizes" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", "ra-fed", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--capacities X,..." in text
    assert "[1,0.5,0.25,0.125]" in text  # in the format that the flag accepts


@pytest.mark.parametrize(
    ("words", "default"),
    [
        (["fedbuff"], "merge [10]"),
        (["scaffold", "--schedule", "buffered"], "merge [3]"),
        (["sync-st"], "all [30]"),
        (["fedbuff", "--schedule", "simultaneous"], "all [0]"),
    ],
)
def test_help_shows_defaults_implied_by_the_algorithm(capsys, words, default):
    with pytest.raises(SystemExit):
        main(["run", *words, "--help"])
    assert default in " ".join(capsys.readouterr().out.split())


def test_list_prints_all_kinds_of_choices(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in ("fedavg", "hfedavg", "hist", "fashion-mnist", "lenet5", "tdma", "ofdma"):
        assert name in text


OWN_SPLIT = '''
from dataclasses import dataclass
from wirelessfl.extend import IID

@dataclass(frozen=True)
class Swapped(IID):
    """At random, then swapped."""

    name = "swapped"
    swaps: int = 0
'''


@pytest.mark.parametrize("splits", ["iid,own_swapped:Swapped", "own_swapped:Swapped,iid"])
def test_a_sweep_accepts_flags_of_every_listed_choice(splits, tmp_path, monkeypatch, capsys):
    (tmp_path / "own_swapped.py").write_text(OWN_SPLIT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["sweep", "hist", *SMALL, "--rounds", "1", "--json", "--out", "sweep"]
    assert main([*words, "--split", splits, "--swaps", "3"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["split"] for row in rows] == splits.split(",")


def test_a_sweep_names_the_flag_that_no_combination_uses(capsys):
    words = ["sweep", "hist", "--split", "noniid,dirichlet", "--alpha", "0.3", "--mu", "1"]
    assert main(words) == 2
    assert "mu='1' is a setting of local" in capsys.readouterr().err


def test_other_commands_accept_a_stored_configuration(tmp_path, capsys):
    first = ["run", "hist", *SMALL, "--rounds", "1", "--out", str(tmp_path / "hist")]
    assert main(first) == 0
    stored = str(tmp_path / "hist" / "config.toml")
    out = tmp_path / "star"
    # Settings of cells belong to the old algorithm, and are dropped.
    assert (
        main(["run", "fedast", "--config", stored, "--schedule", "buffered", "--out", f"{out}"])
        == 0
    )
    capsys.readouterr()
    words = ["timeline", "--config", str(out / "config.toml"), "--seconds", "1"]
    words += ["--picture", str(tmp_path / "work.png")]
    assert main(words) == 0
    assert (tmp_path / "work.pdf").exists()
    assert main([*words, "--out", "elsewhere"]) == 2
    assert "out=elsewhere conflicts with timeline" in capsys.readouterr().err


def test_other_broken_pipes_are_not_hidden(monkeypatch):
    """E.g. that of a worker."""

    def broken(words):
        raise BrokenPipeError("of a worker")

    monkeypatch.setattr(main_module, "_main", broken)
    with pytest.raises(BrokenPipeError, match="of a worker"):
        main(["list"])


def test_a_closed_pipe_ends_the_command_without_a_traceback():
    """As in `wirelessfl run hist --help all | head -1`."""
    words = [sys.executable, "-m", "wirelessfl", "run", "hist", "--help", "all"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == GONE[errno.EPIPE]


def test_a_setting_with_the_name_of_a_kind_has_a_prefix(tmp_path, monkeypatch):
    """Its flag would otherwise be that of the kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    words = "run own.py:Mine --clients 2 --rounds 1 --local-steps 1 --threads 1 --out run".split()
    assert main([*words, "--split", "iid", "--own-split", "0.7"]) == 0
    stored = Config.from_toml(tmp_path / "run" / "config.toml", trust=True)
    assert (stored.split.name, stored.algorithm.split) == ("iid", 0.7)


OWN = """
from dataclasses import dataclass
from wirelessfl.extend import FedAvg


@dataclass(frozen=True)
class Mine(FedAvg):
    split: float = 0.5
"""


def test_closing_lines_have_the_widths_of_submodels(tmp_path, capsys):
    """The sentence has what the settings and the last row say; other runs have none."""
    words = "--clients 4 --rounds 1 --local-steps 1 --batch-size 8 --threads 1 --quiet".split()
    command = ["run", "ra-fed", *words, "--capacities", "1,0.25", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "widths of submodels: 1, 0.25, dealt evenly over the clients. In the last" in text
    row = {"coverage": 2.0, "uncovered": 0.125}
    chosen = submodels_line({"budget": "deadline", "capacities": [1.0]}, row)
    assert chosen == (
        "widths of submodels: chosen in each round (budget deadline). In the last round, at least "
        "2 clients trained each covered parameter; 12.5 % of the parameters were not covered."
    )
    assert "0.5 of bytes, dealt" in submodels_line({"budget": "bytes", "capacities": [0.5]}, row)
    assert "submodels: 1, 0.5. In" in submodels_line({"widths": [1.0, 0.5], "budget": "width"}, row)
    assert submodels_line({"budget": "width"}, {}) is None
