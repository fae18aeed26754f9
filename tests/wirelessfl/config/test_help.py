"""Help pages of ``run``: settings of an algorithm, all settings, and all algorithms."""

from __future__ import annotations

import re

import pytest

from tests.wirelessfl.config.effects import effects
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.cli import main
from wirelessfl.cli.flags import all_flags
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS

LINE = re.compile(r"^  (--[a-z0-9-]+)", re.MULTILINE)
FLAGS = {flag.option: flag for flag in all_flags()}
OTHERS = {"--" + kind.replace("_", "-") for kind in KINDS} | {"--task"}
VALUES = {
    "local": "fedavg",
    "cpu_hz": (1e9, 2e9),
    "path_gain_db": (-3.0, 3.0),
    "hidden": (30, 20),
    "layers": ("layers.1",),
    "data_dir": "folder",
    "out": "folder",
    "tokenizer": "gpt2",
    "pretrained": "gpt2",
    "trace": "trace.csv",
    "channel": "channels.npz",
    "network": "tests.gate.given:one_cell",
    "layout_file": "positions.csv",
    "coherence": "round",
    "replay": "on",
    "target": 0.5,
    "metric": ("macro-f1",),
    "monitor": "loss",
    "chunk": 4,
    "padding": 0.1,
    "min_coverage": 1,
}
"""Valid values of flags that have no default and do not accept 1."""


@pytest.fixture
def page(capsys, monkeypatch):
    """A function that returns a command's help page at 80 columns and asserts an empty stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def read(*words: str) -> str:
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"] if words[-1] != "all" else list(words))
        shown = capsys.readouterr()
        assert stop.value.code == 0
        assert not shown.err
        return shown.out

    return read


def value(name: str, default: object) -> object:
    """A valid value of a flag."""
    if isinstance(default, bool):
        return True
    return VALUES.get(name, 1 if default is None else default)


def test_help_of_an_algorithm_fits(page) -> None:
    lines = page("run", "hist").splitlines()
    assert len(lines) <= 175
    assert max(map(len, lines)) <= 80


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        *((name, {}) for name in algorithm_classes()),
        ("hist", {"uplink": "aircomp", "split": "dirichlet", "sessions": 4}),
        ("fedavg", {"uplink": "fixed", "schedule": "buffered"}),
        ("fedavg", {"fading": "rician", "warm_start": "proposed", "sessions": 4}),
        ("fedast", {"delays": "shifted-exponential", "dataset": "mnist"}),
        ("fedavg", {"split": "natural", "lr_schedule": "poly", "downlink_compression": "top-k"}),
        ("fedavg", {"layout": "hexagonal", "path_loss": "rma"}),
        ("fedavg", {"model": "gpt2-lora"}),
        ("fedavg", {"model": "text-mean"}),
    ],
)
def test_help_shows_the_flags_that_the_run_takes(page, algorithm: str, flags) -> None:
    """The help page shows a flag if and only if it has an effect.

    test_unused.py tests that a configuration accepts exactly these flags.
    """
    words = [f"--{key.replace('_', '-')}={v}" for key, v in flags.items() if key != "dataset"]
    shown = set(LINE.findall(page("run", algorithm, *words))) - OTHERS
    found = effects(Config.from_flags(algorithm, **flags))
    assert shown == {
        option for option, flag in FLAGS.items() if flag.name in flags or found[flag.name]
    }


def test_help_all_names_every_flag(page) -> None:
    text = page("run", "--help", "all")
    assert set(LINE.findall(text)) == FLAGS.keys() | OTHERS
    assert page("run", "hist", "--help", "all").splitlines()[1:] == text.splitlines()[1:]


def test_help_all_shows_common_defaults_and_every_value(page) -> None:
    """Choices that share a flag may accept different values and have different defaults."""
    text = " ".join(page("run", "--help", "all").split())
    described = dict(re.findall(r"(--[a-z0-9-]+) (?:[A-Z,.]+ )?(.*?)(?= --[a-z0-9-]+ [A-Z])", text))
    assert "[0.5]" in described["--alpha"]
    assert "(fastest)" in described["--budget"]
    assert "(deadline)" in described["--budget"]
    assert FLAGS["--lr"].varies
    assert "[" not in described["--lr"]
    assert not FLAGS["--alpha"].varies


def test_help_without_an_algorithm_lists_algorithms_and_no_setting(page) -> None:
    text = page("run")
    for name in algorithm_classes():
        assert re.search(rf"^  {name} ", text, re.MULTILINE)
    assert not LINE.findall(text)
    assert "run ALGORITHM --help" in text


@pytest.mark.parametrize("command", ["sweep", "timeline"])
def test_help_of_other_commands_has_the_same_settings(page, command: str) -> None:
    """The arguments of the command itself come before them."""
    own, heading, settings = page(command, "fedast").partition("\nalgorithm fedast:")
    assert heading
    assert LINE.findall(settings) == LINE.findall(page("run", "fedast"))
    assert {"sweep": "--jobs", "timeline": "--picture"}[command] in LINE.findall(own)
