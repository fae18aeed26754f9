"""``wirelessfl doctor`` and ``wirelessfl list``: what an installation has."""

import json

import pytest

from solvers.mask_sizes.gurobi import Gurobi
from wirelessfl.cli import doctor
from wirelessfl.cli.main import main
from wirelessfl.config.choices import KINDS
from wirelessfl.data import dataset_names, known_facts, load_dataset
from wirelessfl.data.choice import described


def report(capsys, *words):
    assert main(["doctor", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_report(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SECONDS", 0.01)
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "file").write_text("")
    (tmp_path / "svhn").mkdir()  # empty
    monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path))
    found = report(capsys)
    assert found["versions"]["torch"]
    assert found["data sets"].keys() == {*dataset_names()}
    assert found["data sets"]["mnist"] == f"{tmp_path / 'mnist'} (WIRELESSFL_DATA)"
    assert found["data sets"]["svhn"] == "not here"
    assert found["data sets"]["digits"] == "available"
    assert float(found["speed"]["GEMM"].split()[0]) > 0
    assert float(found["speed"]["local steps"].split()[0]) > 0


def test_what_is_broken_is_part_of_the_report(capsys, monkeypatch, tmp_path):
    """A wrong folder and a missing licence are lines, not errors."""
    monkeypatch.setenv("WIRELESSFL_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(Gurobi, "check", lambda: 1 / 0)
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    found = report(capsys, "--no-speed")
    assert found["data sets"]["error"].startswith("DataError")
    assert found["licences"]["gurobi"] == "ZeroDivisionError: division by zero"
    assert found["optional packages"]["peft"] == "not installed: pip install 'wirelessfl[language]'"
    assert "speed" not in found


def test_data_sets_are_described():
    """All of them, with the shape and classes that the loaders declare; digits is counted."""
    for name in dataset_names():
        facts = known_facts(name)
        assert facts is None or f"{facts.classes} classes" in described(name)
    digits = load_dataset("digits")
    assert described("digits").startswith(
        f"{len(digits.train_labels):,} + {len(digits.test_labels)} handwritten digits, 1x8x8"
    )


@pytest.mark.parametrize("word", ["uplink", "uplinks", "delays", "data-sets"])
def test_one_kind_is_listed(word, capsys):
    assert main(["list", word]) == 0
    out = capsys.readouterr().out
    assert "hist" not in out.split()
    names = {"delays": KINDS["delays"].classes(), "data-sets": dataset_names()}
    assert {*names.get(word, KINDS["uplink"].classes())} <= {*out.split()}


def test_one_choice_is_listed_with_its_settings(capsys):
    assert main(["list", "fedprox"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("algorithm fedprox: FedAvg with a proximal term")
    assert "--mu X" in out
    assert main(["list", "digits"]) == 0
    assert "--dataset digits" in capsys.readouterr().out
    assert main(["list", "coherence"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "--coherence NAME: how long a channel lasts, its coherence: round, edge-round"
    )
    assert "setting 'coherence' of section [network]" in out
    assert main(["list", "lr"]) == 0
    assert "setting 'lr' of algorithm fa-nt, fadamgc" in capsys.readouterr().out
    assert main(["list", "fedprx"]) == 2
    assert "'fedprx' is unknown. Do you mean 'fedprox'?" in capsys.readouterr().err


def test_descriptions_are_searched_for_words_that_are_no_name(capsys):
    """All words count, in any order and with any separator; names of choices count too."""
    assert main(["list", "phase error"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("--phase-error-deg X: standard deviation of the residual phase")
    assert main(["list", "error_phase"]) == 0
    assert capsys.readouterr().out == first
    assert main(["list", "proximal term"]) == 0
    assert "algorithm fedprox: FedAvg with a proximal term" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "line"),
    [("learning_rate", "--lr X: "), ("--num-clients", "--clients N: "), ("gpu", "--device NAME: ")],
)
def test_names_of_others_are_those_of_a_setting(word, line, capsys):
    assert main(["list", "--", word]) == 0
    assert capsys.readouterr().out.startswith(line)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("coherenze", "Do you mean 'coherence'?"),
        ("mlflow", "Choose --track tensorboard, trackio, wandb or mlflow"),
        ("optimizer", "The algorithm contains the clients' optimiser"),
    ],
)
def test_unknown_words_are_one_line(word, message, capsys):
    assert main(["list", word]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("word", ["dp-sgd", "krum", "zz"])
def test_what_is_not_there_suggests_no_other_name(word, capsys):
    assert main(["list", word]) == 2
    assert "Do you mean" not in capsys.readouterr().err
