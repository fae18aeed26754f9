"""A file that names code imports nothing unless it is trusted."""

import ast
import re
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
import tomli_w

import wirelessfl
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS, KINDS
from wirelessfl.config.named import import_paths
from wirelessfl.config.sections import SECTIONS

ROOT = Path(__file__).parents[3]
TEXT = re.compile(r"\bstr\b|Path|Literal")
EVIL = """
from pathlib import Path
from typing import get_type_hints
Path({marker!r}).write_text("imported")
Net = 3
"""
PATHS = ("evil:Net", "evil.py:Net")
NAMING = [
    {"algorithm": {"name": "PATH"}},
    {"algorithm": "PATH"},
    {"algorithm": {"name": "hist", "local": "PATH"}},
    {"algorithm": "fedavg", "dataset": "PATH"},
    *({"algorithm": "fedavg", kind: {"name": "PATH"}} for kind in KINDS),
    *({"algorithm": "fedavg", kind: "PATH"} for kind in KINDS),
    *(
        {"algorithm": "fedast", "task": [{"dataset": "digits"}, {key: "PATH"}]}
        for key in ("dataset", "model", "split", "algorithm")
    ),
    {"algorithm": "fedast", "task": [{"algorithm": "hist", "local": "PATH"}]},
    {"algorithm": "fedast", "task": ["digits,model=PATH"]},
    {"algorithm": "fedast", "task": ["PATH"]},
]


def filled(tables, path):
    """The tables with ``path`` in the place of PATH."""
    if isinstance(tables, dict):
        return {key: filled(value, path) for key, value in tables.items()}
    if isinstance(tables, list):
        return [filled(value, path) for value in tables]
    return tables.replace("PATH", path)


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A function that tells, once, whether the module evil.py in the current folder was imported.

    The folder is also on the path, as in an interactive session.
    """
    marker = tmp_path / "marker"
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(marker)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def imported():
        found = marker.exists()
        marker.unlink(missing_ok=True)
        for name in [name for name in sys.modules if name.endswith("evil")]:
            del sys.modules[name]
        return found

    yield imported
    imported()


def command(*words):
    """Function that runs a command, and returns its error; with --trust if its argument is true."""

    def start(trust, capsys):
        capsys.readouterr()
        with suppress(SystemExit):  # of --help
            main([*words, *["--trust"] * trust])
        return capsys.readouterr().err

    return start


def from_python(act):
    """Function that calls ``act`` with the argument ``trust``, and returns its error."""

    def start(trust, capsys):
        try:
            act(trust)
        except ConfigError as error:
            return f"ConfigError: {error}\n"
        return ""

    return start


ENTRIES = {
    "run": command("run", "--config", "run/config.toml"),
    "run with a flag": command("run", "--config", "run/config.toml", "--seed", "2"),
    "sweep": command("sweep", "--config", "run/config.toml", "--seed", "1,2"),
    "timeline": command("timeline", "--config", "run/config.toml"),
    "help": command("run", "--config", "run/config.toml", "--help"),
    "help of sweep": command("sweep", "--config", "run/config.toml", "--help"),
    "resume": command("resume", "run"),
    "Config.from_toml": from_python(
        lambda trust: Config.from_toml(Path("run/config.toml"), trust=trust)
    ),
    "wirelessfl.run": from_python(lambda trust: wirelessfl.run("run/config.toml", trust=trust)),
    "wirelessfl.resume": from_python(lambda trust: wirelessfl.resume("run", trust=trust)),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_command_refuses_a_file_that_names_code(entry, evil, capsys):
    """One line names file, setting, import path and remedy, before anything is imported."""
    Path("run").mkdir()
    for path in PATHS:
        Path("run/config.toml").write_text(f'[algorithm]\nname = "fedavg"\n[model]\nname="{path}"')
        error = ENTRIES[entry](False, capsys)
        assert not evil()
        assert error.startswith("ConfigError: run/config.toml: model is ")
        assert f"{path!r}" in error
        assert "add --trust, or in Python trust=True" in error
        assert error.count("\n") == 1
        ENTRIES[entry](True, capsys)
        assert evil(), "the file is trusted"


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("tables", NAMING, ids=str)
def test_every_kind_of_choice_is_refused(tables, evil, tmp_path):
    file = tmp_path / "settings.toml"
    for path in PATHS:
        file.write_text(tomli_w.dumps(filled(tables, path)))
        with pytest.raises(ConfigError, match="and importing it runs code"):
            Config.from_toml(file)
        assert not evil()
        with pytest.raises(ConfigError, match=r"settings\.toml: "):
            Config.from_toml(file, trust=frozenset({"good:Net"}))
        assert not evil()


def test_no_setting_imports_what_a_file_names(evil, tmp_path):
    """All settings that accept text, with an import path as their value."""
    choices = {kind: known.classes() for kind, known in KINDS.items()}
    choices["algorithm"] = algorithm_classes()
    places = [
        {section: {key: "evil:Net"}}
        for section, owner in SECTIONS.items()
        for key, hint in get_type_hints(owner).items()
        if TEXT.search(str(hint))
    ]
    places += [
        {kind: {"name": name, entry.name: "evil:Net"}}
        for kind, classes in choices.items()
        for name, owner in classes.items()
        for entry in fields(owner)
        if TEXT.search(str(entry.type))
    ]
    keys = {key for place in places for table in place.values() for key in table}
    places += [{"task": [{key: "evil:Net"}]} for key in sorted(keys | choices.keys())]
    assert len(places) > len(choices)
    file = tmp_path / "settings.toml"
    for place in places:
        file.write_text(tomli_w.dumps({"algorithm": "fedavg"} | place))
        with suppress(ConfigError):
            Config.from_toml(file)
        assert not evil(), place


def test_names_that_are_no_import_paths_need_no_trust(tmp_path):
    """Devices, tokenizers and names of tasks may contain colons, and folders too."""
    tables = {
        "algorithm": "fedavg",
        "run": {"device": "cuda:0"},
        "dataset": {"name": "./my:images", "tokenizer": "words:100"},
        "given": {"data": "their:data"},
        "task": [{"name": "evil:one", "dataset": "digits"}],
    }
    assert list(import_paths(tables)) == []
    assert DEFAULTS.keys() <= KINDS.keys()


def test_settings_typed_or_given_as_objects_are_trusted(evil):
    Path("run").mkdir()
    Path("plain.toml").write_text('algorithm = "fedavg"')
    for words in (["--model", "evil:Net"], ["--config", "plain.toml", "--model", "./evil.py:Net"]):
        assert main(["run", "fedavg", *words]) == 2
        assert evil()
    with pytest.raises(ConfigError, match="cannot be built"):
        wirelessfl.run({"algorithm": "fedavg", "model": "evil:Net"})
    assert evil()


OWN = """
from torch import nn
def make(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
"""


def test_a_sweep_trusts_only_what_its_own_settings_name(evil, tmp_path, capsys):
    """It reads its finished runs without --trust, but imports nothing that a stored file adds."""
    Path("own_model.py").write_text(OWN)
    words = ["sweep", "fedavg", "--model", "./own_model.py:make", "--seed", "1,2", "--rounds", "1"]
    words += ["--clients", "2", "--local-steps", "1", "--threads", "1", "--out", "runs"]
    assert main(words) == 0
    assert "reading" not in capsys.readouterr().err
    assert main([*words, "--json"]) == 0
    assert "reading 2 finished runs from runs (seed 1; seed 2), executing 0" in (
        capsys.readouterr().err
    )
    stored = next(Path("runs").glob("*/config.toml"))
    stored.write_text(stored.read_text().replace("own_model.py:make", "evil.py:Net"))
    assert main(words) == 2
    assert "and importing it runs code" in capsys.readouterr().err
    assert not evil()


def test_the_current_folder_is_searched_only_for_the_users_modules(monkeypatch, tmp_path, capsys):
    """Otherwise a file in it could stand for a package that is not installed."""
    monkeypatch.chdir(tmp_path)
    Path("plain.toml").write_text('algorithm = "no-such"')
    for words, searched in (
        (["resume", "nowhere"], False),
        (["run", "--config", "plain.toml"], False),
        (["plot", "runs/2026-11-28T16:22", "-o", "x.png"], False),
        (["run", "no-such", "--out", "a:b", "--device", "cuda:0"], False),
        (["run", "--config", "plain.toml", "--trust"], True),
        (["run", "fedavg", "--model", "no_such:Net"], True),
    ):
        path = [folder for folder in sys.path if folder not in ("", str(tmp_path))]
        monkeypatch.setattr(sys, "path", path)
        assert main(words) == 2
        assert (str(tmp_path) in sys.path) == searched


READERS = re.compile(r"eval|exec|(np|torch|torch\.jit|pickle|marshal|shelve|yaml)\.(loads?|open)")
OPTIONS = ("allow_pickle", "trust_remote_code")


def test_no_file_is_unpickled():
    """No module of the packages reads pickles, or lets other packages read pickles or run code."""
    found = []
    for package in ("channels", "solvers", "wirelessfl"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if not (READERS.search(text) or any(option in text for option in OPTIONS)):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                    unsafe = READERS.fullmatch(ast.unparse(node.func)) is not None
                    unsafe |= any(given.get(option, "False") != "False" for option in OPTIONS)
                    found += [f"{file.name}, line {node.lineno}"] * unsafe
    assert found == []
