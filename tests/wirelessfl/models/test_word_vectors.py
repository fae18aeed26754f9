"""text-mean starts at word vectors from a file: means by hand, missing words, wrong files."""

import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import wirelessfl
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.config import Config
from wirelessfl.data import Dataset, Tokenizer, files
from wirelessfl.models import TextMean, build_model
from wirelessfl.results import Runs
from wirelessfl.results.card import CARD, MODEL, card
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.folder.named_files import named_hashes

TRAIN = ["a fine day", "a sad day", "a day", "sad"]
GLOVE = "fine 1 2 -4\nday 3 0.5 0\nunseen 9 9 9\na -1 0 1e-1\nday 7 7 7\n"
"""Without the word "sad"; "day" is repeated."""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")


@pytest.fixture
def vectors(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text(GLOVE)
    return file


def texts(**changes):
    tokens = Tokenizer.find("words").tokens(TRAIN, TRAIN[:2], max_length=4)
    labels = torch.tensor([1, 0, 1, 0])
    facts = {"pad_id": tokens.pad_id, "vocabulary": tokens.vocabulary, "words": tokens.words}
    return Dataset("moods", *_parts(tokens, labels), classes=2, **facts | changes)


def _parts(tokens, labels):
    return tokens.parts[0], labels, tokens.parts[1], labels[:2]


def make(file, data=None, **options):
    data = data or texts()
    facts = {"pad_id": data.pad_id, "vocabulary": data.vocabulary, "words": data.words}
    settings = {"embedding_file": file} | options
    return build_model("text-mean", (4,), 2, stream=Stream(1), **facts, **settings)


def test_words_of_token_ids():
    data = texts()
    assert data.words == ("", "", "a", "day", "sad", "fine")
    assert data.vocabulary == 6


def test_means_equal_those_by_hand(vectors):
    """The mean of "a fine day" is that of three lines of the file, of "a day" of two."""
    model, data = make(vectors), texts()
    model.classifier = torch.nn.Identity()
    means = model(data.train_inputs).detach()
    torch.testing.assert_close(means[0], torch.tensor([3.0, 2.5, -3.9]) / 3)
    torch.testing.assert_close(means[2], torch.tensor([2.0, 0.5, 0.1]) / 2)
    assert model.embedding.weight.requires_grad


def test_missing_words_start_as_without_a_file(vectors):
    model, plain = make(vectors), make(None, embedding=3)
    for number in (0, 1, texts().words.index("sad")):
        assert torch.equal(model.embedding.weight[number], plain.embedding.weight[number])
    assert torch.equal(model.classifier.layers[1].weight, plain.classifier.layers[1].weight)
    assert model.notes == (
        "model text-mean: 1 of 4 words (25.0%) are not in embedding_file; their embeddings start "
        "at random.",
    )
    assert plain.notes == ()


def test_the_format_of_word2vec(tmp_path, vectors):
    """With a first line of two numbers, spaces at the ends and bytes that are not UTF-8."""
    file = tmp_path / "word2vec.txt"
    lines = [f"{line} ".encode() for line in GLOVE.splitlines()]
    file.write_bytes(b"\n".join([b"6 3", b"caf\xe9 1 2 3", *lines]) + b"\n")
    assert torch.equal(make(file).embedding.weight, make(vectors).embedding.weight)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (GLOVE, {"embedding": 4}, "embedding is 4, but the vectors .* have 3 numbers: leave embed"),
        ("fine 1 2\nday 1 2 3\n", {}, r"line 2 \('day'\) has 3 numbers, but the first line 2"),
        ("fine 1 x\n", {}, r"line 1 \('fine'\) has a value that is not a number"),
        ("9 2\nfine 1 inf\n", {}, r"line 2 \('fine'\) has a number that is not finite"),
        ("", {}, "no line is a word of the data set and its numbers. Give a text file of GloVe"),
        ("9 99999999999\n", {}, "no line is a word of the data set"),
        ("fine\t1\t2\n", {}, "no line is a word of the data set"),
        (None, {}, "is missing. Give a text file of GloVe or word2vec as embedding_file"),
    ],
)
def test_wrong_files_are_one_line_errors(tmp_path, content, options, message):
    file = tmp_path / "wrong.txt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        make(file, **options)
    assert "\n" not in str(caught.value)


def test_tokens_that_are_not_words_are_refused(vectors):
    with pytest.raises(ConfigError, match=r"needs the word of each token id.*tokenizer words"):
        make(vectors, texts(words=None))
    with pytest.raises(DataError, match="words has 2 entries, but vocabulary is 6"):
        texts(words=("", "a"))


def test_a_run_begins_with_the_vectors_and_trains_them(tmp_path, vectors):
    """From SST-2's files, also with cached tokens; other content of the file is another run."""
    (tmp_path / "sst2").mkdir()
    for part in ("train", "dev"):
        rows = "".join(f"{text}\t{n % 2}\n" for n, text in enumerate(TRAIN))
        (tmp_path / "sst2" / f"{part}.tsv").write_text("sentence\tlabel\n" + rows)
    flags = {"dataset": "sst2", "data_dir": tmp_path, "model": "text-mean", "clients": 2}
    flags |= {"split": "iid", "rounds": 1, "local_steps": 1, "threads": 1, "max_length": 4}
    flags |= {"tokenizer": "words:4"}
    results = []
    for number in range(2):
        config = Config.from_flags(
            "fedavg", **flags, embedding_file=vectors, out=tmp_path / f"run{number}"
        )
        results.append(wirelessfl.run(config))
    table = results[0].params["embedding.weight"]
    assert torch.equal(table, results[1].params["embedding.weight"])
    assert table.shape == (6, 3)
    assert 0 < (table[5] - torch.tensor([1.0, 2.0, -4.0])).abs().max() < 0.5
    about = (results[0].directory / "about.json").read_text()
    assert "1 of 4 words (25.0%) are not in embedding_file" in about
    card(Runs([results[0]]), tmp_path / "card")
    [code] = re.findall(r"^model = (.*)", (tmp_path / "card" / CARD).read_text(), re.M)
    loaded = eval(code, {"TextMean": TextMean})
    loaded.load_state_dict(load_file(tmp_path / "card" / MODEL))  # without the file of vectors
    before = settings_hash(config), named_hashes(config)
    assert [*before[1]] == [f"embedding_file {vectors}"]
    vectors.write_text(GLOVE.replace("fine 1", "fine 5"))
    assert settings_hash(config) != before[0]
    with pytest.raises(ConfigError, match=r"vectors\.txt"):
        wirelessfl.resume(results[0].directory, rounds=2)
    assert np.isfinite(results[0].rows[-1]["accuracy"])


def test_costs_are_known_without_data(vectors):
    """The size of the vectors determines that of uploads, which need no texts."""
    config = Config.from_flags(
        "fedavg", dataset="sst2", model="text-mean", embedding_file=vectors, clients=2, rounds=1
    )
    prices = wirelessfl.price(config)
    parameters = 10_002 * 3 + 4 * 2
    assert prices.rows[1]["uplink_mib"] == pytest.approx(4 * parameters / 2**20)
