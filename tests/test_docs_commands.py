"""The command line accepts every command in a fenced block of the README and docs/."""

import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from wirelessfl.base.import_paths import is_import_path
from wirelessfl.base.registry import import_path
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.checking.kinds import CHECKED, kind_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)(?: file=(\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
TORCHRUN = re.compile(r"^torchrun .* -m -- ")
EXPERIMENT = re.compile(r"python -m (experiments(?:\.\w+)?) ([^`\n]+)")


READING = ("runs", "show", "compare", "table", "plot", "report", "export")
"""Commands that read stored runs; tests/test_docs.py executes those of docs/guides."""


class ReadError(Exception):
    """Raised instead of training, with the configuration or a sweep's configurations."""


def commands(page):
    """The commands in plain blocks, one per line, without comments, redirections and output."""
    for language, file, code in FENCED.findall(page.read_text(encoding="utf-8")):
        if not (language or file):
            for line in code.replace("\\\n", "").splitlines():
                words = shlex.split(TORCHRUN.sub("", line).partition(" > ")[0], comments=True)
                if words and words[0] == "wirelessfl":
                    yield words[1:]


CASES = [(page, words) for page in PAGES for words in commands(page)]


def made(page, flag):
    """What the commands of a page write, by a flag that names it: the words of each command."""
    return {w[w.index(flag) + 1]: w for p, w in CASES if p == page and flag in w}


@pytest.fixture
def untrained(monkeypatch):
    """Make commands stop after reading their settings, before they train or simulate."""

    def read(configs, *args, **kwargs):
        raise ReadError(configs)

    for module in ("runs.kept", "designs.design"):  # they must not import what is replaced here
        importlib.import_module(f"wirelessfl.{module}")
    for module, name in (
        ("runs.run", "run"),
        ("runs.sweep", "sweep"),
        ("runs.timeline", "timeline"),
        ("runs.pricing.round_timeline", "round_timeline"),
        ("runs.pricing.options", "plan"),
        ("designs.design", "design"),
        ("designs.pilot_plan", "planned"),
        ("results.elsewhere", "price_over"),
    ):
        monkeypatch.setattr(importlib.import_module(f"wirelessfl.{module}"), name, read)
    monkeypatch.setattr("wirelessfl.cli.doctor.SECONDS", 0.01)


@pytest.mark.parametrize(("page", "words"), CASES, ids=lambda value: getattr(value, "name", None))
def test_commands_build_their_configuration(page, words, tmp_path, monkeypatch, untrained):
    """Commands that train have valid settings; the same page makes the runs that are continued.

    So it does the runs that are priced, and the designs that are trained.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for _, file, code in FENCED.findall(page.read_text(encoding="utf-8")):
        if file:
            Path(file).write_text(code, encoding="utf-8")
    if words[0] in ("list", "budget", "doctor", "completion"):
        assert main(words) == 0
    elif words[0] == "check":
        for path in (word for word in words if is_import_path(word)):
            assert kind_of(import_path("object", path)) in CHECKED
    elif words[0] in READING:
        monkeypatch.setattr(f"wirelessfl.cli.{words[0]}.act", lambda arguments: 0)
        assert main(words) == 0
    elif words[0] == "resume":  # a run that another command of the page creates
        assert words[1] in made(page, "--out")
    elif words[0] == "price":  # of a run that another command of the page creates
        assert words[1] in made(page, "--out")
        module = importlib.import_module("wirelessfl.results.load")
        monkeypatch.setattr(module, "load", lambda directory, **options: directory)
        with pytest.raises(ReadError) as read:
            main(words)
        assert str(read.value.args[0]) == words[1]
    else:
        file = words[words.index("--config") + 1] if "--config" in words else None
        saved = made(page, "--save").get(file)
        if saved is not None:  # a design; the settings that it begins with stand in its place
            with pytest.raises(ReadError) as read:
                main(saved)
            Path(file).write_text(read.value.args[0].to_toml(), encoding="utf-8")
        with pytest.raises(ReadError) as read:
            main(words)
        configs = read.value.args[0]
        for config in [configs] if isinstance(configs, Config) else configs:
            assert config.named("algorithm") in (saved or words)[1].split(",")


def test_the_pages_have_commands():
    """The parser finds commands; otherwise the other tests would pass without checking any."""
    assert sum(page.name == "first-run.md" for page, _ in CASES) >= 10
    assert {page.name for page, _ in CASES} >= {"own-channel.md", "schedules.md", "submodels.md"}


@pytest.mark.parametrize(
    ("module", "line"),
    sorted({found for page in PAGES for found in EXPERIMENT.findall(page.read_text("utf-8"))}),
)
def test_experiments_are_known(module, line, monkeypatch, capsys):
    """Names and flags of experiments are valid; --help is added so that nothing runs."""
    words = [word for word in shlex.split(line, comments=True) if word not in ("...", "…")]
    monkeypatch.setattr(sys, "argv", [module, *words, "--help"])
    # runpy warns if another test has already imported the module.
    monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert ended.value.code == 0, capsys.readouterr().err
