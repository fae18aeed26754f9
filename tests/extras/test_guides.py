"""The examples of pages that need packages which only make test-extras installs."""

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import wirelessfl
from tests.docs.pages import GUIDES, blocks

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("default")]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the files of a page to an empty current folder."""
    monkeypatch.chdir(tmp_path)

    def write(page):
        for _, file, code in blocks(GUIDES / page):
            if file:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(code, encoding="utf-8")

    return write


def test_the_example_of_trackers_runs(written, monkeypatch):
    """Both trackers have the run."""
    mlflow, _ = pytest.importorskip("mlflow"), pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    written("trackers.md")
    result = runpy.run_path("tracked.py")["result"]
    [_] = result.directory.glob("wandb/offline-run-*/run-*.wandb")
    client = mlflow.MlflowClient("sqlite:///edge.db")
    [run] = client.search_runs([client.get_experiment_by_name("edge").experiment_id])
    assert run.data.metrics["accuracy"] == result.rows[-1]["accuracy"]


def app(*words):
    """Run the Hydra application of the page; return its process."""
    return subprocess.run([sys.executable, "app.py", *words], capture_output=True, text=True)


def test_the_hydra_application_runs(written):
    """One run and a sweep, in Hydra's folders."""
    pytest.importorskip("hydra")
    written("hydra.md")
    one, many = [
        shlex.split(line)[2:]
        for line in next(code for _, _, code in blocks(GUIDES / "hydra.md") if "app.py" in code)
        .strip()
        .splitlines()
    ]
    done = app(*one, "training.rounds=1")
    assert done.stdout.startswith("fedavg on digits: 1 round, accuracy 0."), done.stderr
    [run] = wirelessfl.load_all("outputs")
    assert (run.settings["uplink"], run.settings["antennas"]) == ("ofdma", 4)
    done = app(*many, "training.rounds=1")
    assert done.returncode == 0, done.stderr
    runs = wirelessfl.load_all("multirun")
    settings = {(run.settings["uplink"], run.settings["lr"]) for run in runs}
    assert settings == {(uplink, lr) for uplink in ("tdma", "ofdma") for lr in (0.02, 0.05)}
    assert {run.settings["alpha"] for run in runs} == {0.3}
    done = app("+network.clientz=3")
    message = "ConfigError: unknown setting 'clientz' in [network]. Do you mean 'clients'?\n"
    assert message in done.stderr


MISTAKES = """
network: {clientz: 10} | unknown setting 'clientz' in [network]. Do you mean 'clients'?
network: {clients: ten} | network.clients is 'ten': give a whole number >= 1 and <= 1e+14.
network: {clients: '???'} | clients is '???', a value that is still missing: give one.
lr: 0.1 | unknown setting 'lr' outside a table. It belongs to [algorithm].
"""


@pytest.mark.parametrize("line", MISTAKES.strip().splitlines())
def test_mistakes_are_those_of_the_page(line):
    omegaconf = pytest.importorskip("omegaconf")
    text, _, message = line.partition(" | ")
    tables = omegaconf.OmegaConf.to_container(
        omegaconf.OmegaConf.create(f"algorithm: hist\n{text}")
    )
    with pytest.raises(wirelessfl.ConfigError) as error:
        wirelessfl.Config.of(tables)
    assert str(error.value) == message
    assert message in (GUIDES / "hydra.md").read_text(encoding="utf-8")


def test_containers_of_omegaconf_are_the_same_configuration():
    """Interpolations, lists, tasks and empty tables included; its own types are refused."""
    omegaconf = pytest.importorskip("omegaconf")
    tables = {
        "algorithm": {"name": "fedasync", "lr": 0.1},
        "network": {"clients": 4, "cpu_hz": [1e9, 2e9]},
        "schedule": "simultaneous",
        "training": {"local_steps": 2},
        "task": [{"name": "one", "rounds": 4}, {"name": "two", "rounds": 4}],
    }
    cfg = omegaconf.OmegaConf.create(tables)
    cfg.task[1].rounds = "${task[0].rounds}"
    cfg.sessions = None
    read = wirelessfl.Config.of(omegaconf.OmegaConf.to_container(cfg, resolve=True))
    assert read == wirelessfl.Config.of(tables)
    with pytest.raises(wirelessfl.ConfigError, match=r"^rounds is '\$\{task\[0\].rounds\}', a ref"):
        wirelessfl.Config.of(omegaconf.OmegaConf.to_container(cfg))
    with pytest.raises(wirelessfl.ConfigError, match=r"^settings are a DictConfig: give Config.of"):
        wirelessfl.Config.of(cfg)


def test_the_search_with_optuna_runs(written, capsys):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    written("hydra.md")
    code = Path("search.py").read_text(encoding="utf-8")
    Path("search.py").write_text(code.replace("n_trials=10", "n_trials=3"), encoding="utf-8")
    study = runpy.run_path("search.py")["study"]
    assert len(study.trials) == 3
    printed = capsys.readouterr().out
    for trial in study.best_trials:
        assert f"{trial.params} {trial.values}\n" in printed
        assert 0 <= trial.values[0] <= 1
        assert trial.values[1] > 0
