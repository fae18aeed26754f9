"""A small GPT-2 that transformers has saved, SST-2's files with generated sentences, and runs."""

import pytest
import torch

from tests.wirelessfl.models.gpt2 import LENGTH, PAD, WORDS, sentences
from wirelessfl.config import Config
from wirelessfl.data import files


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A GPT-2 with two layers and random weights, and a tokenizer, saved by transformers."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("pretrained") / "tiny"
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>"])
    words.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>")
    assert fast.pad_token_id == PAD
    settings = GPT2Config(
        vocab_size=len(fast),
        n_positions=16,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=PAD,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    GPT2Model(settings).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """SST-2's files with generated sentences."""
    root = tmp_path_factory.mktemp("data")
    (root / "sst2").mkdir()
    for name, count in (("train", 160), ("dev", 60)):
        rows = [f"{text}\t{label}\n" for text, label in sentences(count, count)]
        (root / "sst2" / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(rows))
    return root


@pytest.fixture
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp() / "language-cache"
    monkeypatch.setattr(files, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def settings(base, data_dir, cache, tmp_path):
    made = []

    def make_config(**flags):
        made.append(flags)
        settings = {
            "dataset": "sst2",
            "data_dir": data_dir,
            "max_length": LENGTH,
            "model": "gpt2-lora",
            "pretrained": str(base),
            "lora_rank": 4,
            "clients": 4,
            "split": "iid",
            "local_steps": 3,
            "rounds": 3,
            "batch_size": 16,
            "lr": 0.1,
            "threads": 1,
            "chunk": 4,
            "replay": "off",
            "out": tmp_path / f"run{len(made)}",
        } | flags
        given = {key: value for key, value in settings.items() if value is not None}
        return Config.from_flags("fedavg", **given)

    return make_config
