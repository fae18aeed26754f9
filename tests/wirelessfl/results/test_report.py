"""The page on stored runs: what it contains, as a parser reads it, against rows and logs."""

import base64
import gzip
import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.abc import MetaPathFinder

import numpy as np
import pytest

import wirelessfl
from tests.wirelessfl.results.conftest import rows_of
from wirelessfl import load_all, read_client_log
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.results import Runs
from wirelessfl.results.report_figures import POINTS, looks_of_cases

LOADING = ("src", "href", "srcset", "data", "poster", "action", "background", "xlink:href")
OWN = """
import torch


def net(features, classes):
    return torch.nn.Linear(features, classes)
"""
LIMIT = 2_000_000
"""Bytes of a page on 20 runs."""


class Page(HTMLParser):
    """The tables, attributes, scripts and texts of a page."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.attributes, self.facts, self.text = [], [], "", ""
        self.tables, self.inside, self.in_cell = [], None, False
        self.size = file.stat().st_size
        self.feed(file.read_text(encoding="utf-8"))
        self.facts = json.loads(self.facts)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        self.inside = "facts" if ("id", "facts") in attributes else tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        self.inside = None if tag in ("script", "style") else self.inside
        self.in_cell = self.in_cell and tag not in ("th", "td")

    def handle_data(self, data):
        if self.inside == "facts":
            self.facts += data
        elif self.inside not in ("script", "style"):
            self.text += data
        if self.in_cell:
            self.tables[-1][-1][-1] += data.strip()

    def lines(self, name):
        """Columns of each line of a figure, by its title and whether it is a mean."""
        (plot,) = self.facts["figures"]["items"][name]["doc"]["roots"]
        lines = []
        for renderer in plot["attributes"]["renderers"]:
            about = renderer["attributes"]
            if "data" in about["data_source"].get("attributes", {}):
                entries = about["data_source"]["attributes"]["data"]["entries"]
                columns = {key: decoded(value) for key, value in entries}
                lines.append((about["name"], about["tags"][1], columns))
        return lines


def decoded(value):
    """The numbers of a stored array."""
    raw = gzip.decompress(base64.b64decode(value["array"]["data"]))
    return np.frombuffer(raw, value["dtype"])


@pytest.fixture
def page(tmp_path):
    """Write the page on some runs, and read it."""

    def read(runs, **options):
        return Page(runs.report(tmp_path / "report.html", **options))

    return read


def test_the_page_loads_nothing(two_algorithms, tmp_path):
    """No attribute, style or policy lets a browser load anything from elsewhere."""
    file = load_all(two_algorithms).report(tmp_path / "report.html")
    page = Page(file)
    assert [(name, value) for name, value in page.attributes if name in LOADING] == []
    assert {"link", "img", "iframe", "object", "embed", "base"} & {*page.tags} == set()
    policy = next(value for _, value in page.attributes if value and "default-src" in value)
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    style = file.read_text().split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_tables_are_those_of_the_runs(two_algorithms, page):
    """Costs of targets equal ``Runs.table``; the list equals the summaries."""
    runs = load_all(two_algorithms)
    targets, listed = page(runs, targets=[0.8, 0.9]).tables[::2]
    lines = iter(targets[1:])
    for target in (0.8, 0.9):
        table = runs.table(target=target, sort="seconds")
        assert next(lines) == [f"accuracy {target:g}"]
        for row in table.rows:
            cells = dict(zip(table.headings, table.cells(row), strict=True))
            name = {"fedavg": "FedAvg", "fedprox": "FedProx"}[cells["algorithm"]]
            costs = [cells[cost] for cost in ("reached", "rounds", "seconds", "joules", "mib")]
            assert next(lines) == [name, *costs]
    assert next(lines, None) is None
    assert len(listed) == 1 + len(runs)
    for run, (folder, seed, state, _, accuracy, rounds, *costs) in zip(
        runs, listed[1:], strict=True
    ):
        summary = run.summary()
        assert (folder, int(seed), state) == (str(run.directory), run.settings["seed"], "finished")
        assert (float(accuracy), int(rounds)) == (summary["accuracy"], summary["round"])
        totals = [summary[name] for name in ("sim_seconds", "joules", "uplink_mib")]
        assert [float(cost) for cost in costs] == pytest.approx(totals, rel=5e-3)


def test_runs_that_differ_in_their_rounds(stored, tmp_path, page):
    """A setting named as a cost is a column of its own, and finds its case on the page."""
    stored("fedavg", (0.1, 0.8), seed=1, rounds=1)
    stored("fedavg", (0.1, 0.5, 0.9), seed=2, rounds=2)
    runs = load_all(tmp_path / "runs")
    rows = runs.table(target=0.8).rows
    assert [(row["rounds_setting"], row["rounds"]) for row in rows] == [(1, 1.0), (2, 2.0)]
    lines = page(runs, targets=[0.8]).tables[0]
    assert [line[:3] for line in lines[2:]] == [
        ["rounds 1", "1 of 1", "1"],
        ["rounds 2", "1 of 1", "2"],
    ]


def test_a_run_and_its_extended_copy(stored, tmp_path, page):
    """Runs that differ in their rounds alone are two cases; in one group they have a note."""
    stored("fedavg", (0.1, 0.8), rounds=1)
    stored("fedavg", (0.1, 0.8, 0.9), rounds=2)
    runs = load_all(tmp_path / "runs")
    lines = page(runs, targets=[0.9]).tables[0]
    assert [line[:3] for line in lines[2:]] == [
        ["rounds 2", "1 of 1", "2"],
        ["rounds 1", "0 of 1", "not reached"],
    ]
    together = page(runs, by="algorithm", targets=[0.8])
    assert together.tables[0][2][:3] == ["FedAvg", "2 of 2", "1"]
    assert "its runs differ in rounds" in together.text


def test_settings_that_differ(stored, tmp_path, page):
    """A line per setting, a column per group, dashes for settings without effect."""
    stored("fedavg", [0.1, 0.5])
    stored("hist", [0.1, 0.6], cells=2)
    stored("hist", [0.1, 0.6], cells=2, seed=2)
    read = page(load_all(tmp_path / "runs"))
    head, *lines = read.tables[1]
    by_name = {name: cells for name, *cells in lines}
    assert (head, by_name["cells"]) == (["setting", "FedAvg", "HIST"], ["-", "2"])
    assert "seed" not in by_name
    assert "Thin lines are seeds" in read.text
    assert "FedAvg, HIST on digits" in read.text
    assert "3 runs · seeds 1, 2" in read.text


def test_runs_of_one_seed_are_not_called_seeds(stored, tmp_path, page):
    """A note says so, in the page and in tables; other groups keep their words."""
    stored("fedavg", [0.1, 0.5])
    stored("fedavg", [0.1, 0.5])
    read = page(load_all(tmp_path / "runs"))
    assert "Thin lines are runs, thick ones their mean: at each point, every run has" in read.text
    assert "over the seeds" not in read.text
    assert "fedavg: its range is not one over seeds: several have 1" in read.text
    (case,) = load_all(tmp_path / "runs").cases()
    assert case.repeated_seeds == [1]
    stored("fedprox", [0.1, 0.5])
    assert [case.repeated_seeds for case in load_all(tmp_path / "runs").cases()] == [[1], []]


def test_curves_have_the_rows(two_algorithms, page):
    """Each seed has its rows, against all four axes, and each group the mean over its seeds."""
    runs = load_all(two_algorithms)
    lines = page(runs).lines("curves")
    assert [(name, mean) for name, mean, _ in lines] == [
        (name, mean) for name in ("FedAvg", "FedProx") for mean in (False, False, False, True)
    ]
    seeds = [columns for _, mean, columns in lines if not mean]
    for run, columns in zip(runs, seeds, strict=True):
        for field in ("round", "sim_seconds", "joules", "uplink_mib", "accuracy", "loss"):
            scale = 100 if field == "accuracy" else 1
            expected = [scale * row[field] for row in run.rows]
            np.testing.assert_allclose(columns[field], expected, rtol=1e-6)
    mean = lines[3][2]
    assert mean["round"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(mean["round accuracy"], [10, 110 / 3, 60, 70], rtol=1e-6)


@pytest.mark.thorough
def test_twenty_long_runs_have_less_than_two_megabytes(stored, page):
    """Long curves are thinned to even steps with their first and last row; tables use all rows."""
    rng = np.random.default_rng(1)
    runs = []
    for number in range(20):
        path = stored("fedavg", [], lr=0.1 * (1 + number // 2), seed=number % 2, rounds=400)
        rows = rows_of(rng.random(400).tolist(), step=rng.random() + 0.1)
        for row in rows:
            row["validation_accuracy"], row["validation_loss"] = rng.random(2).tolist()
        runs.append(replace(wirelessfl.load(path), rows=rows))
    runs = Runs(runs)
    read = page(runs)
    assert read.size < LIMIT
    assert f"more than {POINTS} evaluations are drawn with {POINTS}" in read.text
    (first, _, seed), *_, (_, _, mean) = read.lines("curves")[:3]
    assert first == "lr 0.1"
    assert len(seed["round"]) == POINTS
    assert seed["round"][[0, -1]].tolist() == [0, 399]
    assert set(np.diff(seed["round"])) == {2, 3}
    assert len(mean["sim_seconds"]) == POINTS
    assert {line[0] for line in read.tables[0][1:] if len(line) > 1} == {
        f"lr {0.1 * n:g}" for n in range(1, 11)
    }


def test_time_energy_and_clients_are_those_of_the_log(tmp_path, page):
    """Shares, rounds and stragglers equal the client log, and positions the network."""
    settings = {"clients": 6, "cells": 2, "rounds": 3, "local_steps": 1, "clients_per_round": 2,
                "layout": "hexagonal", "uplink": "aircomp", "target": 0.3, "client_log": True,
                "out": tmp_path / "logged"}  # fmt: skip
    run = wirelessfl.run(wirelessfl.Config.from_flags("hfedavg", **settings))
    log, read = read_client_log(run.directory), page(load_all(run.directory))
    seconds, joules = (text for name, text in read.attributes if name == "aria-label")
    assert f"computing {log['compute_seconds'].mean():.3g} s" in seconds
    assert f"sending {log['send_joules'].mean():.3g} J" in joules
    (clients,) = read.facts["clients"]
    columns = clients["columns"]
    assert columns["client"] == [0, 1, 2, 3, 4, 5]
    assert columns["rounds"] == np.bincount(log["client"], minlength=6).tolist()
    assert sum(columns["rounds"]) < 18, "not all take part"
    stragglers = log["client"][log["straggler"] > 0]
    assert columns["straggler"] == np.bincount(stragglers, minlength=6).tolist()
    assert columns["cell"] == [0, 0, 0, 1, 1, 1]
    assert clients["lines"] == log.lines()
    assert len(clients["stations"]) == 2
    place = np.array([columns["x"], columns["y"]]).T
    nearest = np.linalg.norm(place[:, None] - clients["stations"], axis=2).argmin(1)
    assert nearest.tolist() == columns["cell"], "clients are around their base stations"
    (line,) = [columns for _, _, columns in read.lines("air")[:1]]
    np.testing.assert_allclose(
        line["air_error"], [row.get("air_error", np.nan) for row in run.rows], rtol=1e-6
    )


def test_what_is_missing_is_said(stored, tmp_path, page):
    """No client log, no network, no target that was reached, no rows, a diverged model."""
    stored("fedavg", [0.5, 0.4])
    stored("fedavg", [0.5], seed=2, finished=False)
    stored("fedavg", [], seed=3, finished=False)
    rows = rows_of([0.5, 0.1])
    rows[1]["loss"] = None
    stored("fedavg", [], rows=rows, lr=7.0)
    (tmp_path / "own.py").write_text(OWN)
    stored("fedavg", [0.5, 0.4], model=f"{tmp_path}/own.py:net", lr=8.0)
    read = page(load_all(tmp_path / "runs"))
    assert "no run improved on its first evaluation" in read.text
    assert "2 unfinished" in read.text
    assert "fcnn, lr 7: no client log: train with --client-log" in read.text
    name, _, diverged = read.lines("curves")[-1]
    assert (name, diverged["accuracy"][0]) == ("fcnn, lr 7", 50)
    assert np.isnan([diverged["accuracy"][1], diverged["loss"][1]]).all()
    states = [line[2] for line in read.tables[-1][1:]]
    assert states.count("unfinished") == 2
    assert "-" in [line[4] for line in read.tables[-1]]
    missing = {clients["missing"][-1] for clients in read.facts["clients"]}
    assert ["add --trust" in text for text in missing].count(True) == 1


def test_texts_are_escaped(stored, tmp_path, monkeypatch, page):
    """A folder's name is text, in tables and in scripts."""
    path = stored("fedavg", [0.1, 0.5])
    path.rename(path.with_name("<script>x()<b>"))
    before = page(load_all(tmp_path / "runs"))
    assert before.tags.count("script") == 3
    assert "b" not in before.tags[: before.tags.index("script")]
    assert before.tables[-1][1][0].endswith("<script>x()<b>")
    assert before.facts["clients"][0]["title"].endswith("<script>x()<b>)")


def test_looks_tell_cases_apart():
    """Colours differ, or dashes do; on dark pages colours are light."""
    for labels in (["FedAvg", "HIST"], [f"HIST, cells {n}" for n in range(5)], list("abcdefghij")):
        for dark in (False, True):
            looks = looks_of_cases(labels)
            assert len({(look.dark if dark else look.light, *look.dash) for look in looks}) == len(
                labels
            )
    assert looks_of_cases(["FedAvg"])[0].light == "#000000"
    assert looks_of_cases(["FedAvg"])[0].dark > "#606060"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["runs", "-o", "a.pdf"], "output is a.pdf: name a .html file."),
        (["runs", "-o", "no/a.html"], "output is no/a.html: there is no folder no. Make it first."),
        (["none"], "none does not exist. Give a run folder"),
        (["empty"], "empty contains no run. Give a run folder"),
        (["runs", "--target", "0.5,2"], "target is 2.0: give an accuracy in (0, 1]"),
        (["runs", "--by", "speed"], "unknown setting 'speed'."),
        (["runs", "--field", "acc"], "field is 'acc', which no row has."),
        (["runs", "tasks"], "train other tasks: write a report of each."),
        (["runs", "regression"], "have no common measure: write a report of each."),
    ],
)
def test_bad_input_is_one_line(words, error, stored, tmp_path, monkeypatch, capsys):
    """No file is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    stored("fedavg", [0.1, 0.5])
    rows = [row | {"task": name} for row in rows_of([0.1]) for name in ("a", "b")]
    stored("fedavg", [], rows=rows).rename(tmp_path / "tasks")
    rows = [{k: v for k, v in row.items() if k != "accuracy"} for row in rows_of([0.1])]
    stored("fedavg", [], rows=rows).rename(tmp_path / "regression")
    assert main(["report", *words]) == 2
    text = capsys.readouterr().err
    assert error in text
    assert text.count("\n") == 1
    assert [*tmp_path.glob("*.html")] == []


def test_the_command_writes_the_page(stored, tmp_path, monkeypatch, capsys):
    """By default report.html; a second page replaces the first."""
    monkeypatch.chdir(tmp_path)
    stored("fedavg", [0.1, 0.5], target=0.4)
    for _ in range(2):
        assert main(["report", "runs"]) == 0
        assert capsys.readouterr().out == "written: report.html\n"
    assert ["accuracy 0.4"] in Page(tmp_path / "report.html").tables[0]


def test_without_bokeh_the_extra_is_named(stored, tmp_path, monkeypatch, capsys):
    """Before any run is read."""

    class Missing(MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name == "bokeh":
                raise ModuleNotFoundError("No module named 'bokeh'", name=name)

    for name in [name for name in sys.modules if name.partition(".")[0] == "bokeh"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    monkeypatch.chdir(tmp_path)
    assert main(["report", "none"]) == 2
    assert capsys.readouterr().err == (
        "ImportError: bokeh is not installed: pip install '.[report]'.\n"
    )
    stored("fedavg", [0.1])
    with pytest.raises(ImportError, match="bokeh is not installed"):
        load_all("runs").report("a.html")
    with pytest.raises(ConfigError, match="there are no runs"):
        Runs([]).report("a.html")
