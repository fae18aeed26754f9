"""Pretrained vectors of words, in the text formats of GloVe and word2vec."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.base.files import reading
from wirelessfl.base.import_paths import expanded


@dataclass(frozen=True)
class WordVectors:
    """Vectors of some words.

    Args:
        width: size of all vectors of the file.
        of: the vector [width] float32 of each word that the file has.
    """

    width: int
    of: dict[str, NDArray[np.float32]]

    @classmethod
    def read(cls, file: Path, words: Collection[str]) -> WordVectors:
        """Read the vectors of ``words``, of a word that is repeated the first.

        A line is a word and its numbers, between spaces. The first line may be the number of words
        and that of numbers, as word2vec writes it. Only lines of ``words`` are checked.

        Args:
            file: the file, UTF-8.
            words: the words, as they are spelled in the file.

        Raises:
            ConfigError: the file is missing, a line is not a word and its numbers, or no line has
                one of the words.
        """
        file, searched, vectors, width = expanded(file), frozenset(words), {}, 0
        # Lines end at "\n" alone, and some files of word2vec have bytes that are not UTF-8.
        with (
            reading(file, "Give a text file of GloVe or word2vec as embedding_file."),
            file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines,
        ):
            for number, line in enumerate(lines, start=1):
                word, _, rest = line.rstrip(" \r\n").partition(" ")
                if number == 1:
                    values = rest.split(" ")
                    if word.isdecimal() and len(values) == 1 and rest.isdecimal():
                        width = int(rest)
                        continue
                    width = len(values)
                if word in searched and word not in vectors:
                    vectors[word] = _vector(rest, width, f"line {number} ({word!r})")
            if width < 1 or (searched and not vectors):
                raise ValueError("no line is a word of the data set and its numbers")
        return cls(width, vectors)


def _vector(text: str, width: int, where: str) -> NDArray[np.float32]:
    """The numbers of a line.

    Raises:
        ValueError: they are not ``width`` finite numbers.
    """
    values = text.split(" ")
    if len(values) != width:
        raise ValueError(f"{where} has {len(values)} numbers, but the first line {width}")
    try:
        vector = np.array([float(value) for value in values], np.float32)
    except ValueError:
        raise ValueError(f"{where} has a value that is not a number") from None
    if not np.isfinite(vector).all():
        raise ValueError(f"{where} has a number that is not finite")
    return vector
