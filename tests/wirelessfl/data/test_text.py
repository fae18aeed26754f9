"""Data sets of texts: published formats, unusual characters, damage, and the token cache."""

import io
import json
import os
import shutil
import sys
import tarfile

import pytest
import torch

from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.data import Dataset, files, load_dataset, text_options, tokens
from wirelessfl.data.text import TEXT_DATA
from wirelessfl.data.text_files import read_tsv

BY_NAME = {data.name: data for data in TEXT_DATA}
LENGTH = 40
PAD = 0


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A tokenizer with one token per character, so that texts can be decoded."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tokenizer") / "characters"
    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    trainer = trainers.WordLevelTrainer(special_tokens=["<pad>", "<unk>"])
    characters = [chr(i) for i in range(32, 127)] + list("\n\té\x85\u2028")
    made.train_from_iterator(["".join(characters)], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="<pad>")
    assert fast.pad_token_id == PAD
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "tokens"


@pytest.fixture
def tokenised(monkeypatch):
    """A list of the number of texts in each call of the tokenizer."""
    counts = []
    real = tokens.Tokenizer.tokens

    def counting(self, *parts, max_length):
        counts.append(sum(map(len, parts)))
        return real(self, *parts, max_length=max_length)

    monkeypatch.setattr(tokens.Tokenizer, "tokens", counting)
    return counts


def texts_of(inputs, words):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(words)
    return ["".join(tokenizer.convert_ids_to_tokens(row[row != PAD])) for row in inputs]


def load(name, root, words, length=LENGTH):
    return load_dataset(name, root, tokenizer=str(words), max_length=length)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def write_sst2(root, train='an "odd film\t1\nso, so\t0\n', dev="fine\t1\n"):
    write(root / "sst2" / "train.tsv", "sentence\tlabel\n" + train)
    write(root / "sst2" / "dev.tsv", "sentence\tlabel\n" + dev)


def write_rows(path, rows):
    """Write a file of a copy from the hub."""
    import pyarrow
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


QNLI = "index\tquestion\tsentence\tlabel\n"
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


@pytest.mark.thorough
def test_sst2_quotes_and_odd_spaces_are_text(tmp_path, words):
    """Quotes are ordinary characters; only line feeds end lines; empty lines are skipped."""
    rows = ["it 's \"not good\t0", "caf\u00e9 , \x85 and \u2028 such\t1", "", "plain \t1"]
    write(tmp_path / "sst2" / "train.tsv", "sentence\tlabel\n" + "\n".join(rows) + "\n")
    write(tmp_path / "sst2" / "dev.tsv", "sentence\tlabel\r\nlast\t1\r\n")
    data = load("sst2", tmp_path, words)
    assert texts_of(data.train_inputs, words) == [
        "it 's \"not good",
        "caf\u00e9 , \x85 and \u2028 such",
        "plain ",
    ]
    assert data.train_labels.tolist() == [0, 1, 1]
    assert texts_of(data.test_inputs, words) == ["last"]
    assert (data.classes, data.pad_id, data.input_shape) == (2, PAD, (LENGTH,))
    from transformers import AutoTokenizer

    assert data.vocabulary == len(AutoTokenizer.from_pretrained(words))
    assert data.verification == "structure and labels; not checksummed"


def test_pairs_are_joined_by_a_line_break(tmp_path, words):
    write(tmp_path / "qnli/train.tsv", QNLI + '0\tWho?\tHe, "she" did.\tnot_entailment\n')
    write(tmp_path / "qnli/dev.tsv", QNLI + "0\tA\tB\tentailment\n1\tC\t\tnot_entailment\n")
    data = load("qnli", tmp_path, words)
    assert texts_of(data.train_inputs, words) == ['Who?\nHe, "she" did.']
    assert texts_of(data.test_inputs, words) == ["A\nB", "C\n"]
    assert data.train_labels.tolist() == [1]
    assert data.test_labels.tolist() == [0, 1]


def test_long_texts_are_cut_on_the_right_and_short_ones_padded(tmp_path, words):
    write_sst2(tmp_path, train="abcdefgh\t1\nab\t0\n")
    data = load("sst2", tmp_path, words, length=5)
    assert texts_of(data.train_inputs, words) == ["abcde", "ab"]
    assert (data.train_inputs != PAD).tolist() == [[True] * 5, [True] * 2 + [False] * 3]


def test_few_broken_rows_of_qqp_are_left_out_and_counted(tmp_path, words):
    """A row broken by a line break in a text, as in the published file, is skipped and counted."""
    rows = [f"{i}\t1\t2\tq {i}\tp\t{i % 2}" for i in range(2000)]
    rows[700] = '"\tWas it so?\t0'
    write(tmp_path / "qqp" / "train.tsv", QQP + "\n".join(rows) + "\n")
    write(tmp_path / "qqp" / "dev.tsv", QQP + rows[0] + "\n")
    for _ in range(2):  # the second time from the cache
        data = load("qqp", tmp_path, words)
        assert len(data.train_labels) == 1999
        assert data.train_labels[699:701].tolist() == [1, 1]
        assert "1 broken rows skipped" in data.verification
    rows[701:704] = ["torn"] * 3
    write(tmp_path / "qqp" / "train.tsv", QQP + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"train\.tsv, line 702: 3 columns, expected 6 \(4 such"):
        load("qqp", tmp_path, words)


def test_ag_news_is_quoted_csv_whose_classes_start_at_one(tmp_path, words):
    rows = '"3","Oil, again","He said ""no"" \\to all"\n\n"1","A","two\nlines"\n'
    write(tmp_path / "ag-news" / "train.csv", rows)
    write(tmp_path / "ag-news" / "test.csv", "Class Index,Title,Description\n4,Plain,words\n")
    data = load("ag-news", tmp_path, words)
    assert texts_of(data.train_inputs, words) == [
        'Oil, again He said "no" \\to all',
        "A two\nlines",
    ]
    assert data.train_labels.tolist() == [2, 0]
    assert data.test_labels.tolist() == [3]
    assert data.classes == 4


def write_newsgroups(home, change=lambda posts: None):
    """Write the archive, with a hidden file; returns its path."""
    posts = {
        f"20news-bydate-{part}/{group}/{5000 - i}": f"{part} {i}\n\xe9\n"
        for part in ("train", "test")
        for i, group in enumerate(BY_NAME["20newsgroups"].labels)
    }
    posts["20news-bydate-train/sci.space/1"] = "first"
    posts["20news-bydate-train/sci.space/.hidden"] = "no post"
    change(posts)
    home.mkdir(exist_ok=True)
    with tarfile.open(home / "20news-bydate.tar.gz", "w:gz") as archive:
        for name, text in posts.items():
            member, content = tarfile.TarInfo(name), text.encode("latin-1")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return home / "20news-bydate.tar.gz"


def test_newsgroups_are_read_from_the_archive(tmp_path, words):
    home = tmp_path / "20newsgroups"
    write_newsgroups(home)
    data = load("20newsgroups", tmp_path, words)
    assert data.train_labels.tolist() == sorted([*range(20), 14])
    assert data.test_labels.tolist() == list(range(20))
    expected = [f"train {i}\n\xe9\n" for i in range(20)]
    expected.insert(14, "first")
    assert texts_of(data.train_inputs, words) == expected
    assert [path.name for path in home.iterdir()] == ["20news-bydate.tar.gz"]


def lose(name):
    return lambda posts: posts.pop(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lose("20news-bydate-test/sci.med/4987"), r"20news-bydate-test has no posts of sci\.med\."),
        (lambda p: p.update({"20news-bydate-train/sci.odd/1": "x"}), "label is 'sci.odd', expect"),
        (lambda p: p.update({"20news-bydate-train/sci.med/7": ""}), r"train/sci\.med/7 is empty"),
    ],
)
def test_incomplete_newsgroups_are_named(tmp_path, words, change, message):
    write_newsgroups(tmp_path / "20newsgroups", change)
    with pytest.raises(DataError, match=message):
        load("20newsgroups", tmp_path, words)


def test_a_damaged_archive_is_named(tmp_path, words):
    archive = write_newsgroups(tmp_path / "20newsgroups")
    whole = archive.read_bytes()
    for content in (whole[: len(whole) // 2], b"no archive"):
        archive.write_bytes(content)
        with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz: truncated or damaged.*qwone"):
            load("20newsgroups", tmp_path, words)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("sst2", [{"sentence": "a", "label": 1, "idx": 0}], (["a"], [1])),
        ("sst2", [{"text": "a", "label": 0}], (["a"], [0])),
        ("qnli", [{"question": "a", "sentence": "b", "label": 0}], (["a\nb"], [0])),
        ("qnli", [{"text1": "a", "text2": "b", "label": "not_entailment"}], (["a\nb"], [1])),
        ("qqp", [{"question1": "a", "question2": "b", "label": 1}], (["a\nb"], [1])),
        ("ag-news", [{"text": "a", "label": 3}, {"text": "b", "label": 0}], (["a", "b"], [3, 0])),
        ("20newsgroups", [{"text": "", "label": 19, "label_text": "x"}], ([""], [19])),
    ],
)
def test_copies_from_the_hub_are_read(tmp_path, words, name, rows, expected):
    test = BY_NAME[name].test[-1]
    for stem in [f"train-0000{i}-of-00002" for i in range(2)] + [f"{test}-00000-of-00001"]:
        write_rows(tmp_path / name / f"{stem}.parquet", rows)
    data = load(name, tmp_path, words)
    assert texts_of(data.train_inputs, words) == expected[0] * 2
    assert data.train_labels.tolist() == expected[1] * 2
    assert texts_of(data.test_inputs, words) == expected[0]


def test_damaged_copies_are_named(tmp_path, words, monkeypatch):
    home = tmp_path / "sst2"
    write_rows(home / "validation.parquet", [{"sentence": "a", "label": 1}])
    for row, message in [
        ({"sentence": "a", "label": -1}, "row 0: the label is -1, expected 0 to 1"),
        ({"sentence": "a", "label": True}, "row 0: the label is True"),
        ({"sentence": None, "label": 1}, "row 0: sentence is not a string"),
        ({"words": "a", "label": 1}, "row 0: the columns are words, label; "),
    ]:
        write_rows(home / "train.parquet", [row])
        with pytest.raises(DataError, match=rf"train\.parquet, {message}"):
            load("sst2", tmp_path, words)
    write(home / "train.parquet", "PAR1 no parquet PAR1")
    with pytest.raises(DataError, match=r"train\.parquet: damaged parquet"):
        load("sst2", tmp_path, words)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(DataError, match=r"reading parquet needs pyarrow.*pip install pyarrow"):
            load("sst2", tmp_path, words)
    (home / "validation.parquet").unlink()
    with pytest.raises(DataError, match=r"no dev\.parquet or validation\.parquet"):
        load("sst2", tmp_path, words)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("a\t1\nb\t2\n", r"line 3: the label is '2', expected 0, 1"),
        ("a\t1\nb\tx\t0\n", r"line 3: 3 columns, expected 2"),
        ("a\t1\nso much for", r"line 3: 1 columns, expected 2"),
        ("", "has no rows"),
    ],
)
def test_damaged_rows_are_named(tmp_path, words, train, message):
    write_sst2(tmp_path, train=train)
    with pytest.raises(DataError, match=rf"train\.tsv.*{message}.*gluebenchmark") as caught:
        load("sst2", tmp_path, words)
    assert "\n" not in str(caught.value)


def test_wrong_columns_and_bytes_are_named(tmp_path):
    labels = {"0": 0}
    (tmp_path / "a.tsv").write_bytes(b"sentence\tgrade\na\t0\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 1: .* sentence, grade; missing: label"):
        read_tsv(tmp_path / "a.tsv", ["sentence"], "label", labels, "Look.")
    (tmp_path / "a.tsv").write_bytes(b"sentence\tlabel\na\t0\nb\xff\t0\n")
    with pytest.raises(DataError, match=r"line 3: not UTF-8 .* Look\."):
        read_tsv(tmp_path / "a.tsv", ["sentence"], "label", labels, "Look.")
    with pytest.raises(DataError, match=r"b\.tsv cannot be read: No such file"):
        read_tsv(tmp_path / "b.tsv", ["sentence"], "label", labels, "Look.")


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ('"1","a","b"\n"5","a","b"\n', "line 2: the label is '5', expected 1, 2, 3, 4"),
        ('"1","a","b"\n"2","a"\n', "line 2: 2 columns, expected 3"),
        ('"1","a","b"\n"2","a","cut of', "line 2: unexpected end of data"),
        ('"1","a","b" c\n', "line 1: .*expected after"),
    ],
)
def test_damaged_csv_is_named(tmp_path, words, train, message):
    write(tmp_path / "ag-news" / "train.csv", train)
    write(tmp_path / "ag-news" / "test.csv", '"1","a","b"\n')
    with pytest.raises(DataError, match=rf"train\.csv, {message}"):
        load("ag-news", tmp_path, words)


def test_absent_files_are_named(tmp_path, words, monkeypatch):
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    for name, wanted in [
        ("sst2", r"train\.tsv and dev\.tsv"),
        ("ag-news", r"train\.csv and test\.csv"),
        ("20newsgroups", r"20news-bydate\.tar\.gz"),
    ]:
        with pytest.raises(DataError, match=rf"{name} \(from cache\) has no {wanted}, .*https?://"):
            load(name, None, words)
    write_sst2(tmp_path)
    (tmp_path / "sst2" / "dev.tsv").unlink()
    with pytest.raises(DataError, match=r"sst2 has train\.tsv but no dev\.tsv"):
        load("sst2", tmp_path, words)


def test_texts_are_tokenised_once(tmp_path, words, tokenised, cache):
    """The second load reads the cached tokens and gives the same result."""
    write_sst2(tmp_path)
    first, second = (load("sst2", tmp_path, words) for _ in range(2))
    assert tokenised == [3]
    for name in ("train_inputs", "train_labels", "test_inputs", "test_labels"):
        assert torch.equal(getattr(first, name), getattr(second, name))
        assert getattr(second, name).dtype == torch.int64
    for name in ("pad_id", "vocabulary", "verification"):
        assert getattr(second, name) == getattr(first, name)
    (kept,) = cache.iterdir()
    assert kept.name.startswith("sst2-")


def test_changed_files_length_or_tokenizer_invalidate_the_cache(tmp_path, words, tokenised):
    write_sst2(tmp_path)
    load("sst2", tmp_path, words)
    before = (tmp_path / "sst2" / "dev.tsv").stat()
    write_sst2(tmp_path, dev="firm\t1\n")  # same size and age as before
    os.utime(tmp_path / "sst2" / "dev.tsv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert texts_of(load("sst2", tmp_path, words).test_inputs, words) == ["firm"]
    assert load("sst2", tmp_path, words, length=7).input_shape == (7,)
    other = shutil.copytree(words, tmp_path / "other")
    load("sst2", tmp_path, other)
    assert len(tokenised) == 3  # a copy in another folder is the same tokenizer
    changed = json.loads((other / "tokenizer.json").read_text())
    vocabulary = changed["model"]["vocab"]
    vocabulary["f"], vocabulary["i"] = vocabulary["i"], vocabulary["f"]
    (other / "tokenizer.json").write_text(json.dumps(changed))
    assert load("sst2", tmp_path, other).test_inputs[0, 0] == vocabulary["f"]
    assert len(tokenised) == 4


def test_a_damaged_cache_is_rebuilt(tmp_path, words, tokenised, cache):
    write_sst2(tmp_path)
    expected = load("sst2", tmp_path, words)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for number, content in enumerate((b"", whole[:-9], flipped, b"not safetensors"), start=2):
        kept.write_bytes(content)
        again = load("sst2", tmp_path, words)
        assert torch.equal(again.test_labels, expected.test_labels)
        assert len(tokenised) == number
        assert kept.read_bytes() == whole
        assert list(cache.iterdir()) == [kept]


def test_without_a_writable_cache(tmp_path, words, tokenised, cache, monkeypatch):
    """Tokens are then cached next to the data or, if that fails too, computed each time."""
    write_sst2(tmp_path)
    cache.parent.write_text("a file where the folder should be")
    for _ in range(2):
        load("sst2", tmp_path, words)
    assert tokenised == [3]
    (kept,) = (tmp_path / "sst2" / ".tokens").iterdir()
    kept.unlink()
    kept.parent.rmdir()
    kept.parent.write_text("here too")
    for _ in range(2):
        load("sst2", tmp_path, words)
    assert tokenised == [3, 3, 3]


def test_an_interrupted_write_leaves_nothing(tmp_path, words, cache, monkeypatch):
    write_sst2(tmp_path)

    def interrupted(tensors, path, metadata):
        path.write_bytes(b"half of")
        raise KeyboardInterrupt

    monkeypatch.setattr("safetensors.torch.save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("sst2", tmp_path, words)
    assert list(cache.iterdir()) == []


def test_a_tokenizer_that_cannot_pad_or_be_read_is_named(tmp_path, words):
    from transformers import PreTrainedTokenizerFast

    write_sst2(tmp_path)
    bare = tmp_path / "bare"
    PreTrainedTokenizerFast(tokenizer_file=str(words / "tokenizer.json")).save_pretrained(bare)
    with pytest.raises(ConfigError, match=r"bare', which has neither pad_token nor eos_token"):
        load("sst2", tmp_path, bare)
    (bare / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigError, match=r"tokenizer is .*bare', but the files .* be used"):
        load("sst2", tmp_path, bare)
    with pytest.raises(ConfigError, match=r"the folder has no tokenizer\.json or"):
        load("sst2", tmp_path, tmp_path)


def mine(data_dir, *, tokenizer, max_length=9):
    """A user-defined data set of texts."""
    found = tokens.Tokenizer.find(tokenizer).tokens(["a", "b"], max_length=max_length)
    part = found.parts[0], torch.tensor([0, 1])
    return Dataset("mine", *part, *part, 2, pad_id=found.pad_id, vocabulary=found.vocabulary)


def test_data_sets_of_users_may_accept_text_options(words):
    name = f"{__name__}:mine"
    assert text_options(name) == {"tokenizer": None, "max_length": 9}
    assert load_dataset(name, tokenizer=str(words)).input_shape == (9,)
    assert load_dataset(name, tokenizer=str(words), max_length=4).input_shape == (4,)
    assert text_options("sst2") == {"tokenizer": "gpt2", "max_length": 128}
    assert text_options("digits") == {}
    with pytest.raises(ConfigError, match=r"tokenizer is 'x', but data set 'digits' does not"):
        load_dataset("digits", tokenizer="x")


def test_every_published_text_data_set_is_known():
    assert {n: len(d.labels) for n, d in BY_NAME.items()} == {
        "20newsgroups": 20, "qnli": 2, "qqp": 2, "sst2": 2, "ag-news": 4
    }  # fmt: skip
    assert all(data.labels == tuple(sorted(data.labels)) for data in TEXT_DATA)
