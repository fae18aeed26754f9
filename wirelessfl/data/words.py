"""A tokenizer that splits texts into words; it needs no files and no other package."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from wirelessfl.data.token_ids import TokenIds, padded
from wirelessfl.errors import ConfigError

WORDS = "words"
"""Name of the tokenizer in the settings, alone or followed by a colon and the number of words."""
DEFAULT_LIMIT = 10_000
PAD_ID, UNKNOWN_ID, FIRST_ID = 0, 1, 2
"""Ids of the padding, of unknown words, and of the most frequent word."""
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
"""A word of a lower-cased text: letters and digits, also with apostrophes between them."""


@dataclass(frozen=True)
class WordTokenizer:
    """The most frequent words of the training texts; other words are unknown.

    Words are lower-cased and match ``WORD``. The most frequent word has the id 2; equally frequent
    words are in alphabetical order, so the ids do not depend on the order of the texts.

    Args:
        limit: maximum number V of words in the vocabulary, >= 1.
    """

    limit: int = DEFAULT_LIMIT

    @classmethod
    def of(cls, name: str) -> WordTokenizer | None:
        """The tokenizer called ``words`` or ``words:V``; None for any other name.

        Raises:
            ConfigError: V is not an integer >= 1.
        """
        kind, colon, limit = name.partition(":")
        if kind != WORDS:
            return None
        if not colon:
            return cls()
        if not re.fullmatch("[0-9]+", limit) or int(limit) < 1:
            raise ConfigError(
                f"tokenizer is {name!r}: give the number of words after the colon, an integer >= "
                f"1, e.g. {WORDS}:5000, or only {WORDS} for {DEFAULT_LIMIT:,}."
            )
        return cls(int(limit))

    @property
    def digest(self) -> str:
        """SHA-256 of the rule; with equal texts, equal digests give equal tokens."""
        return hashlib.sha256(f"{WORDS}\0{WORD.pattern}\0{self.limit}".encode()).hexdigest()

    def tokens(self, train: Sequence[str], *others: Sequence[str], max_length: int) -> TokenIds:
        """Tokenise parts of a data set, of which only ``train`` determines the vocabulary.

        The vocabulary counts all words of the training texts, also those after ``max_length``.

        Args:
            train: training texts.
            others: other parts, e.g. the test texts.
            max_length: number of words to which texts are cut or padded.
        """
        numbers = self._numbers(train)

        def ids(texts: Sequence[str]) -> torch.Tensor:
            rows = (
                [numbers.get(word, UNKNOWN_ID) for word in islice(_words(text), max_length)]
                for text in texts
            )
            return padded(rows, len(texts), max_length, PAD_ID)

        return TokenIds([ids(part) for part in (train, *others)], PAD_ID, FIRST_ID + len(numbers))

    def _numbers(self, texts: Sequence[str]) -> Mapping[str, int]:
        """The id of each word of the vocabulary."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_words(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))[: self.limit]
        return {word: number for number, word in enumerate(ranked, start=FIRST_ID)}


def _words(text: str) -> Iterator[str]:
    """The words of a text in order, lower-cased."""
    return (found.group() for found in WORD.finditer(text.lower()))
