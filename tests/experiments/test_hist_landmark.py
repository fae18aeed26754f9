"""The first evidence at smoke scale: the rows behind its table and figure."""

import tomllib

import pytest

from experiments.hist.__main__ import main
from experiments.hist.landmark import SETTINGS, accuracies, landmark, markdown, traffic
from experiments.runs import settings_hash
from wirelessfl.config import Config


def test_smoke(tmp_path, capsys):
    """Every case ran with every seed, with and without dropout; a second call runs nothing."""
    rows = landmark("smoke", tmp_path)
    cases = tomllib.loads(SETTINGS.read_text())["case"]
    assert set(rows) == {(case["label"], p) for case in cases for p in (0.0, 0.5)}
    for (label, _), seeds in rows.items():
        assert len(seeds) == 2
        assert seeds[0] != seeds[1]
        for run in seeds:
            assert [row["round"] for row in run] == [0, 1, 2, 3]
            cells = int(label[-1])
            full = 4 * 22_510 * 5 * 3 / 2**20  # FCNN 64-300-10, five edge rounds, three rounds
            share = 1.0 if label.startswith("HFedAvg") else 1 / cells
            assert run[-1]["uplink_mib"] == pytest.approx(full * share, rel=2e-3)
    assert rows["HIST, N = 2", 0.0] != rows["HIST, N = 2", 0.5]
    table = (tmp_path / "landmark.md").read_text()
    assert table.count("\n") == 2 * (2 + len(cases)) + 1
    assert "76.1 / 78.2 / 79.6" in table
    assert (tmp_path / "landmark.pdf").read_bytes()[:4] == b"%PDF"
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*.jsonl")}
    assert len(written) == 16
    main(["landmark", "--scale", "smoke", "--out", str(tmp_path)])
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.jsonl")} == written
    assert "dropout" in capsys.readouterr().out


def test_the_table_shows_means_over_seeds_at_the_rounds_asked():
    def run(*values):
        return [{"round": i, "accuracy": value} for i, value in enumerate(values)]

    assert accuracies(run(0.1, 0.2, 0.345), [1, 2]) == pytest.approx([20.0, 34.5])
    rows = {("A", 0.5): [run(0, 0.5), run(0, 0.6)], ("A", 0.0): [run(0, 0.7), run(0, 0.8)]}
    for run_rows in (run for seeds in rows.values() for run in seeds):
        for row in run_rows:
            row["uplink_mib"] = 2.0 * row["round"]
    assert traffic([{"label": "A"}], rows).splitlines()[-1] == "| A | - / - | - / 2.0 |"
    line = markdown([{"label": "A"}], rows, [1]).splitlines()[-1]
    assert line == "| A | - | 55.0 | 50.0; 60.0 | 75.0 | 70.0; 80.0 |"


def test_the_hash_tells_settings_apart_and_nothing_else(tmp_path):
    base = settings_hash(Config.from_flags("hist"))
    assert base == settings_hash(Config.from_flags("hist", out=tmp_path, data_dir=tmp_path))
    assert base != settings_hash(Config.from_flags("hist", seed=2))
    assert base != settings_hash(Config.from_flags("hfedavg"))
