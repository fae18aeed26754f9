"""Shakespeare: prediction of the next character of a role's text (Caldas et al., LEAF, 2018).

The data are read from LEAF's JSON files or from plain text of plays. Neither has a published
checksum: the structure is checked, but no checksum, and nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from channels.arrays import IntArray
from wirelessfl.data.dataset import Dataset
from wirelessfl.data.facts import Facts
from wirelessfl.data.files import Place, find_place
from wirelessfl.data.labels import checked_number
from wirelessfl.data.text_files import read_text
from wirelessfl.errors import DataError

NAME = "shakespeare"
LENGTH = 80
"""Number of characters of a sample; the next character is its label."""
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The alphabet of LEAF (ALL_LETTERS in its language_utils.py): a character's id is its index."""
FACTS = Facts((LENGTH,), classes=len(LETTERS), vocabulary=len(LETTERS))
OTHER = LETTERS.index(" ")
"""Id of all other characters: the id of a space."""
SHORTEST = 380
"""Minimum number of characters of a role; roles with shorter texts are omitted."""
TEST_STRIDE = 20

_PLAY = "input.txt"
_PLAY_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
_LEAF_URL = "https://github.com/TalwalkarLab/leaf/tree/master/data/shakespeare"

Ids = NDArray[np.uint8]


@dataclass(frozen=True)
class RoleSamples:
    """Samples of one role: inputs [n, LENGTH] and labels [n], ids of characters."""

    inputs: Ids
    labels: Ids

    @classmethod
    def windows(cls, text: Ids) -> RoleSamples:
        """All windows of ``text`` [characters] with their labels, at stride 1."""
        if len(text) <= LENGTH:
            return cls(text[:0].reshape(0, LENGTH), text[:0])
        seen = np.lib.stride_tricks.sliding_window_view(text[:-1], LENGTH)
        return cls(seen, text[LENGTH:])

    def thinned(self, stride: int) -> RoleSamples:
        """Every ``stride``-th sample, starting with the first."""
        return RoleSamples(self.inputs[::stride], self.labels[::stride])


def load_shakespeare(
    data_dir: str | os.PathLike[str] | None = None, *, test_stride: int = TEST_STRIDE
) -> Dataset:
    """Load ids of 80 characters [n, 80], uint8, with the 81st as label; ``groups`` are the roles.

    The folder ``shakespeare`` in ``data_dir`` (or in WIRELESSFL_DATA, or in the cache) contains one
    of the following; if it contains both, the first is read.

    - ``train/*.json`` and ``test/*.json``, possibly inside a folder ``data``, as written by LEAF's
      preprocessing. Its users are the roles, and its split is kept.
    - ``input.txt``: plays with blank lines between speeches. A speech starts with a line of the
      role's name and a colon; text without such a line belongs to the previous speech. Equal names
      are one role in all plays. A role's speeches are joined by line breaks, and roles with fewer
      than 380 characters are omitted. The first 80 % of a role's characters are its training part,
      the rest its test part. Samples are all windows of 81 characters within one part, so that
      training and test samples share no characters (a test part of at most 80 characters has no
      samples).

    Args:
        data_dir: folder that contains one folder per data set.
        test_stride: every ``test_stride``-th test sample of a role is kept; 1 keeps all.
            Neighbouring samples share 79 characters, and testing on all of them takes
            ``test_stride`` times as long.

    Raises:
        DataError: the files are missing or damaged, or ``test_stride`` is below 1.
    """
    test_stride = checked_number("test_stride", test_stride, 1)
    place = find_place(NAME, data_dir, remedy=f"Download them from {_LEAF_URL} or {_PLAY_URL}.")
    folders = [place.folder, place.folder / "data"]
    found = [folder for folder in folders if any(folder.glob("train/*.json"))]
    if found:
        kind = "LEAF's JSON"
        train, test = (_leaf_part(found[0] / part) for part in ("train", "test"))
    elif (place.folder / _PLAY).is_file():
        kind = _PLAY
        train, test = _play(place.folder / _PLAY)
    else:
        raise DataError(_absent(place))
    test = {role: samples.thinned(test_stride) for role, samples in test.items()}
    train_inputs, train_labels = _joined(train.values())
    test_inputs, test_labels = _joined(test.values())
    return Dataset(
        NAME,
        torch.from_numpy(train_inputs),
        torch.from_numpy(train_labels),
        torch.from_numpy(test_inputs),
        torch.from_numpy(test_labels),
        classes=len(LETTERS),
        groups=np.repeat(np.arange(len(train)), [len(part.labels) for part in train.values()]),
        verification=f"structure of {kind}, {len(train)} roles, one test sample of every "
        f"{test_stride}; not checksummed",
        vocabulary=len(LETTERS),
    )


def letter_ids(text: str) -> Ids:
    """The ids of the characters of ``text``, [characters]."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ids: Ids = _IDS[np.minimum(codes, len(_IDS) - 1)]
    return ids


def roles_of(text: str, where: str) -> dict[str, str]:
    """The text of each role, its speeches joined by line breaks; roles in order of appearance.

    Raises:
        DataError: the text does not start with the name of a role.
    """
    speeches: dict[str, list[str]] = {}
    role: str | None = None
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").removeprefix("\ufeff").strip()):
        first, _, rest = block.partition("\n")
        if first.endswith(":"):
            role, block = first[:-1].strip(), rest
        if role is None:
            raise DataError(
                f"{where} starts with {first[:40]!r}, which is not a role followed by a colon. "
                f"Download it again: it is published at {_PLAY_URL}"
            )
        speeches.setdefault(role, []).extend([block] if block else [])
    return {role: "\n".join(said) for role, said in speeches.items()}


def _play(path: Path) -> tuple[dict[str, RoleSamples], dict[str, RoleSamples]]:
    """Training and test samples by role."""
    text = read_text(path, f"Download it again: it is published at {_PLAY_URL}")
    train, test = {}, {}
    for role, said in roles_of(text, f"{path}").items():
        if len(said) < SHORTEST:
            continue
        ids, first = letter_ids(said), len(said) - len(said) // 5
        train[role], test[role] = RoleSamples.windows(ids[:first]), RoleSamples.windows(ids[first:])
    if not train:
        raise DataError(
            f"{path} has no role with at least {SHORTEST} characters. Download it again: it is "
            f"published at {_PLAY_URL}"
        )
    return train, test


def _leaf_part(folder: Path) -> dict[str, RoleSamples]:
    """Samples by user from all files of a part; users are sorted by name.

    Raises:
        DataError: there is no file, or a file does not have LEAF's format.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(
            f"{folder} has no JSON files, unlike the folder train next to it. {_LEAF_ADVICE}"
        )
    users: dict[str, list[RoleSamples]] = {}
    for path in paths:
        try:
            content = json.loads(read_text(path, _LEAF_ADVICE))
        except ValueError as error:
            raise DataError(f"{path} is not JSON: {error}. {_LEAF_ADVICE}") from error
        data = content.get("user_data") if isinstance(content, dict) else None
        if not isinstance(data, dict):
            raise DataError(f"{path} has no JSON object user_data. {_LEAF_ADVICE}")
        for user, given in data.items():
            users.setdefault(user, []).append(_leaf_samples(given, f"{path}, user {user!r}"))
    joined = {user: _together(users[user]) for user in sorted(users)}
    return {user: samples for user, samples in joined.items() if len(samples.labels)}


def _leaf_samples(given: Any, where: str) -> RoleSamples:
    """A user's samples: x are texts of 80 characters, y the character after each."""
    x, y = (_leaf_letters(given, key, length, where) for key, length in (("x", LENGTH), ("y", 1)))
    if len(x) != len(y):
        raise DataError(f"{where} has {len(x)} texts but {len(y)} next characters. {_LEAF_ADVICE}")
    return RoleSamples(x, y.reshape(-1))


def _leaf_letters(given: Any, key: str, length: int, where: str) -> Ids:
    """Ids of the characters of n texts, [n, length]."""
    texts = given.get(key) if isinstance(given, dict) else None
    if not isinstance(texts, list):
        raise DataError(f"{where} has no list {key}. {_LEAF_ADVICE}")
    for index, text in enumerate(texts):
        if not isinstance(text, str) or len(text) != length:
            raise DataError(
                f"{where}: {key}[{index}] is {text!r}, expected a string of length {length}. "
                f"{_LEAF_ADVICE}"
            )
    return letter_ids("".join(texts)).reshape(-1, length)


def _together(several: Iterable[RoleSamples]) -> RoleSamples:
    """Concatenate the samples of several parts, at least one."""
    inputs, labels = zip(*((part.inputs, part.labels) for part in several), strict=True)
    return RoleSamples(np.concatenate(inputs), np.concatenate(labels))


def _joined(parts: Iterable[RoleSamples]) -> tuple[Ids, IntArray]:
    """Inputs [n, LENGTH] and labels [n] of all roles."""
    none = RoleSamples.windows(letter_ids(""))
    samples = _together([none, *parts])
    return samples.inputs, samples.labels.astype(np.int64)


def _absent(place: Place) -> str:
    return (
        f"{place.folder} (from {place.chosen_by}) has neither train/*.json and test/*.json nor "
        f"{_PLAY}. Put LEAF's files there (published at {_LEAF_URL}), or plays as plain text "
        f"(published at {_PLAY_URL})."
    )


def _ids() -> Ids:
    """The id of each character code below 256; code 255, not a letter, represents larger codes."""
    ids = np.full(256, OTHER, dtype=np.uint8)
    ids[np.frombuffer(LETTERS.encode("latin-1"), dtype=np.uint8)] = np.arange(len(LETTERS))
    return ids


_LEAF_ADVICE = f"Create it again with LEAF's preprocessing: {_LEAF_URL}"
_IDS = _ids()
