"""The mean of embeddings: logits, padding, all executors, and runs without transformers."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import wirelessfl
from channels.streams import Stream
from tests.executors import ANY_MODULE
from tests.wirelessfl.training.jobs import job_for, plain_loop, samples_of, updates
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import Dataset, files
from wirelessfl.models import build_model
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.trial import check_model, why_not_vmapped

LENGTH, TOKENS, CLASSES, PAD = 7, 11, 3, 0


def make(*, length=LENGTH, vocabulary=TOKENS, pad_id=PAD, dropout=0.0, **options):
    facts = {"vocabulary": vocabulary, "pad_id": pad_id}
    return build_model(
        "text-mean", (length,), CLASSES, dropout=dropout, stream=Stream(1), **facts, **options
    )


def texts(count, seed=0):
    """Token ids of 0 to LENGTH words, padded on the right, and labels."""
    random = np.random.default_rng(seed)
    ids = random.integers(1, TOKENS, (count, LENGTH))
    ids[np.arange(LENGTH) >= random.integers(0, LENGTH + 1, (count, 1))] = PAD
    return torch.from_numpy(ids), torch.from_numpy(random.integers(0, CLASSES, count))


def moods(count, seed):
    """Rows of SST-2 in which one of eight words determines the label."""
    random = np.random.default_rng(seed)
    rows = []
    for label in random.integers(2, size=count):
        said = list(random.choice(["a", "the", "film", "plot"], random.integers(2, 6)))
        said.append(random.choice((["dull", "poor"], ["fine", "warm"])[label]))
        rows.append(f"{' '.join(said)}\t{label}\n")
    return "sentence\tlabel\n" + "".join(rows)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")


@pytest.fixture
def sst2(tmp_path):
    """Folder with SST-2's files."""
    (tmp_path / "data" / "sst2").mkdir(parents=True)
    for name, count in (("train", 120), ("dev", 60)):
        (tmp_path / "data" / "sst2" / f"{name}.tsv").write_text(moods(count, count))
    return tmp_path / "data"


@pytest.mark.parametrize("hidden", [None, (6,), (6, 5)])
def test_logits_equal_a_plain_computation(hidden):
    """In NumPy, text by text; the third text is empty."""
    model = make(hidden=hidden, embedding=4)
    values = {name: value.detach().numpy() for name, value in model.named_parameters()}
    table = values.pop("embedding.weight")
    assert table.shape == (TOKENS, 4)
    layers = list(zip(*[iter(values.values())] * 2, strict=True))
    assert [weight.shape[0] for weight, _ in layers] == [*(hidden or ()), CLASSES]
    x, _ = texts(9)
    x[2] = PAD
    for text, logits in zip(x.numpy(), model(x).detach().numpy(), strict=True):
        said = text[text != PAD]
        value = table[said].mean(0) if len(said) else np.zeros(4)
        for number, (weight, bias) in enumerate(layers):
            # Not a matrix product, in which NumPy may warn of elements beyond the vectors.
            value = (weight * (value if number == 0 else np.maximum(value, 0))).sum(1) + bias
        np.testing.assert_allclose(logits, value, atol=1e-6)


def test_padding_changes_neither_logits_nor_gradients():
    """Other embeddings of the padding, and longer padding, change nothing but it."""
    x, y = texts(9)
    longer = torch.cat([x, torch.full((9, 5), PAD)], 1)
    results = []
    for inputs, value in ((x, 0.1), (x, 1e3), (longer, -2.0)):
        model = make(length=inputs.shape[1])
        with torch.no_grad():
            model.embedding.weight[PAD] = value
        logits = model(inputs)
        loss = torch.nn.functional.cross_entropy(logits, y)
        results.append([logits, *torch.autograd.grad(loss, list(model.parameters()))])
        assert not results[-1][1][PAD].any()
        assert results[-1][1].any()
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_without_a_padding_id_all_tokens_count():
    x, _ = texts(5)
    model = make(pad_id=None)
    expected = model.classifier(model.embedding.weight[x].mean(1))
    torch.testing.assert_close(model(x), expected)
    absent = make(vocabulary=TOKENS, pad_id=TOKENS)
    torch.testing.assert_close(absent(x), expected)


def test_number_of_parameters():
    spec = ParamSpec.of(make(vocabulary=10_002))
    assert spec.size == 10_002 * 64 + 65 * CLASSES


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_executors_agree(dropout):
    """Updates agree for two steps of two clients, a padded batch and an empty text."""
    module = make(hidden=(8,), dropout=dropout)
    x, y = texts(5)
    x[0] = PAD
    data = TrainingData(x, y, BatchSource(samples_of([3, 2]), 3, Stream(2)))
    task, job = job_for(module, data, lr=2.0, steps=2)
    assert check_model(task, *data.first(4), CLASSES) is None
    assert why_not_vmapped(task, *data.first(4)) is None
    results = {name: updates(executor(task, data), job) for name, executor in ANY_MODULE.items()}
    if not dropout:
        results["plain"] = plain_loop(module, data, job, lr=2.0)
    assert float(results["loop"].abs().max()) > 1e-2
    for name, found in results.items():
        torch.testing.assert_close(found, results["loop"], rtol=0, atol=1e-5, msg=name)


@pytest.mark.thorough
def test_runs_with_each_executor_agree(sst2, tmp_path):
    """The tokenizer defaults to words and is stored; steps can be recorded; the model learns."""
    shared = {"dataset": "sst2", "data_dir": sst2, "model": "text-mean", "max_length": 8}
    shared |= {"clients": 4, "clients_per_round": 3, "split": "iid", "rounds": 8, "batch_size": 10}
    shared |= {"lr": 5.0, "threads": 1, "chunk": 2, "local_steps": 5}
    variants = [{"executor": "loop"}, {"replay": "off"}, {"replay": "on"}]
    results = [
        wirelessfl.run(Config.from_flags("fedavg", **shared, **flags, out=tmp_path / str(number)))
        for number, flags in enumerate(variants)
    ]
    for result in results:
        assert result.config.dataset.tokenizer == "words"
        assert result.params["embedding.weight"].shape == (2 + 8, 64)
        for name, value in results[0].params.items():
            torch.testing.assert_close(result.params[name], value, rtol=0, atol=1e-4)
    assert results[-1].rows[0]["accuracy"] < 0.8
    assert results[-1].rows[-1]["accuracy"] == 1.0
    stored = Config.from_toml(results[0].directory / "config.toml")
    assert stored.dataset.tokenizer == "words"
    assert build(stored).config.run.executor == "loop"


def test_a_run_does_not_need_transformers(sst2, tmp_path, monkeypatch, capsys):
    """From the command line, with these packages hidden as if they were not installed."""
    for name in ("transformers", "tokenizers", "peft", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    flags = f"--dataset sst2 --data-dir {sst2} --model text-mean --tokenizer words:5 --clients 3 "
    flags += "--rounds 1 --local-steps 1 --batch-size 4 --embedding 3 --hidden 4 --max-length 6 "
    flags += f"--threads 1 --quiet --out {tmp_path / 'run'}"
    assert main(["run", "fedavg", *flags.split()]) == 0
    assert not capsys.readouterr().err
    rows = (tmp_path / "run" / "rows.jsonl").read_text().splitlines()
    assert len(rows) == 2
    parameters = (2 + 5) * 3 + (3 + 1) * 4 + (4 + 1) * 2
    assert json.loads(rows[1])["uplink_mib"] == pytest.approx(4 * parameters / 2**20)


def test_the_data_set_of_the_docs_runs(tmp_path, monkeypatch):
    """The documented command for one's own texts, in which the tokenizer defaults to words."""
    page = (Path(__file__).parents[3] / "docs" / "guides" / "language.md").read_text(
        encoding="utf-8"
    )
    (code,) = re.findall(r"```python file=my_texts\.py\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(
        r"^wirelessfl (run .*my_texts:moods.* text-mean .*)$", page, re.MULTILINE
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_texts", raising=False)
    Path("my_texts.py").write_text(code)
    small = "--rounds 1 --local-steps 1 --threads 1 --out run"
    assert main([*command.split(), *small.split()]) == 0
    stored = Config.from_toml(Path("run", "config.toml"), trust=True)
    assert (stored.dataset.tokenizer, stored.dataset.max_length) == ("words", 16)
    monkeypatch.delitem(sys.modules, "my_texts")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"dataset": "digits"}, r"text-mean needs texts as token ids .*\(1, 8, 8\): choose 20news"),
        ({"dataset": "digits", "tokenizer": "words"}, r'tokenizer=.*"20news.*dataset is "digits"'),
        ({"dropout": 0.5}, r"dropout is 0\.5, but text-mean has no hidden layers"),
    ],
)
def test_wrong_settings_are_one_line_errors(sst2, flags, message):
    settings = {"model": "text-mean", "dataset": "sst2", "clients": 4} | flags
    if settings["dataset"] == "sst2":
        settings["data_dir"] = sst2
    with pytest.raises(ConfigError, match=message) as caught:
        build(Config.from_flags("fedavg", **settings))
    assert "\n" not in str(caught.value)


def test_a_data_set_that_does_not_state_its_vocabulary_is_refused():
    x, y = texts(20)
    data = Dataset("mine", x, y, x, y, CLASSES, pad_id=PAD)
    config = Config.from_flags("fedavg", model="text-mean", clients=2, split="iid")
    with pytest.raises(ConfigError, match=r"does not state it: give it as vocabulary of the wire"):
        build(config, data=data)


def test_other_models_keep_their_tokenizer(sst2):
    for model, flags, tokenizer in (
        ("fcnn", {}, "gpt2"),
        ("gpt2-lora", {}, "gpt2"),
        ("gpt2-lora", {"pretrained": "./base"}, "./base"),
        ("text-mean", {"tokenizer": "gpt2"}, "gpt2"),
    ):
        config = Config.from_flags("fedavg", dataset="sst2", model=model, **flags)
        assert config.dataset.tokenizer == tokenizer
