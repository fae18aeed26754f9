"""A small GPT-2 with adapters, its words, and token ids of texts."""

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.models import build_model

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
