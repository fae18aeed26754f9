"""Every setting at scale paper against the published ones, which ``experiments/PAPER/paper.toml``
lists:

    [[setting]]
    name = "eps"                             # of a flag; "seeds" are those of the runs
    where = {algorithm = ["fedadam"]}        # optional: study, algorithm, or settings of the case
    value = 1e-8                             # as published; of a list, all values of a sweep
    source = "Section 6"
    ours = 1e-16                             # where ours differs, or where the paper is silent
    reason = "FedAMS bounds the second moment"

The entry with the most conditions applies; a list in a condition holds alternatives. A setting that
a case leaves to its default is looked up in the resolved configuration. Each task of a case is
compared as a case of its own.
"""

import tomllib
from collections.abc import Iterator
from functools import cached_property

import pytest

from experiments.papers import papers
from experiments.studies import Case
from wirelessfl.config.stored import settings_by_flag

OURS = {"ra_fed", "decided", "codesign"}
"""Studies of our own: no settings of them are published."""
KEYS = {"name", "where", "value", "source", "ours", "reason"}
MISSING = object()
"""Value of a setting that a row does not have."""
SELECTED = {"study", "algorithm", "dataset", "task", "name"}
"""What a row is of, instead of how it is trained."""
PAPERS = papers()


class Row:
    """The settings of one task of a case, those that the case leaves to defaults on demand."""

    def __init__(self, study: str, case: Case, table: dict | None):
        self.case, self.table = case, table
        settings = {**case.settings, **(table or {}), "seeds": case.seeds}
        self.stated = {k: v for k, v in settings.items() if k not in SELECTED}
        self.conditions = {**settings, "study": study}
        self.text = f"{study}: {case.command}"

    @cached_property
    def resolved(self) -> dict:
        config = self.case.config(self.case.seeds[0])
        tables = (config.tasks[self.table["name"]] if self.table else config).used_tables()
        return settings_by_flag(tables)

    def value(self, name: str) -> object:
        value = self.stated[name] if name in self.stated else self.resolved.get(name, MISSING)
        return list(value) if isinstance(value, tuple) else value


def rows(paper: str) -> Iterator[Row]:
    """The rows of all studies of a paper at scale paper."""
    for study in PAPERS[paper].studies("paper"):
        for case in study.cases:
            for table in case["task"] or (None,):
                yield Row(study.name, case, table)


def entries(paper: str) -> list[dict]:
    """The table of a paper."""
    text = (PAPERS[paper].folder / "paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["setting"]


def any_of(value: object) -> list:
    return value if isinstance(value, list) else [value]


def applies(entry: dict, row: Row) -> bool:
    """Whether all conditions of an entry hold."""
    conditions = entry.get("where", {}).items()
    return all(row.conditions.get(name) in any_of(value) for name, value in conditions)


def problems(table: list[dict], compared: list[Row]) -> list[str]:
    """Settings without exactly one entry or with another value, and values that never occur."""
    by_name: dict[str, list[tuple[int, dict]]] = {}
    for place, entry in enumerate(table):
        by_name.setdefault(entry["name"], []).append((place, entry))
    left = {
        (place, str(value))
        for place, entry in enumerate(table)
        for value in any_of(entry.get("ours", entry.get("value")))
    }
    wrong: dict[str, str] = {}
    for row in compared:
        for name in dict.fromkeys([*row.stated, *by_name]):
            fitting = [one for one in by_name.get(name, []) if applies(one[1], row)]
            if not fitting and name not in row.stated:
                continue
            most = max((len(entry.get("where", {})) for _, entry in fitting), default=0)
            best = [one for one in fitting if len(one[1].get("where", {})) == most]
            value = row.value(name)
            if value is MISSING:
                continue
            if len(best) != 1:
                text = f"{name} = {value!r} has {len(best)} entries of {most} conditions"
                wrong.setdefault(text, row.text)
                continue
            ((place, entry),) = best
            expected = entry.get("ours", entry.get("value"))
            if value == expected:
                left -= {(place, str(one)) for one in any_of(expected)}
            elif value in any_of(expected):
                left.discard((place, str(expected[expected.index(value)])))
            else:
                wrong.setdefault(f"{name} is {value!r}, and in the table {entry}", row.text)
    unused = [f"{value} of {table[place]} is the value of no case" for place, value in sorted(left)]
    return [f"{text} ({example})" for text, example in wrong.items()] + unused


@pytest.mark.parametrize("paper", sorted(set(PAPERS) - OURS))
def test_settings_at_scale_paper_are_published_or_have_a_reason(paper):
    table = entries(paper)
    for entry in table:
        assert entry.keys() <= KEYS, entry
        assert "source" in entry or "value" not in entry, entry
        assert ("ours" in entry) == ("reason" in entry), entry
        assert "value" in entry or "ours" in entry, entry
        assert entry.get("value") != entry.get("ours"), entry
    wrong = problems(table, list(rows(paper)))
    assert not wrong, "\n".join(wrong)


def test_a_setting_that_differs_from_the_table_is_named():
    """Two cases by hand: a wrong default, a setting without entry, a value that never occurs."""
    settings = {"algorithm": "fedadam", "lr": 0.1, "server_lr": 0.01, "clients": 4}
    settings |= {"dataset": "digits", "model": "fcnn", "rounds": 1, "local_steps": 1}
    compared = [
        Row("by-hand", Case(settings | {"clients": count}, (1, 2), 0), None) for count in (4, 8)
    ]
    table = [
        {"name": name, "value": value}
        for name, value in (settings | {"clients": [4, 8], "seeds": [1, 2]}).items()
        if name not in ("rounds", "algorithm", "dataset")
    ]
    table += [
        {"name": "eps", "value": [1e-3, 1e-8]},
        {"name": "lr", "where": {"clients": 8}, "value": [0.1, 0.2]},
    ]
    wrong = problems(table, compared)
    assert [text.partition(" (")[0] for text in wrong] == [
        "rounds = 1 has 0 entries of 0 conditions",
        f"1e-08 of {table[-2]} is the value of no case",
        f"0.2 of {table[-1]} is the value of no case",
    ]
    table += [{"name": "rounds", "value": 1}, {"name": "rounds", "ours": 1}]
    assert "rounds = 1 has 2 entries of 0 conditions" in problems(table, compared)[0]
    table[-3] = {"name": "beta1", "value": 0.5}
    assert any("beta1 is 0.9, and in the table" in text for text in problems(table, compared))
