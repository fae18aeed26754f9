"""Notes are warnings, lines on stderr, and entries of the run's folder and of its result."""

import json
import warnings
from dataclasses import replace
from unittest.mock import create_autospec

import pytest

import wirelessfl
from wirelessfl import Config, Note
from wirelessfl.cli import main
from wirelessfl.runs.pricing.round_timeline import round_timeline
from wirelessfl.runs.timeline import timeline
from wirelessfl.training.trainer import Trainer

NARROW = {
    "dataset": "digits", "clients": 2, "rounds": 1, "local_steps": 1, "hidden": (4,),
    "executor": "loop", "workers": 1, "bandwidth_hz": 20,
}  # fmt: skip
TEXT = "bandwidth_hz is 20 Hz: for 20 MHz, give 2e+07."
FLAGS = (
    "--dataset digits --clients 2 --rounds 1 --local-steps 1 --hidden 4 --executor loop "
    "--workers 1 --bandwidth-hz 20"
).split()


def narrow(algorithm="fedavg", **settings):
    return Config.from_flags(algorithm, **NARROW | settings)


def test_a_run_warns_at_the_line_of_its_caller_and_keeps_its_notes(tmp_path):
    """Each kind once; resuming adds no second one, and reading a finished run gives none."""
    with pytest.warns(Note) as caught:
        result = wirelessfl.run(narrow(out=tmp_path / "run"))
    assert [str(warning.message) for warning in caught] == [TEXT]
    assert caught[0].filename == __file__
    assert result.notes == wirelessfl.load(tmp_path / "run").notes == (TEXT,)
    assert TEXT in result._repr_html_()
    with pytest.warns(Note, match="bandwidth_hz"):
        longer = wirelessfl.resume(tmp_path / "run", rounds=2)
    assert longer.notes == (TEXT,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wirelessfl.resume(tmp_path / "run").notes == (TEXT,)
    assert json.loads((tmp_path / "run" / "about.json").read_text())["notes"] == [TEXT]


def test_on_note_replaces_warnings(tmp_path):
    notes = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wirelessfl.run(narrow(out=tmp_path / "run"), on_note=notes.append)
        wirelessfl.sweep([narrow()], tmp_path / "sweep", on_note=notes.append)
    assert notes == [TEXT, TEXT]


def test_a_note_as_an_error_leaves_no_folder(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        with pytest.raises(Note, match="bandwidth_hz"):
            wirelessfl.run(narrow(out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "call",
    [
        wirelessfl.price,
        lambda config: wirelessfl.price(config, uplink="ofdma"),
        lambda config: wirelessfl.price(config, network=[{"bandwidth_hz": x} for x in (20, 30)]),
        wirelessfl.plan,
        round_timeline,
        lambda config: wirelessfl.sweep([config, config.with_run({"seed": 2})]),
        lambda config: timeline(narrow(schedule="buffered", delays="wireless"), 1.0),
    ],
    ids=["price", "price-uplink", "price-networks", "plan", "timeline", "sweep", "timeline-tasks"],
)
def test_other_calls_warn_once_for_each_kind(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(Note) as caught:
        call(narrow())
    assert [str(warning.message) for warning in caught].count(TEXT) == 1
    assert [str(warning.message)[:12] for warning in caught].count(TEXT[:12]) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("call", [wirelessfl.price, wirelessfl.plan])
def test_objects_without_effect_on_costs_are_noted(call):
    given = {"metrics": ["macro-f1"], "augment": lambda x, generator: x, "loss": "mse"}
    given["trainer"] = create_autospec(Trainer, instance=True, title="app")
    with pytest.warns(Note) as caught:
        call(narrow(bandwidth_hz=2e7), **given)
    assert [str(warning.message) for warning in caught] == [
        f"{name} is given, but nothing is trained or tested, so it has no effect on the costs."
        for name in ("metrics", "augment", "trainer")
    ]


def test_pilots_give_the_notes_on_their_data(toy, tmp_path):
    """Once for all of them; those that are read give none."""
    noted = replace(toy, notes=("something about the data.",))
    settings = Config.from_flags("hfedavg", cells=2, clients=4, hidden=(4,))
    few = {"local_steps": [1, 2], "edge_rounds": [1, 2], "steps": 4, "root": tmp_path}
    with pytest.warns(Note) as caught:
        wirelessfl.pilot(settings, data=noted, count=3, **few)
    assert [str(w.message) for w in caught] == ["data set toy: something about the data."]
    notes = []
    wirelessfl.pilot(settings, data=noted, count=3, **few, on_note=notes.append)
    assert notes == []


def test_designs_warn(learnt_curve):
    settings = Config.from_flags("hfedavg", cells=2, clients=4, hidden=(4,), bandwidth_hz=20)
    options = {"target": 0.9, "local_steps": [2], "edge_rounds": [1, 2], "draws": 2}
    with pytest.warns(Note) as caught:
        wirelessfl.design(settings, curve=learnt_curve, **options)
    assert [str(warning.message) for warning in caught] == [TEXT]


@pytest.fixture
def learnt_curve():
    def scores(steps):
        return [1 - 1 / (1 + number * steps**0.5) for number in range(1, 100)]

    points = [(2, 1), (2, 4), (8, 1), (8, 4)]
    runs = [wirelessfl.Pilot(h, e, 4, range(1, 100), scores(h * e)) for h, e in points]
    return wirelessfl.fit_rounds(runs, [0.8, 0.9], bootstrap=0)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_commands_print_notes_also_with_quiet(quiet, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["run", "fedavg", *FLAGS, *quiet, "--out", str(out)]) == 0
    assert capsys.readouterr().err.splitlines().count(TEXT) == 1
    assert main(["show", str(out)]) == 0
    assert f"note: {TEXT}\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["plan", "budget", "timeline"])
def test_commands_without_training_print_notes(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = FLAGS if command != "budget" else ["--clients", "2", "--bandwidth-hz", "20"]
    assert main([command, "fedavg", *flags, "--json"]) == 0
    caught = capsys.readouterr()
    assert caught.err.splitlines().count(TEXT) == 1
    assert json.loads(caught.out)


def test_divergence_is_a_note_that_the_run_keeps(toy, config):
    with pytest.warns(Note, match="training has diverged by round"):
        result = wirelessfl.run(config("fedavg", lr=1e6, rounds=4), data=toy)
    [note] = [note for note in result.notes if "diverged" in note]
    assert note in wirelessfl.load(result.directory).notes
