"""GPT-2 with LoRA: trained parameters, input of the head, and training on texts."""

import logging
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import wirelessfl
from channels.streams import Stream
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import files, load_dataset
from wirelessfl.errors import ConfigError
from wirelessfl.models import build_model
from wirelessfl.runs.kept import is_finished, kept_run
from wirelessfl.setup import build
from wirelessfl.setup.executors import _gpu_chunk
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.batches import Batch
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import record
from wirelessfl.training.trial import check_model, why_not_vmapped

LENGTH = 12
GOOD, BAD = ["fine", "great", "lovely", "warm"], ["dull", "poor", "sad", "cold"]
WORDS = ["a", "the", "film", "plot", "is", "very", *GOOD, *BAD]
PAD = 1


def sentences(count, seed):
    """Sentences of 4 to 9 words, one of which determines the label."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        label = int(random.integers(2))
        words = list(random.choice(WORDS[:6], random.integers(3, 9)))
        words.insert(random.integers(len(words) + 1), random.choice((BAD, GOOD)[label]))
        rows.append((" ".join(words), label))
    return rows


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


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp() / "language-cache"
    monkeypatch.setattr(files, "cache_folder", lambda: folder)
    return folder


def make(base, *, classes=3, length=LENGTH, dropout=0.0, seed=1, **options):
    return build_model(
        "gpt2-lora",
        (length,),
        classes,
        dropout=dropout,
        stream=Stream(seed),
        pretrained=str(base),
        **{"lora_rank": 2} | options,
    )


def texts(count, seed=0, length=LENGTH):
    """Token ids of random lengths, padded on the right."""
    random = np.random.default_rng(seed)
    ids = random.integers(2, len(WORDS), (count, length))
    ids[np.arange(length) >= random.integers(1, length + 1, (count, 1))] = PAD
    return torch.from_numpy(ids)


def test_only_adapters_and_head_are_trained(base):
    spec = ParamSpec.of(make(base))
    a_layer = 2 * (16 + 3 * 16)  # A [r, inputs], B [outputs, r]
    assert spec.size == 2 * a_layer + 3 * 16
    assert all("lora_" in name or name.endswith("score.weight") for name in spec.shapes)


def test_the_trained_fraction_is_the_published_one():
    """LoRA trains 1.9 % of GPT-2's parameters (FAdamGC, Section 5).

    GPT-2 has 12 layers of width 768 and 124,439,808 parameters.
    """
    adapters, head, whole = 12 * 64 * (768 + 3 * 768), 20 * 768, 124_439_808
    assert round(100 * (adapters + head) / (whole + adapters + head), 1) == 1.9


def test_the_untrained_model_is_the_base_with_a_linear_head(base):
    """B is initially zero, so logits equal those of transformers' GPT-2 without padding."""
    from transformers import GPT2Model

    model = make(base).eval()
    plain = GPT2Model.from_pretrained(base).eval()
    x = texts(20)
    with torch.no_grad():
        logits = model(x)
        for row, given in zip(x, logits, strict=True):
            text = row[: int((row != PAD).sum())]
            hidden = plain(input_ids=text[None]).last_hidden_state[0, -1]
            torch.testing.assert_close(given, model.network.score(hidden), rtol=1e-4, atol=1e-5)


def test_adapters_add_their_product_scaled_by_alpha_over_rank(base):
    """Logits equal those of a GPT-2 with alpha/r (B A)^T added to its attention weights."""
    model, merged = make(base, lora_alpha=5.0), make(base, lora_alpha=5.0)
    torch.manual_seed(3)
    for one, two in zip(model.network.transformer.h, merged.network.transformer.h, strict=True):
        adapter, other = one.attn.c_attn, two.attn.c_attn
        up, down = adapter.lora_B["default"].weight, adapter.lora_A["default"].weight
        with torch.no_grad():
            up.normal_(std=0.5)
            other.base_layer.weight += 5.0 / 2 * (up @ down).T
    x = texts(8)
    torch.testing.assert_close(model(x), merged(x), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(model(x), make(base)(x), atol=1e-2)


def test_padding_does_not_change_logits(base):
    model = make(base, length=16)
    x = texts(6)
    longer = torch.cat([x, torch.full((6, 4), PAD)], 1)
    torch.testing.assert_close(model(longer), model(x))
    empty = torch.full((1, LENGTH), PAD)
    assert model(empty).isfinite().all()


def test_the_padding_id_of_the_data_set_is_used(base):
    model = make(base, pad_id=7)
    x = texts(6)
    assert model.pad_id == 7
    torch.testing.assert_close(model(torch.where(x == PAD, 7, x)), make(base)(x))


def test_initial_weights_come_from_the_stream_alone(base):
    def first(seed):
        return ParamSpec.of(model := make(base, seed=seed)).from_module(model)

    before = torch.random.get_rng_state()
    assert torch.equal(first(1), first(1))
    assert torch.equal(before, torch.random.get_rng_state())
    apart = first(1) != first(2)
    adapters = apart[: -3 * 16].view(2, -1)  # two layers: A, then B, which is zero
    assert adapters[:, : 2 * 16].all()
    assert not adapters[:, 2 * 16 :].any()
    assert apart[-3 * 16 :].all()


def test_clients_can_train_under_vmap(base):
    """The model runs under vmap with padded batches, with and without adapter dropout."""
    y = torch.tensor([0, 1, 2, 1])
    for dropout in (0.0, 0.5):
        objective = Objective.of(make(base, dropout=dropout))
        assert len(objective.dropout_keys) == 2 * (dropout > 0)
        assert check_model(objective, texts(4), y, 3) is None
        assert why_not_vmapped(objective, texts(4), y) is None


def test_a_step_can_be_recorded(base):
    """A step can be recorded, so other tests really compare recorded steps."""
    objective = Objective.of(make(base))
    params = [
        p.detach() for n, p in objective.module.named_parameters() if n in objective.spec.shapes
    ]
    names = list(objective.spec.shapes)
    batch = [texts(4), torch.tensor([0, 1, 2, 1]), torch.full((4,), 0.25)]

    def gradients(*tensors):
        given = dict(zip(names, tensors, strict=False))
        key = torch.zeros(2, dtype=torch.int32)
        return list(objective.gradients(given, Batch(*tensors[len(names) :], key)).values())

    program = record(gradients, [*params, *batch])
    batch[0] = texts(4, seed=1)
    for found, value in zip(program(*params, *batch), gradients(*params, *batch), strict=True):
        torch.testing.assert_close(found, value)


def test_dropout_acts_on_the_adapters_only(base):
    model = make(base, dropout=0.5)
    x = texts(4)
    torch.testing.assert_close(model.train()(x), make(base)(x))  # B is zero
    for block in model.network.transformer.h:
        torch.nn.init.normal_(block.attn.c_attn.lora_B["default"].weight)
    assert not torch.allclose(model.train()(x), model.eval()(x), atol=1e-2)


def test_declared_memory_per_sample_matches_autograd(base, monkeypatch):
    """The memory that autograd stores for a batch is within a factor of 4 of the declared one."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    model, batch = make(base).train(), 8
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(texts(batch)).sum()
    size = sum(s.nbytes() for pointer, s in kept.items() if pointer not in known)
    assert loss.requires_grad
    assert size / 4 < batch * model.bytes_per_sample < 4 * size
    objective = Objective.of(model)
    room = 10 * (64 * objective.spec.size + batch * model.bytes_per_sample)
    memory = SimpleNamespace(total_memory=room / 0.8 + 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    assert _gpu_chunk(objective, batch, torch.device("cuda")) == 10
    assert _gpu_chunk(objective, 10**6, torch.device("cuda")) == 1


WITHOUT_MODEL = {"model": None, "pretrained": None, "lora_rank": None}
WITHOUT_DATA = {"dataset": None, "max_length": None}
"""Settings that a given object replaces."""


@pytest.fixture
def settings(base, data_dir, tmp_path):
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


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_executors_agree(settings, dropout):
    """After three rounds, the loop and vmap (recorded or in chunks) agree to 1e-5."""
    variants = [
        {"executor": "loop"},
        {"executor": "vmap"},
        {"executor": "vmap", "replay": "on"},
        {"executor": "vmap", "chunk": 2},
        {"executor": "vmap", "chunk": 1},
    ]
    results = [wirelessfl.run(settings(dropout=dropout, **flags)) for flags in variants]
    for result in results:
        for name, value in results[0].params.items():
            torch.testing.assert_close(result.params[name], value, rtol=0, atol=1e-5)


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


def test_workers_share_the_base(settings, same):
    """Two worker processes give the same results as one."""
    alone = wirelessfl.run(settings(chunk=2, rounds=2))
    together = wirelessfl.run(settings(chunk=2, rounds=2, workers=2))
    same(alone, together)


def test_a_finished_gpt2_run_is_not_repeated(settings, tmp_path):
    """``kept_run`` finds the finished run, although the tokenizer is not among the flags."""
    config = settings(rounds=1)
    assert config.data.tokenizer == config.model["pretrained"]
    kept_run(config, tmp_path / "kept")
    assert is_finished(config, tmp_path / "kept")
    (folder,) = (tmp_path / "kept").iterdir()
    before = (folder / "rows.jsonl").stat().st_mtime_ns
    assert kept_run(config, tmp_path / "kept").directory == folder
    assert (folder / "rows.jsonl").stat().st_mtime_ns == before


def test_a_stored_configuration_repeats_the_run(settings, base, same):
    """The tokenizer defaults to the model's and is stored, so a run from the file is the same."""
    first = wirelessfl.run(settings(rounds=1))
    assert first.config.data.tokenizer == str(base)
    again = Config.from_toml(first.directory / "config.toml")
    same(first, wirelessfl.run(again.with_run({"out": first.directory.with_name("again")})))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"model": "fcnn"},
         r'pretrained=.* is a setting of model "gpt2-lora", and model is "fcnn": choose model '
         r'"gpt2-lora", or leave pretrained out\.$'),
        ({"model": "fcnn", "pretrained": None, "lora_rank": None, "lora_alpha": 2.0,
          "tokenizer": "BASE"},
         r'lora_alpha=2\.0 is .* "gpt2-lora", and model is "fcnn": .* leave lora_alpha out\.$'),
        ({"hidden": ("5",)},
         r'hidden=.* is a setting of model "fcnn" or "mlp" .*, and model is "gpt2-lora"'),
        ({"dataset": "digits", "data_dir": None},
         r'max_length=12 conflicts with dataset "digits", which does not use it: choose 20news.*, '
         r"or leave max_length out\.$"),
        ({"dataset": "digits", "data_dir": None, "max_length": None},
         r"needs texts as token ids .*\(1, 8, 8\): choose sst2"),
        ({"max_length": 17}, "max_length is 17, but pretrained .* at most 16 tokens"),
        ({"pretrained": "/not/there"}, r"tokenizer is '/not/there', which is not a folder"),
        ({"pretrained": "./gone", "tokenizer": "BASE"}, r"pretrained is './gone', which is no"),
        ({"lora_rank": 0}, "lora_rank is 0"),
        ({"lora_alpha": 0}, "lora_alpha is 0"),
        ({"max_length": 0}, "max_length is 0"),
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
    with pytest.raises(
        ConfigError, match=r"max_length=12 conflicts with data=\.\.\., which is tok"
    ):
        build(settings(), data=data)  # of the same name
    other = replace(data, name="other")
    with pytest.raises(ConfigError, match=r"replaces dataset=sst2: leave this setting out, or the"):
        build(settings(), data=other)
    with pytest.raises(
        ConfigError, match=r"max_length=12 conflicts with data=\.\.\., which is toke"
    ):
        build({"algorithm": "fedavg", "data": {"max_length": LENGTH}}, data=data)
    build(settings(**WITHOUT_MODEL, **WITHOUT_DATA), model=model, data=data)


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


def test_tokens_of_another_vocabulary_are_refused(settings, base):
    data = load_dataset("sst2", settings().data.data_dir, tokenizer=str(base), max_length=LENGTH)
    strange = data.test_inputs.clone()
    strange[3, 2] = len(WORDS) + 2
    config = settings(**WITHOUT_DATA)
    with pytest.raises(ConfigError, match=r"token id 16 in its test samples.*accepts 0 to 15"):
        build(config, data=replace(data, test_inputs=strange, vocabulary=None))


def test_the_data_set_of_the_docs_runs(base, tmp_path, monkeypatch):
    """The documented command runs, with a small base and few steps."""
    page = (Path(__file__).parents[3] / "docs" / "language.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python file=my_texts\.py\n(.*?)```", page, re.DOTALL)
    command = re.findall(r"^wirelessfl (run .*my_texts:moods.*)$", page, re.MULTILINE)[0]
    monkeypatch.chdir(tmp_path)
    Path("my_texts.py").write_text(code)
    small = f"--pretrained {base} --lora-rank 2 --rounds 1 --local-steps 1 --threads 1 --out run"
    assert main([*command.split(), *small.split()]) == 0
    stored = Config.from_toml(Path("run", "config.toml"))
    assert (stored.data.tokenizer, stored.data.max_length) == (str(base), 16)
