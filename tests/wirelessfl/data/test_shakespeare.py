"""Shakespeare: roles, windows of a role's text, and damaged files."""

import numpy as np
import pytest
import torch

from wirelessfl.base.errors import DataError
from wirelessfl.data import load_dataset
from wirelessfl.data.shakespeare import (
    LETTERS,
    RoleSamples,
    letter_ids,
    load_shakespeare,
    roles_of,
)

PLAY = """First Citizen:
Speak, speak.

ALL:
Resolved:
resolved.

First Citizen:
One word

more, good citizens.

Ghost:

"""


def read_back(ids):
    return "".join(LETTERS[i] for i in ids)


def write_play(root, text):
    (root / "shakespeare").mkdir(exist_ok=True)
    (root / "shakespeare" / "input.txt").write_bytes(text.encode())


def test_letters_are_the_eighty_of_leaf_and_others_are_spaces():
    assert len(LETTERS) == len(set(LETTERS)) == 80
    assert list(LETTERS) == sorted(LETTERS)
    assert letter_ids("\n A}").tolist() == [0, 1, LETTERS.index("A"), 79]
    assert read_back(letter_ids("a$\u00e9b\u0161\U0001f3adc\u00ff")) == "a  b  c "


def test_speeches_belong_to_the_heading_above_them():
    """Colons within a speech do not start a role, and blank lines do not end a speech."""
    for text in (PLAY, "\ufeff\n\n" + PLAY.replace("\n", "\r\n")):
        assert roles_of(text, "play") == {
            "First Citizen": "Speak, speak.\nOne word\nmore, good citizens.",
            "ALL": "Resolved:\nresolved.",
            "Ghost": "",
        }
    with pytest.raises(DataError, match="play starts with 'Speak', which is not a role followed"):
        roles_of("Speak\n\nALL:\nspeak", "play")


def test_windows_are_all_that_fit_with_the_next_character_as_label():
    text = np.arange(83, dtype=np.uint8)
    samples = RoleSamples.windows(text)
    assert samples.inputs[:, 0].tolist() == [0, 1, 2]
    assert samples.inputs[:, -1].tolist() == [79, 80, 81]
    assert samples.labels.tolist() == [80, 81, 82]
    for short in (text[:80], text[:0]):
        assert RoleSamples.windows(short).inputs.shape == (0, 80)
        assert RoleSamples.windows(short).labels.shape == (0,)


def test_windows_of_a_small_play(tmp_path):
    """A role of 500 characters has 320 training and 20 test windows; one of 379 is skipped."""
    rng = np.random.default_rng(0)
    long, other = ("".join(rng.choice(list(LETTERS[12:]), size)) for size in (500, 380))
    first, second = long[:200], long[201:]
    long = f"{first}\n{second}"
    short = other[:379]
    write_play(tmp_path, f"A:\n{first}\n\nB:\n{short}\n\nC:\n{other}\n\nA:\n{second}\n")
    data = load_shakespeare(tmp_path, test_stride=1)
    assert data.train_inputs.dtype == torch.uint8
    assert data.classes == 80
    # C: 304 characters for training, and 76 for test, too few for a window.
    assert data.groups.tolist() == [0] * 320 + [1] * 224
    for number, start, said in [(0, 0, long), (319, 319, long), (320, 0, other), (543, 223, other)]:
        assert read_back(data.train_inputs[number]) == said[start : start + 80]
        assert LETTERS[data.train_labels[number]] == said[start + 80]
    assert len(data.test_labels) == 20
    for number in range(20):
        assert read_back(data.test_inputs[number]) == long[400 + number : 480 + number]
        assert LETTERS[data.test_labels[number]] == long[480 + number]

    thin = load_dataset("shakespeare", tmp_path)
    assert torch.equal(thin.test_inputs, data.test_inputs[:1])
    assert torch.equal(thin.train_inputs, data.train_inputs)
    seventh = load_shakespeare(tmp_path, test_stride=7)
    assert torch.equal(seventh.test_labels, data.test_labels[[0, 7, 14]])
    with pytest.raises(DataError, match="test_stride is 0"):
        load_shakespeare(tmp_path, test_stride=0)


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"not a folder.*input.txt"):
        load_shakespeare(tmp_path)
    (tmp_path / "shakespeare").mkdir()
    with pytest.raises(DataError, match=r"has no input.txt. Put it there: it is published at"):
        load_shakespeare(tmp_path)
    write_play(tmp_path, "A:\n" + "x" * 379)
    with pytest.raises(DataError, match=r"input.txt has no role with at least 380 characters"):
        load_shakespeare(tmp_path)


@pytest.mark.realdata
def test_the_real_plays_have_as_many_windows_as_their_roles_allow(real_data):
    """Numbers of windows equal those of a separate parser of the plays."""
    if not (real_data / "shakespeare" / "input.txt").is_file():
        pytest.skip(f"no shakespeare in {real_data}")
    data = load_shakespeare(real_data)
    said, role, after_blank = {}, None, True
    for line in (real_data / "shakespeare" / "input.txt").read_text().split("\n"):
        if after_blank and line.endswith(":"):
            role = said.setdefault(line, [])
        elif line:
            role.append(line)
        after_blank = not line
    sizes = [sum(map(len, lines)) + len(lines) - 1 for lines in said.values()]
    sizes = np.array([size for size in sizes if size >= 380])
    tested = sizes // 5
    assert np.bincount(data.groups).tolist() == (sizes - tested - 80).tolist()
    assert len(data.test_labels) == (-(-np.maximum(tested - 80, 0) // 20)).sum()
    assert data.train_inputs.nbytes < 70e6
    first = "Before we proceed any further, hear me speak.\nYou are all resolved rather to die "
    assert read_back(data.train_inputs[0]) == first[:80]
