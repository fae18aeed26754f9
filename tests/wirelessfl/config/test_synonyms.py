"""Hints for what other frameworks call settings, and other spellings of values and import paths."""

import pytest

from wirelessfl import Config
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.wording import FOREIGN
from wirelessfl.cli.flags import all_flags
from wirelessfl.cli.main import main
from wirelessfl.config.choices import KINDS
from wirelessfl.config.kinds import listed
from wirelessfl.config.synonyms import ADVICE, SYNONYMS, VALUES, synonym

KNOWN = {flag.name for flag in all_flags()} | {*KINDS}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("learning_rate", "Do you mean '--lr'?"),
        ("num_clients", "Do you mean '--clients'?"),
        ("batch", "Do you mean '--batch-size'?"),
        ("snr", "Do you mean '--snr-db'?"),
        ("global_rounds", "Do you mean '--rounds'?"),
        ("power", "Do you mean '--transmit-power-dbm'?"),
        ("fft_size", "Do you mean '--bandwidth-hz'?"),
        ("subcarrier_spacing", "Do you mean '--subcarrier-hz'?"),
        ("scenario", "Do you mean '--path-loss'?"),
        ("non_iid", "Do you mean --split noniid?"),
        ("gpu", "Do you mean --device cuda?"),
        ("algorithm", "The algorithm is named first"),
        ("optimizer", "The algorithm contains the clients' optimiser"),
        ("wandb", "unknown flag '--wandb'. Choose --track tensorboard, trackio, wandb or mlflow"),
        ("dp", "unknown flag '--dp'. There is no differential privacy"),
        ("quantization", "Do you mean --uplink-compression quantisation?"),
        ("top_k", "Do you mean --uplink-compression top-k?"),
        ("uplink_bits", "Do you mean '--uplink-compression-bits'?"),
        ("doppler", "unknown flag '--doppler'. Do you mean '--doppler-hz'?"),
        ("velocity", "unknown flag '--velocity'. Do you mean '--speed-kmh'?"),
        ("speed_of_light", "unknown flag '--speed-of-light'. See wirelessfl run --help."),
    ],
)
def test_unknown_flags_are_understood(name, hint, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "fedavg", "--" + name.replace("_", "-"), "1"])
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ylecun/mnist", "hf:mnist"])
def test_names_of_a_hub_are_answered(name):
    with pytest.raises((ConfigError, DataError), match=r"of a hub are not read.*as data=\.\.\."):
        Config.from_flags("fedavg", dataset=name).dataset.load(None)


@pytest.mark.parametrize(
    ("tables", "hint"),
    [
        ({"training": {"n_rounds": 3}}, "Do you mean 'rounds'?"),
        ({"training": {"learning_rate": 3}}, "Do you mean 'lr', in [algorithm]?"),
        ({"algorithm": {"name": "fedavg", "learning_rate": 3}}, "Do you mean 'lr'?"),
        ({"num_users": 3}, "Do you mean 'clients', in [network]?"),
        ({"data": {"iid": 1}}, 'Do you mean split="iid"?'),
    ],
)
def test_unknown_keys_of_tables_are_understood(tables, hint):
    with pytest.raises(ConfigError) as caught:
        Config.of({"algorithm": "fedavg", **tables})
    assert hint in str(caught.value)
    with pytest.raises(ConfigError, match="Do you mean 'lr'"):
        Config.from_flags("fedavg", learning_rate=0.1)


def test_every_synonym_stands_for_a_setting_and_is_none_itself():
    assert {*SYNONYMS} - {"local_epochs"} <= KNOWN
    assert {setting for setting, _ in VALUES.values()} <= KNOWN
    names = [name for names in SYNONYMS.values() for name in names]
    assert not {*names, *VALUES, *ADVICE, *FOREIGN} & (KNOWN - {"local_epochs"})
    assert not {*FOREIGN} & {*names, *VALUES, *ADVICE, *algorithm_classes()}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("fedopt", "It is a family: choose fedadam"), ("FedBN", "no personal models")],
)
def test_algorithms_of_other_packages_are_known_words(name, hint):
    with pytest.raises(ConfigError, match=f"{name}' is unknown. .*{hint}") as caught:
        Config.from_flags(name)
    assert "Do you mean" not in str(caught.value)
    assert synonym("epochs", {"local_steps"}).setting == "local_steps"
    assert synonym("epochs", {"local_steps", "local_epochs"}).setting == "local_epochs"
    assert synonym("epochs", {"rounds"}) is None


def test_whole_numbers_in_scientific_notation():
    config = Config.from_flags("fedavg", rounds="1e3", clients="1.5e1", hidden="1e1,20".split(","))
    assert (config.training.rounds, config.network.clients) == (1000, 15)
    assert config.model.hidden == (10, 20)
    for wrong in ("1e-1", "1.55e1", "1e", "1e999"):
        with pytest.raises(ConfigError, match="give a whole number"):
            Config.from_flags("fedavg", rounds=wrong)
    assert Config.from_flags("fedavg", tokenizer=None, seed="1e2").run.seed == 100


def test_lists_that_begin_with_a_negative_number(capsys):
    with pytest.raises(SystemExit):  # the flag after it is wrong, not the list
        main(["run", "fedavg", "--path-gain-db", "-20,20", "--nothing"])
    assert "unknown flag '--nothing'" in capsys.readouterr().err


def test_lists_of_owners():
    assert listed(["a"], "or") == "a"
    assert listed(["a", "b"], "or", '"{}"') == '"a" or "b"'
    assert listed(["a", "b", "c", "d"], "and") == "a, b, c and d"
    assert listed(["a", "b", "c", "d", "e"], "or") == "a, b, c or 2 others"


MODULE = """
from wirelessfl.extend import FedAvg

class FedDyn(FedAvg):
    mu: float = 1.0

class Plain(FedAvg):
    name = "plain"
"""


def test_import_paths_that_are_nearly_right(tmp_path, monkeypatch):
    """A missing @dataclass, a dot for the colon, a file alone, a similar name."""
    (tmp_path / "own_rules.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for path, message in (
        ("own_rules:FedDyn", "declares mu, ignored because class FedDyn is not a dataclass"),
        ("./own_rules.py:FedDyn", r"write @dataclass\(frozen=True\) above it"),
        ("own_rules.FedDyn", "Do you mean 'own_rules:FedDyn'"),
        ("own_rules.py", "Name a class or function of the file, too: 'own_rules.py:Name'"),
        ("own_rules", "Name a class or function of the file own_rules.py, too: 'own_rules:Name'"),
        ("own_rules:FedDin", "has no 'FedDin'. Do you mean 'FedDyn'"),
    ):
        with pytest.raises(ConfigError, match=message):
            Config.from_flags(path)
    assert Config.from_flags("own_rules:Plain").algorithm.title == "own_rules:Plain"
