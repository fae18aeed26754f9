"""The word tokenizer: its vocabulary, unknown words, length, and the cache of token ids."""

import random
import sys

import pytest

from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.data import files, load_dataset
from wirelessfl.data.tokens import DEFAULT_LIMIT, PAD_ID, UNKNOWN_ID, Tokenizer, WordTokenizer


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "tokens"


@pytest.fixture(autouse=True)
def without_transformers(monkeypatch):
    """As if the extra ``language`` were not installed: imports of these packages fail."""
    for name in ("transformers", "tokenizers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)


def ids(train, *others, limit=DEFAULT_LIMIT, length=6):
    """Token ids of the parts as lists, and the number of token ids."""
    found = WordTokenizer(limit).tokens(train, *others, max_length=length)
    assert found.pad_id == PAD_ID
    return [part.tolist() for part in found.parts], found.vocabulary


def write_sst2(root, train, test):
    (root / "sst2").mkdir(exist_ok=True)
    for name, texts in (("train", train), ("dev", test)):
        rows = "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts))
        (root / "sst2" / f"{name}.tsv").write_text("sentence\tlabel\n" + rows)


def test_ids_are_ranks_by_frequency_and_then_by_the_alphabet():
    """c occurs three times, a and b twice, d once; 0 is padding and 1 is unknown."""
    (train,), vocabulary = ids(["c b a", "d c", "a C b"], length=4)
    assert train == [[2, 4, 3, 0], [5, 2, 0, 0], [3, 2, 4, 0]]
    assert vocabulary == 6


def test_only_the_most_frequent_words_are_known():
    (train,), vocabulary = ids(["c b a", "d c", "a c b"], limit=2, length=3)
    assert train == [[2, UNKNOWN_ID, 3], [UNKNOWN_ID, 2, PAD_ID], [3, 2, UNKNOWN_ID]]
    assert vocabulary == 4


def test_words_are_letters_and_digits_with_inner_apostrophes():
    texts = ["Don't STOP-it, 'tis_3rd caf\u00e9's!", "--- ''' ___"]
    same = ["don't stop it tis 3rd caf\u00e9's", ""]
    assert ids(texts) == ids(same)
    assert ids(texts)[1] == 2 + 6


def test_long_texts_are_cut_on_the_right_and_short_ones_padded():
    """Words after the cut still count in the vocabulary."""
    (train,), vocabulary = ids(["a b c d d", "", "b"], length=3)
    assert train == [[4, 2, 5], [PAD_ID] * 3, [2, PAD_ID, PAD_ID]]  # d has the id 3
    assert vocabulary == 6
    assert ids(["", "?!"]) == ([[[PAD_ID] * 6] * 2], 2)


def test_test_texts_do_not_change_the_vocabulary():
    (train, test), vocabulary = ids(["a b b"], ["z z z a", "b q"], length=4)
    assert train == ids(["a b b"], length=4)[0][0]
    assert test == [[1, 1, 1, 3], [2, 1, 0, 0]]
    assert vocabulary == 4


@pytest.mark.parametrize("limit", [3, 8, 100])
def test_the_order_of_texts_does_not_change_ids(limit):
    draw = random.Random(3)
    texts = [" ".join(draw.choices("abcdefghijkl", k=9)) for _ in range(30)]
    (before,), vocabulary = ids(texts, limit=limit)
    order = draw.sample(range(30), 30)
    (after,), same = ids([texts[i] for i in order], limit=limit)
    assert after == [before[i] for i in order]
    assert vocabulary == same == 2 + min(limit, 12)


def test_data_sets_state_the_vocabulary(tmp_path, cache, monkeypatch):
    """Also when it comes from the cache, which has one file per number of words and length."""
    write_sst2(tmp_path, ["a good film", "a bad film"], ["a good plot"])
    calls, real = [], WordTokenizer.tokens

    def counting(self, *parts, max_length):
        calls.append((self.limit, max_length))
        return real(self, *parts, max_length=max_length)

    monkeypatch.setattr(WordTokenizer, "tokens", counting)
    for _ in range(2):
        data = load_dataset("sst2", tmp_path, tokenizer="words", max_length=4)
        assert data.train_inputs.tolist() == [[2, 5, 3, 0], [2, 4, 3, 0]]
        assert data.test_inputs.tolist() == [[2, 5, 1, 0]]
        assert (data.vocabulary, data.pad_id) == (6, PAD_ID)
    assert load_dataset("sst2", tmp_path, tokenizer="words:1", max_length=4).vocabulary == 3
    assert load_dataset("sst2", tmp_path, tokenizer="words", max_length=3).input_shape == (3,)
    load_dataset("sst2", tmp_path, tokenizer=f"words:{DEFAULT_LIMIT}", max_length=3)
    assert calls == [(DEFAULT_LIMIT, 4), (1, 4), (DEFAULT_LIMIT, 3)]
    assert len(list(cache.iterdir())) == 3


def test_changed_training_texts_invalidate_the_cache(tmp_path):
    for word in ("good", "fine"):
        write_sst2(tmp_path, [f"a {word} film", "a bad film"], ["good"])
        data = load_dataset("sst2", tmp_path, tokenizer="words", max_length=2)
        assert data.test_inputs.tolist() == [[5 if word == "good" else UNKNOWN_ID, PAD_ID]]


def test_names_of_the_tokenizer():
    assert Tokenizer.find("words") == WordTokenizer(10_000)
    assert Tokenizer.find("words:50") == WordTokenizer(50)
    assert WordTokenizer.of("gpt2") is None
    assert WordTokenizer.of("./words") is None
    assert WordTokenizer(5).digest != WordTokenizer(6).digest


@pytest.mark.parametrize("limit", ["0", "-1", "", "2.5", "many", "1_0", " 5", "5:5", "\u0665"])
def test_wrong_numbers_of_words_are_one_line_errors(limit):
    """They are refused before the data are read."""
    wanted = rf"^tokenizer is 'words:{limit}': give the number of words .* integer >= 1"
    with pytest.raises(ConfigError, match=wanted) as caught:
        Config.from_flags("fedavg", dataset="sst2", tokenizer=f"words:{limit}")
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=wanted):
        load_dataset("sst2", tokenizer=f"words:{limit}")
