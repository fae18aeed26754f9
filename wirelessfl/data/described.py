"""What the built-in data sets contain and where they come from, for lists."""

from __future__ import annotations

from collections.abc import Mapping

from wirelessfl.data import known_facts

DOWNLOADED = "downloaded and verified"
YOURS = "from your files, see README"
ABOUT: Mapping[str, tuple[str, str, str]] = {
    "20newsgroups": ("11,314 + 7,532", "posts by group, 20 classes", YOURS),
    "ag-news": ("120,000 + 7,600", "news by topic, 4 classes", YOURS),
    "cifar10": ("50,000 + 10,000", "photographs", DOWNLOADED),
    "cifar10-jpeg": ("50,000 + 10,000", "CIFAR-10 with loss, as JPEG", YOURS),
    "cifar100": ("50,000 + 10,000", "photographs", DOWNLOADED),
    "digits": ("1,438 + 359", "handwritten digits", "included in scikit-learn"),
    "fashion-mnist": ("60,000 + 10,000", "clothes", DOWNLOADED),
    "mnist": ("60,000 + 10,000", "handwritten digits", DOWNLOADED),
    "qnli": ("104,743 + 5,463", "questions with sentences, 2 classes", YOURS),
    "qqp": ("363,846 + 40,430", "pairs of questions, 2 classes", YOURS),
    "shakespeare": ("", "next characters of plays, by role", YOURS),
    "sst2": ("67,349 + 872", "film reviews, 2 classes", YOURS),
    "svhn": ("73,257 + 26,032", "house numbers", YOURS),
    "tinyimagenet": ("100,000 + 10,000", "photographs", YOURS),
}
"""Training and test samples, content, and source of each built-in data set."""


def described(name: str) -> str:
    """One line about a built-in data set: samples, content, shape, classes and source.

    Args:
        name: one of ``dataset_names()``.
    """
    samples, content, source = ABOUT[name]
    facts = known_facts(name)
    parts = [f"{samples} {content}".strip()]
    if facts is not None:
        parts.append("x".join(map(str, facts.input_shape)))
        parts.append(f"{facts.classes} classes")
    return f"{', '.join(parts)}; {source}"
