"""Each algorithm, model and data format of the papers has a command that runs without a download.

tests/test_docs_commands.py reads the settings of each command.
"""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from wirelessfl.cli import main
from wirelessfl.data import files

PAGE = (ROOT / "docs" / "results" / "offline.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^wirelessfl (run .*)$", PAGE, re.MULTILINE)]
PAPERS = ("hist", "fedast", "fadamgc", "dynamic_clients", "ra_fed")
STANDS_FOR = {
    "gpt2-lora": "gpt2-lora-tiny",
    "experiments.ra_fed.words:newsgroups": "20newsgroups",
} | {
    data: f"small_data:{shape}"
    for shape, names in {
        "grey28": ("mnist", "fashion-mnist"),
        "colour32": ("cifar10", "cifar10-jpeg", "cifar100", "svhn"),
    }.items()
    for data in names
}
"""What replaces a downloaded model, data from verified files only, and data of a study."""


def values(tables, setting):
    """All values of a setting in nested tables and lists."""
    if isinstance(tables, list):
        return {value for table in tables for value in values(table, setting)}
    if not isinstance(tables, dict):
        return set()
    value = tables.get(setting, [])
    named = {one for one in ([value] if isinstance(value, str) else value) if isinstance(one, str)}
    return named.union(*(values(table, setting) for table in tables.values()))


@pytest.mark.parametrize("setting", ["algorithm", "model", "dataset", "warm_start"])
def test_everything_that_the_papers_studies_name_has_a_command(setting):
    named = set()
    for paper in PAPERS:
        for file in (ROOT / "experiments" / paper / "settings").glob("*.toml"):
            named |= values(tomllib.loads(file.read_text(encoding="utf-8")), setting)
    assert len(named) > 5
    shown = {word for words in COMMANDS for word in words}
    shown |= {part for word in shown for part in re.split(r"[,=]", word)}
    assert {STANDS_FOR.get(name, name) for name in named} - shown == set()


@pytest.mark.thorough
def test_the_commands_run(tmp_path, monkeypatch):
    """On the files that the page's script writes, without transformers' hub and other data."""
    (code,) = re.findall(r"```python file=small_data\.py\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("urllib.request.urlopen", None)
    Path("small_data.py").write_text(code, encoding="utf-8")
    namespace = {"__name__": "small_data"}
    exec(code, namespace)
    namespace["write"](tmp_path / "small")
    failed = []
    for number, words in enumerate(COMMANDS):
        if main([*words, "--quiet", "--threads", "1", "--out", f"run{number}"]) != 0:
            failed.append(" ".join(words))
    assert failed == []
    assert len(list(tmp_path.glob("run*/rows.jsonl"))) == len(COMMANDS)
