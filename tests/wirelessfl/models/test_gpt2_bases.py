"""GPT-2 with LoRA: pretrained models from a folder or the hub."""

import logging
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.wirelessfl.models.gpt2 import WORDS, make
from wirelessfl.base.errors import ConfigError


def copy_of(base, tmp_path):
    return shutil.copytree(base, tmp_path / "copy")


def test_damaged_or_foreign_bases_are_named(base, tmp_path):
    from transformers import BertConfig

    folder = copy_of(base, tmp_path)
    weights = load_file(folder / "model.safetensors")
    lost = {name: value for name, value in weights.items() if "c_fc.weight" not in name}
    save_file(lost, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"h\.0\.mlp\.c_fc\.weight' is missing.*\(2 such"):
        make(folder)
    content = (base / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ConfigError, match=r"pretrained is .*cannot be used: SafetensorError"):
        make(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"has no config\.json and model\.safetensors or"):
        make(folder)
    (folder / "model.safetensors").write_bytes(content)
    BertConfig().save_pretrained(folder)
    with pytest.raises(ConfigError, match=r"a model of type 'bert': give a model of type gpt2"):
        make(folder)


def test_a_head_for_other_classes_is_replaced(base, tmp_path):
    """The head is always new, even if the base has one of the right size."""
    from transformers import GPT2ForSequenceClassification

    folder = copy_of(base, tmp_path)
    other = GPT2ForSequenceClassification.from_pretrained(base, num_labels=5)
    other.save_pretrained(folder)
    for classes in (3, 5):
        new = make(folder, classes=classes).network.score.weight
        assert torch.equal(new, make(base, classes=classes).network.score.weight)


def test_a_base_in_half_precision_is_trained_in_single(base, tmp_path):
    folder = copy_of(base, tmp_path)
    weights = {n: v.half() for n, v in load_file(base / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert {p.dtype for p in make(folder).parameters()} == {torch.float32}


def test_the_hub_is_contacted_only_if_needed_and_its_absence_explained(base, monkeypatch, capsys):
    """Downloaded files are used without the hub; if the hub is needed, its failure is explained."""
    import huggingface_hub

    calls = []

    def fetched(name, *, allow_patterns, local_files_only):
        calls.append(local_files_only)
        return str(base)

    def absent(name, *, allow_patterns, local_files_only):
        calls.append(local_files_only)
        logging.getLogger("huggingface_hub.utils").warning("noise")
        if local_files_only:
            raise huggingface_hub.errors.LocalEntryNotFoundError("not here")
        raise OSError("We couldn't connect to the hub.\nMore lines.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    assert make("gpt2-tiny").vocabulary == len(WORDS) + 2
    assert calls == [True]
    monkeypatch.setattr(huggingface_hub, "snapshot_download", absent)
    message = (
        "pretrained is 'gpt2-tiny', which is not a local folder and cannot be downloaded from the "
        "hub: We couldn't connect to the hub. Connect to the internet once, or give a folder with "
        "config.json and model.safetensors or model.safetensors.index.json."
    )
    with pytest.raises(ConfigError) as caught:
        make("gpt2-tiny")
    assert str(caught.value) == message
    assert calls == [True, True, False]


def test_absent_packages_are_named(base, monkeypatch):
    for package in ("transformers", "peft"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(ConfigError, match=rf"needs the package {package}.*\[language\]"):
                make(base)
