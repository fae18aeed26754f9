"""The reference names everything that is public."""

import importlib
import inspect
import re

import pytest

import wirelessfl
from tests.docs.pages import GUIDES

PUBLIC = [
    *("channels", "solvers", "wirelessfl", "wirelessfl.extend", "wirelessfl.data"),
    *("wirelessfl.models", "wirelessfl.losses", "wirelessfl.metrics", "wirelessfl.observers"),
    *("wirelessfl.results", "wirelessfl.theory", "wirelessfl.bridges"),
]
ENTRY = re.compile(r"^    ([a-zA-Z_][\w, ]*?)(?:  .*)?$", re.MULTILINE)


@pytest.mark.parametrize("name", ["channels", "solvers", "wirelessfl"])
def test_help_lists_every_public_name_once(name):
    module = importlib.import_module(name)
    listed = [n for entry in ENTRY.findall(module.__doc__) for n in entry.split(", ")]
    listed = [n for n in listed if n not in ("channels", "solvers")]  # packages to look at
    public = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    assert sorted(listed) == sorted(public)
    width = max(len(line) for line in module.__doc__.splitlines())
    assert width <= 100


@pytest.mark.parametrize("name", PUBLIC)
def test_no_signature_shows_the_environment(name):
    """A default such as os.environ would be printed with its values on the pages."""
    module = importlib.import_module(name)
    for public in (n for n in dir(module) if n[0] != "_"):
        value = getattr(module, public)
        methods = [getattr(value, n, None) for n in dir(value)] if inspect.isclass(value) else []
        for function in filter(callable, [value, *methods]):
            try:
                signature = str(inspect.signature(function))
            except (TypeError, ValueError):  # those of C have none
                continue
            assert "environ(" not in signature, f"{name}.{public}"


ROWS = GUIDES.parent / "reference" / "rows.md"
SMALL = {"dataset": "digits", "clients": 4, "local_steps": 1, "rounds": 1}
RUNS = [
    ("hfedavg", {"cells": 2, "uplink": "ofdma", "allocation": "optimal"}),
    ("fedavg", {"validation_fraction": 0.1, "metric": "macro-f1", "cutoff_seconds": 1.0}),
    ("fadamgc", {"uplink": "aircomp"}),
    ("fedavg", {"uplink": "aircomp", "convention": "majority"}),
    ("fedbuff", {"buffer": 2, "max_staleness": 3}),
    ("fedavg", {"uplink_compression": "sign", "downlink_compression": "sign"}),
    ("hfedavg", {"cells": 2, "schedule": "buffered", "buffer": 1}),
    ("fedavg", {"sessions": 2}),
    ("fedavg", {"battery_joules": 100.0, "availability_trace": "stays.csv"}),
]
"""Runs that have all fields together; those of redesigned runs come besides."""


class Same(wirelessfl.Redesign):
    """Changes nothing."""

    every = 1

    def decide(self, run):
        return run.settings


def first_column(heading):
    """The names in the first column of the table below a heading of the page on rows."""
    section = ROWS.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_page_on_rows_has_every_field(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stays.csv").write_text("client,begin,end\n0,0,\n1,0,\n")
    fields = set()
    for algorithm, settings in RUNS:
        config = wirelessfl.Config.from_flags(algorithm, **{**SMALL, **settings})
        fields.update(*wirelessfl.run(config).rows)
    config = wirelessfl.Config.from_flags("hfedavg", cells=2, **SMALL)
    fields.update(*wirelessfl.run(config, redesign=Same()).rows)
    listed = first_column("Fields of rows")
    assert fields - {"macro_f1", "validation_macro_f1"} == {*listed}
    assert "macro_f1" in re.findall(r"`(\w+)`", ROWS.read_text(encoding="utf-8"))


def test_the_page_on_rows_has_every_column_of_the_client_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = {"client_log": True, "battery_joules": 100.0}
    config = wirelessfl.Config.from_flags("fedavg", **flags, **SMALL)
    folder = wirelessfl.run(config).directory
    columns = (folder / "clients.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert sorted(first_column("Fields of the client log")) == sorted(columns)
