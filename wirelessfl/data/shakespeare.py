"""Shakespeare: the next character of what a speaking role says (Caldas et al., LEAF, 2018).

Read from LEAF's JSON files, or from plain text of plays. Neither has a published checksum:
structure is checked, nothing is checksummed, and nothing is downloaded.
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
from wirelessfl.data.files import Place, find_place
from wirelessfl.data.labels import checked_number
from wirelessfl.data.text_files import read_text
from wirelessfl.errors import DataError

NAME = "shakespeare"
LENGTH = 80
"""Characters that a sample shows; the next one is its label."""
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The alphabet of LEAF (ALL_LETTERS in its language_utils.py): a character's id is its place."""
OTHER = LETTERS.index(" ")
"""Id of characters that are not in it: that of a space."""
SHORTEST = 380
"""Roles that say less than this many characters are left out."""
TEST_STRIDE = 20

_PLAY = "input.txt"
_PLAY_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
_LEAF_URL = "https://github.com/TalwalkarLab/leaf/tree/master/data/shakespeare"

Ids = NDArray[np.uint8]


@dataclass(frozen=True)
class Samples:
    """Of one role: inputs [n, LENGTH] and labels [n], ids of characters."""

    inputs: Ids
    labels: Ids

    @classmethod
    def windows(cls, text: Ids) -> Samples:
        """All that lie in ``text`` [characters] with their label, one for each place (stride 1)."""
        if len(text) <= LENGTH:
            return cls(text[:0].reshape(0, LENGTH), text[:0])
        seen = np.lib.stride_tricks.sliding_window_view(text[:-1], LENGTH)
        return cls(seen, text[LENGTH:])

    def thinned(self, stride: int) -> Samples:
        """The first of every ``stride``."""
        return Samples(self.inputs[::stride], self.labels[::stride])


def load_shakespeare(
    data_dir: str | os.PathLike[str] | None = None, *, test_stride: int = TEST_STRIDE
) -> Dataset:
    """Ids of 80 characters [n, 80], uint8, with the 81st as label; ``groups`` are the roles.

    The folder ``shakespeare`` of ``data_dir`` (else of WIRELESSFL_DATA, else of the cache) holds
    either of the following; of both, the first is read.

    - ``train/*.json`` and ``test/*.json``, perhaps inside a folder ``data``: what LEAF's
      preprocessing writes. Its users are the roles and its split is kept.
    - ``input.txt``: plays with blank lines between speeches, each below the name of its role and a
      colon; what has no such heading belongs to the speech before. Equal names are one role, in
      whichever play. All that a role says is joined by line breaks; roles under 380 characters are
      left out; the first 80 % of a role's characters are its training part and the rest its test
      part. Samples are the windows of 81 characters inside one part, one at each place, so that
      training never sees a character of a test part, nor a test one of a training part (a test
      part of 80 characters or fewer has none).

    Args:
        data_dir: folder that holds a folder per data set.
        test_stride: test samples kept of each role: the first of every so many. Neighbours share
            79 of their characters, and testing on all takes many times as long; 1 keeps all.

    Raises:
        DataError: the files are absent or broken, or ``test_stride`` is below 1.
    """
    test_stride = checked_number("test_stride", test_stride, 1)
    place = find_place(NAME, data_dir, source=f"{_LEAF_URL} or {_PLAY_URL}")
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
    )


def letter_ids(text: str) -> Ids:
    """[characters], the id of each."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ids: Ids = _IDS[np.minimum(codes, len(_IDS) - 1)]
    return ids


def roles_of(text: str, where: str) -> dict[str, str]:
    """What each role of a play says, its speeches joined by line breaks, in order of appearance.

    Raises:
        DataError: the text does not begin with a role's heading.
    """
    speeches: dict[str, list[str]] = {}
    role: str | None = None
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").removeprefix("\ufeff").strip()):
        first, _, rest = block.partition("\n")
        if first.endswith(":"):
            role, block = first[:-1].strip(), rest
        if role is None:
            raise DataError(
                f"{where} begins with {first[:40]!r}, which is not a role followed by a colon. Get "
                f"it again: it is published at {_PLAY_URL}"
            )
        speeches.setdefault(role, []).extend([block] if block else [])
    return {role: "\n".join(said) for role, said in speeches.items()}


def _play(path: Path) -> tuple[dict[str, Samples], dict[str, Samples]]:
    """Training and test samples by role."""
    text = read_text(path, f"Get it again: it is published at {_PLAY_URL}")
    train, test = {}, {}
    for role, said in roles_of(text, f"{path}").items():
        if len(said) < SHORTEST:
            continue
        ids, first = letter_ids(said), len(said) - len(said) // 5
        train[role], test[role] = Samples.windows(ids[:first]), Samples.windows(ids[first:])
    if not train:
        raise DataError(
            f"{path} has no role that says {SHORTEST} characters. Get it again: it is published at "
            f"{_PLAY_URL}"
        )
    return train, test


def _leaf_part(folder: Path) -> dict[str, Samples]:
    """Samples by user of all files of a part, users in order of their names.

    Raises:
        DataError: no files exist, or one is not in LEAF's format.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise DataError(
            f"{folder} has no JSON files, and the folder train beside it has. {_LEAF_ADVICE}"
        )
    users: dict[str, list[Samples]] = {}
    for path in paths:
        try:
            content = json.loads(read_text(path, _LEAF_ADVICE))
        except ValueError as error:
            raise DataError(f"{path} is not JSON: {error}. {_LEAF_ADVICE}") from error
        data = content.get("user_data") if isinstance(content, dict) else None
        if not isinstance(data, dict):
            raise DataError(f"{path} has no user_data by user. {_LEAF_ADVICE}")
        for user, given in data.items():
            users.setdefault(user, []).append(_leaf_samples(given, f"{path}, user {user!r}"))
    joined = {user: _together(users[user]) for user in sorted(users)}
    return {user: samples for user, samples in joined.items() if len(samples.labels)}


def _leaf_samples(given: Any, where: str) -> Samples:
    """A user's x, texts of 80 characters, and y, the character behind each."""
    x, y = (_leaf_letters(given, key, length, where) for key, length in (("x", LENGTH), ("y", 1)))
    if len(x) != len(y):
        raise DataError(f"{where} has {len(x)} texts and {len(y)} next letters. {_LEAF_ADVICE}")
    return Samples(x, y.reshape(-1))


def _leaf_letters(given: Any, key: str, length: int, where: str) -> Ids:
    """[n, length], ids of the letters of n texts."""
    texts = given.get(key) if isinstance(given, dict) else None
    if not isinstance(texts, list):
        raise DataError(f"{where} has no list {key}. {_LEAF_ADVICE}")
    for place, text in enumerate(texts):
        if not isinstance(text, str) or len(text) != length:
            raise DataError(
                f"{where}: {key}[{place}] is {text!r}, expected text of length {length}. "
                f"{_LEAF_ADVICE}"
            )
    return letter_ids("".join(texts)).reshape(-1, length)


def _together(several: Iterable[Samples]) -> Samples:
    """The samples of one part after the other, at least one."""
    inputs, labels = zip(*((part.inputs, part.labels) for part in several), strict=True)
    return Samples(np.concatenate(inputs), np.concatenate(labels))


def _joined(parts: Iterable[Samples]) -> tuple[Ids, IntArray]:
    """Inputs [n, LENGTH] and labels [n] of all roles."""
    none = Samples.windows(letter_ids(""))
    samples = _together([none, *parts])
    return samples.inputs, samples.labels.astype(np.int64)


def _absent(place: Place) -> str:
    return (
        f"{place.folder} (from {place.chosen_by}) has no train/*.json and test/*.json, nor "
        f"{_PLAY}. Put LEAF's files there (published at {_LEAF_URL}), or plays as plain text "
        f"(published at {_PLAY_URL})."
    )


def _ids() -> Ids:
    """The id of each character below 256; the last, not a letter, represents all others."""
    ids = np.full(256, OTHER, dtype=np.uint8)
    ids[np.frombuffer(LETTERS.encode("latin-1"), dtype=np.uint8)] = np.arange(len(LETTERS))
    return ids


_LEAF_ADVICE = f"Make it again by LEAF's preprocessing: {_LEAF_URL}"
_IDS = _ids()
