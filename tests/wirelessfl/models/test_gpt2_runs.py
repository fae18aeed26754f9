"""GPT-2 with LoRA: runs on texts, and their settings."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import wirelessfl
from tests.wirelessfl.models.gpt2 import LENGTH, WORDS
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import load_dataset
from wirelessfl.runs.build import build
from wirelessfl.runs.kept import is_finished, kept_run

WITHOUT_MODEL = {"model": None, "pretrained": None, "lora_rank": None}
WITHOUT_DATA = {"dataset": None, "max_length": None}
"""Settings that a given object replaces."""


@pytest.mark.thorough
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_executors_agree(settings, dropout):
    """After two rounds, the loop and vmap (recorded or in chunks) agree to 1e-5."""
    variants = [
        {"executor": "loop"},
        {"executor": "vmap"},
        {"executor": "vmap", "replay": "on"},
        {"executor": "vmap", "chunk": 2},
        {"executor": "vmap", "chunk": 1},
    ]
    results = [wirelessfl.run(settings(dropout=dropout, rounds=2, **flags)) for flags in variants]
    for result in results:
        for name, value in results[0].params.items():
            torch.testing.assert_close(result.params[name], value, rtol=0, atol=1e-5)


@pytest.mark.thorough
def test_a_run_learns_and_does_not_change_the_base(settings):
    config = settings(rounds=12, local_steps=5, lr=0.5, executor="auto")
    setup = build(config)
    assert setup.config.run.executor == "vmap"
    assert not setup.notes
    frozen = {
        n: p.clone()
        for n, p in setup.model.objective.module.named_parameters()
        if not p.requires_grad
    }
    assert frozen
    result = wirelessfl.run(
        settings(rounds=12, local_steps=5, lr=0.5, **WITHOUT_MODEL, **WITHOUT_DATA),
        model=setup.model.objective.module,
        data=setup.model.data,
    )
    assert result.rows[-1]["loss"] < 0.8 * result.rows[0]["loss"]
    assert result.rows[-1]["accuracy"] > 0.7
    after = dict(setup.model.objective.module.named_parameters())
    assert all(torch.equal(after[name], value) for name, value in frozen.items())
    size = sum(value.numel() for value in result.params.values())
    assert result.rows[-1]["uplink_mib"] == pytest.approx(12 * 4 * size / 2**20)


@pytest.mark.thorough
def test_workers_share_the_base(settings, same):
    """Two worker processes give the same results as one."""
    alone = wirelessfl.run(settings(chunk=2, rounds=2))
    together = wirelessfl.run(settings(chunk=2, rounds=2, workers=2))
    same(alone, together)


def test_a_finished_gpt2_run_is_not_repeated(settings, tmp_path):
    """``kept_run`` finds the finished run, although the tokenizer is not among the flags."""
    config = settings(rounds=1)
    assert config.dataset.tokenizer == config.model.pretrained
    kept_run(config, tmp_path / "kept")
    assert is_finished(config, tmp_path / "kept")
    (folder,) = (tmp_path / "kept").iterdir()
    before = (folder / "rows.jsonl").stat().st_mtime_ns
    assert kept_run(config, tmp_path / "kept").directory == folder
    assert (folder / "rows.jsonl").stat().st_mtime_ns == before


def test_a_stored_configuration_repeats_the_run(settings, base, same):
    """The tokenizer defaults to the model's and is stored, so a run from the file is the same."""
    first = wirelessfl.run(settings(rounds=1))
    assert first.config.dataset.tokenizer == str(base)
    again = Config.from_toml(first.directory / "config.toml")
    same(first, wirelessfl.run(again.with_run({"out": first.directory.with_name("again")})))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"dataset": "digits", "data_dir": None, "max_length": None},
         r"needs texts as token ids .*\(1, 8, 8\): choose sst2"),
        ({"max_length": 17}, "max_length is 17, but pretrained .* at most 16 tokens"),
        ({"pretrained": "/not/there"}, r"tokenizer is '/not/there', which is not a folder"),
        ({"pretrained": "./gone", "tokenizer": "BASE"}, r"pretrained is './gone', which is no"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_line_errors(settings, base, flags, message):
    flags = {key: str(base) if value == "BASE" else value for key, value in flags.items()}
    with pytest.raises(ConfigError, match=message) as caught:
        build(settings(**flags))
    assert "\n" not in str(caught.value)


def test_a_given_model_or_data_set_accepts_no_settings(settings, base):
    setup = build(settings())
    model, data = setup.model.objective.module, setup.model.data
    with pytest.raises(ConfigError, match=r"replaces model=gpt2-lora, .*pretrained=.*lora_rank=4:"):
        build(settings(), model=model)
    with pytest.raises(ConfigError, match=r"data=\.\.\. .* replaces .*max_length=12: leave"):
        build(settings(), data=data)  # of the same name
    other = replace(data, name="other")
    with pytest.raises(
        ConfigError, match=r"replaces dataset=sst2, .*: leave these settings out, or"
    ):
        build(settings(), data=other)
    with pytest.raises(ConfigError, match=r"max_length.* of dataset 'digits'.* of dataset 20news"):
        build({"algorithm": "fedavg", "dataset": {"max_length": LENGTH}}, data=data)
    build(settings(**WITHOUT_MODEL, **WITHOUT_DATA), model=model, data=data)


def test_tokens_of_another_vocabulary_are_refused(settings, base):
    data = load_dataset("sst2", settings().data.data_dir, tokenizer=str(base), max_length=LENGTH)
    strange = data.test_inputs.clone()
    strange[3, 2] = len(WORDS) + 2
    config = settings(**WITHOUT_DATA)
    with pytest.raises(ConfigError, match=r"token id 16 in its test samples.*accepts 0 to 15"):
        build(config, data=replace(data, test_inputs=strange, vocabulary=None))


def test_the_data_set_of_the_docs_runs(base, cache, tmp_path, monkeypatch):
    """The documented command runs, with a small base and few steps."""
    page = (Path(__file__).parents[3] / "docs" / "guides" / "language.md").read_text(
        encoding="utf-8"
    )
    (code,) = re.findall(r"```python file=my_texts\.py\n(.*?)```", page, re.DOTALL)
    command = re.findall(r"^wirelessfl (run .*my_texts:moods.*)$", page, re.MULTILINE)[0]
    monkeypatch.chdir(tmp_path)
    Path("my_texts.py").write_text(code)
    small = f"--pretrained {base} --lora-rank 2 --rounds 1 --local-steps 1 --threads 1 --out run"
    assert main([*command.split(), *small.split()]) == 0
    stored = Config.from_toml(Path("run", "config.toml"), trust=True)
    assert (stored.dataset.tokenizer, stored.dataset.max_length) == (str(base), 16)


TINY = {"model": "gpt2-lora-tiny", "pretrained": None, "lora_rank": None, "lr": 0.2, "rounds": 10}
TINY |= {"local_steps": 15}


def test_the_tiny_model_learns_without_files(settings, monkeypatch):
    """Its base is the same for every seed and is not trained; adapters and head learn the words."""
    monkeypatch.setattr("wirelessfl.data.pretrained.expanded", None)  # no folder is searched
    result = wirelessfl.run(settings(**TINY, seed=1))
    assert result.config.dataset.tokenizer == "words"
    assert all("lora_" in name or "score" in name for name in result.params)
    sizes = {name: value.numel() for name, value in result.params.items()}
    assert sum(sizes.values()) == 2 * 4 * (32 + 3 * 32) + 2 * 32
    assert result.rows[-1]["accuracy"] > result.rows[0]["accuracy"]
    assert result.rows[-1]["loss"] < 0.8 * result.rows[0]["loss"]
    bases = [build(settings(**TINY, seed=seed)).model.objective.module for seed in (1, 2)]
    assert torch.equal(*(module.network.transformer.wte.weight for module in bases))
