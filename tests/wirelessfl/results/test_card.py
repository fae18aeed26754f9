"""Model cards: read back by the hub's own package, without a network."""

import json
import re
import tomllib

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

import wirelessfl
from tests.wirelessfl.results.conftest import rows_of
from wirelessfl import Config
from wirelessfl.cli import main
from wirelessfl.data import load_dataset
from wirelessfl.results.card import yaml_lines

FLAGS = {"clients": 4, "rounds": 3, "local_steps": 5, "threads": 1}


def code(card, language):
    [block] = re.findall(rf"^```{language}\n(.*?)^```", card.text, re.M | re.S)
    return block


def metrics(card):
    return {result.metric_type: result.metric_value for result in card.data.eval_results}


def exported(tmp_path, *words):
    """The card that a command writes."""
    assert main(["export", str(tmp_path / "run"), "--card", "-o", str(tmp_path / "m"), *words]) == 0
    return ModelCard.load(tmp_path / "m" / "README.md")


@pytest.mark.parametrize(
    "flags",
    [
        {"hidden": (16,), "dropout": 0.25, "pixels": "unit", "uplink": "ofdma", "keep_best": True},
        {"model": "mlp", "lr": 2.0, "keep_best": True},
    ],
)
@pytest.mark.parametrize("best", [True, False])
def test_a_card_states_what_its_weights_do(flags, best, tmp_path, monkeypatch):
    """Its code loads the weights; its accuracy is theirs; its settings are those of the run."""
    config = Config.from_flags("fedavg", **FLAGS, **flags, out=str(tmp_path / "run"))
    result = wirelessfl.run(config)
    card = exported(tmp_path, *(["--best"] if best else []))
    top, last = max(result.rows, key=lambda row: row["accuracy"]), result.rows[-1]
    row = top if best else last
    assert top is not last
    for name in ("accuracy", "sim_seconds", "joules", "joules_max", "uplink_mib"):
        assert metrics(card)[name] == pytest.approx(row[name], rel=1e-5)
    assert f"round {row['round']} |" in card.text
    assert card.data.pipeline_tag == "image-classification"
    assert {"federated-learning", "fedavg"} <= set(card.data.tags)
    assert card.data.license is None
    monkeypatch.chdir(tmp_path / "m")
    names = {}
    exec(code(card, "python"), names)
    data = load_dataset("digits")
    inputs = data.test_inputs / 2 + 0.5 if "pixels" in flags else data.test_inputs
    right = names["model"](inputs).argmax(1) == data.test_labels
    assert float(right.float().mean()) == pytest.approx(row["accuracy"], abs=1e-6)
    again = Config.of(tomllib.loads(code(card, "toml")))
    for section in ("algorithm", "network", "model", "uplink", "training", "dataset"):
        assert again.used_tables().get(section) == result.config.used_tables().get(section)


def test_a_card_of_tasks_has_a_result_of_each(tmp_path):
    tables = {
        "algorithm": "fedasync",
        "network": {"clients": 4},
        "model": "linear",
        "training": {"local_steps": 1},
        "schedule": "simultaneous",
        "task": [{"name": "one", "rounds": 3}, {"name": "two", "rounds": 2}],
        "run": {"out": str(tmp_path / "run"), "threads": 1},
    }
    result = wirelessfl.run(Config.of(tables))
    card = exported(tmp_path)
    accuracies = [r for r in card.data.eval_results if r.metric_type == "accuracy"]
    expected = [result.rows_of(task)[-1]["accuracy"] for task in ("one", "two")]
    assert [entry.metric_value for entry in accuracies] == pytest.approx(expected, rel=1e-5)
    assert "| one, round 3 | two, round 2 |" in card.text
    assert "begin with those of their tasks" in card.text
    assert {name.partition(".")[0] for name in load_file(tmp_path / "m" / "model.safetensors")} == {
        *result.tasks
    }


def test_a_card_of_given_objects_names_them(tmp_path):
    """Of data and models of users, it knows no constructor and no entry of the hub."""
    inputs, labels = torch.randn(40, 3), torch.arange(40) % 2
    config = Config.from_flags("fedavg", **FLAGS, out=str(tmp_path / "run"))
    wirelessfl.run(config, model=nn.Linear(3, 2), data=(inputs, labels, inputs, labels))
    card = exported(tmp_path)
    assert "given from Python: model" in card.text
    assert "MyModel()  # of the same layers" in code(card, "python")
    assert card.data.eval_results[0].task_type == "classification"
    assert card.data.pipeline_tag is None
    assert card.data.datasets is None


def test_a_card_of_known_data_names_those_of_the_hub(stored, tmp_path):
    rows = rows_of([0.1, 0.2])
    rows[1] |= {"accuracy": None, "loss": None}  # the model has diverged
    stored("fedavg", [], rows=rows, dataset="fashion-mnist", model="lenet5")
    (tmp_path / "runs" / "fedavg-1").rename(tmp_path / "run")
    card = exported(tmp_path)
    assert card.data.datasets == ["zalando-datasets/fashion_mnist"]
    assert "accuracy" not in metrics(card)
    assert metrics(card)["joules"] == pytest.approx(0.1)
    assert "model = LeNet5((1, 28, 28), 10)\n" in code(card, "python")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs", "-o", "m"), "2 runs are given, but a card is that of one"),
        (("runs/fedavg-1", "-o", "runs/fedavg-1/m"), "in the folder of a run"),
        (("runs/fedavg-1", "-o", "m.safetensors"), "with --card, name a folder"),
        (("runs/fedavg-1", "-o", "old"), "old has a README.md or a model.safetensors"),
        (("runs/fedavg-1", "-o", "weights"), "weights has a README.md or a model.safetensors"),
        (("runs/fedavg-2", "-o", "m"), "resume it first, wirelessfl resume runs/fedavg-2"),
        (("runs/fedavg-1", "-o", "m", "--best"), "only runs with --keep-best have it"),
    ],
)
def test_what_cannot_be_a_card_is_one_line(stored, words, message, tmp_path, monkeypatch, capsys):
    stored("fedavg", [0.1, 0.2])
    stored("fedavg", [0.1], finished=False)
    monkeypatch.chdir(tmp_path)
    for folder, file in (("old", "README.md"), ("weights", "model.safetensors")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).touch()
    assert main(["export", "--card", *words]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1
    assert not (tmp_path / "m").exists()


SCALARS = st.text(max_size=9) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.from_regex(r"[a-z]\w{0,4}-x", fullmatch=True), inner, min_size=1)
    ),
    max_leaves=9,
)


@given(st.dictionaries(st.just("key"), VALUES, min_size=1))
def test_yaml_is_read_back(tables):
    """Floats keep six digits."""

    def rounded(value):
        if isinstance(value, dict):
            return {key: rounded(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [rounded(entry) for entry in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    text = "\n".join(yaml_lines(tables))
    assert json.dumps(rounded(yaml.safe_load(text))) == json.dumps(rounded(tables))
