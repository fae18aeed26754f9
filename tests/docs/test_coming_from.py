"""The page for users of other packages: our names exist, and flags of theirs are answered."""

import re
from importlib import import_module

import pytest

from tests.docs.pages import GUIDES
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.cli.flags import all_flags
from wirelessfl.config.choices import KINDS
from wirelessfl.config.synonyms import synonym
from wirelessfl.extend import FedAvg, Selection
from wirelessfl.observers import Observer

TEXT = (GUIDES / "coming-from.md").read_text(encoding="utf-8")
SETTINGS = {flag.name for flag in all_flags()} | {*KINDS}
CODE = re.compile(r"`([^`]+)`")


def rows(heading):
    """Cells of the tables below a heading."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def settings():
    """Our setting, and a name that another package has for it."""
    for heading in ("Flower", "FedLab", "FedScale", "pfl"):
        for theirs, ours in (cells for cells in rows(heading) if len(cells) == 2):
            flags = [word for word in CODE.findall(ours) if word.startswith("--")]
            names = [flag[2:].replace("-", "_") for flag in flags]
            for name in CODE.findall(theirs):
                if re.fullmatch(r"[a-z][a-z_-]*", name):
                    yield names, name


NOT_FLAGS = {"eta", "setup_optim", "partition"}
"""Names of the table that are functions, or mean different things in different packages."""


@pytest.mark.parametrize(("ours", "theirs"), [*settings()])
def test_an_unknown_flag_of_another_package_is_answered_with_ours(ours, theirs):
    assert {*ours} <= SETTINGS
    if theirs in NOT_FLAGS or theirs in ours:
        return
    meant = synonym(theirs, SETTINGS)
    assert meant is not None, theirs
    assert meant.setting in ours


def test_the_table_of_settings_is_read():
    names = {theirs for _, theirs in settings()}
    assert {"num-supernodes", "sample_ratio", "num_participants", "train_cohort_size"} <= names
    assert len(names) > 30


def test_our_flags_and_names_exist():
    cells = [
        cells[1]
        for heading in ("Flower", "FedLab", "FedScale", "pfl", "Sionna", "MATLAB")
        for cells in rows(heading)
    ]
    assert len(cells) > 50
    flags = {flag for cell in cells for flag in re.findall(r"--([a-z-]+)", cell)}
    known = SETTINGS | {"output", "jobs"}
    assert {flag for flag in flags if flag.replace("-", "_") not in known} == set()
    names = {name for kind in KINDS.values() for name in kind.classes()} | {*algorithm_classes()}
    methods = {*dir(FedAvg), *dir(Selection), *dir(Observer)}
    for cell in cells:
        words = {word for word in CODE.findall(cell) if re.fullmatch(r"[a-z][a-z-]*", word)}
        assert words <= names | methods | {"torchrun", "readtable"}, cell
        for kind, name in re.findall(r"--([a-z-]+) ([a-z-]+)`", cell):
            if kind.replace("-", "_") in KINDS:
                assert name in KINDS[kind.replace("-", "_")].classes(), cell
        for module, name in re.findall(
            r"\b((?:wirelessfl|channels|solvers)(?:\.[a-z]\w*)*)\.([A-Za-z]\w*)", cell
        ):
            assert hasattr(import_module(module), name), f"{module}.{name}"
