"""Each selection against sorting by hand, in cells of different sizes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import (
    ChannelDraw,
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Stream,
)
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.selection import (
    SELECTIONS,
    Age,
    BestChannel,
    Candidates,
    PowerOfChoice,
    RandomSelection,
    RoundRobin,
    Selection,
    Soonest,
)
from wirelessfl.engine.server.ledger import Ledger

CLIENTS = np.array([0, 2, 3, 5, 6, 8, 9, 11])  # of 12 clients; 0 to 5 are in cell 0
NODE = np.array([0, 0, 0, 0, 1, 1, 1, 1])
NETWORK = Network.from_snr(np.repeat([0, 1], 6), cpu_hz=1e9, snr_db=10.0, antennas=2)


def candidates(counts=(2, 1), *, h=None, clients=CLIENTS, losses=None, **others):
    """Candidates of a round; the channel of client i has gain 12 - i."""
    network = NETWORK.of(clients)
    if h is None:
        h = np.sqrt(np.stack([12.0 - clients, 0.0 * clients], -1))
    facts = {
        "round": 4,
        "clients": clients,
        "node": network.cell_of,
        "counts": np.array(counts),
        "network": network,
        "access": EqualSlots(),
        "radio": True,
        "ledger": Ledger(12),
        "stream": Stream(3),
        "weights": None,
        "find_draw": lambda some: ChannelDraw(network, h).of(some),
        "find_load": lambda: Load(1e6, 1000.0),
        "find_losses": losses,
    }
    return Candidates(**facts | others)


def test_the_clients_that_end_soonest():
    """Equal loads: the best channels; with training times, those that train fast."""
    assert sorted(Soonest().select(candidates())) == [0, 2, 6]
    slow = Load(np.where(np.isin(CLIENTS, [0, 6, 8]), 1e9, 1e6), 1000.0)
    assert sorted(Soonest().select(candidates(find_load=lambda: slow))) == [2, 3, 9]


def test_the_best_channels():
    assert sorted(BestChannel().select(candidates((3, 2)))) == [0, 2, 3, 6, 8]


@pytest.mark.parametrize("selection", [Soonest(), BestChannel()], ids=["soonest", "best-channel"])
def test_clients_out_of_reach(selection):
    """They are chosen by none; a cell without others names the round."""
    h = np.ones((8, 2)) * ~np.isin(CLIENTS, [0, 5, 6, 8, 9])[:, None]
    found = selection.select(candidates((2, 3), h=h))
    assert sorted(found) == [2, 3, 11]
    message = r"no client of cell 1 can be reached in round 5: the channels of all its 4 candidates"
    with pytest.raises(ConfigError, match=message):
        selection.select(candidates(h=h * (NODE == 0)[:, None]))
    assert sorted(selection.select(candidates((4, 0), h=h * (NODE == 0)[:, None]))) == [2, 3]


def test_links_of_a_fixed_rate_reach_all():
    found = Soonest().select(candidates((4, 4), h=np.zeros((8, 2)), access=FixedRate(1e6)))
    assert sorted(found) == CLIENTS.tolist()


def test_each_in_turn():
    """All take part once before one takes part again."""
    ledger, seen = Ledger(12), []
    for _ in range(4):
        found = np.sort(RoundRobin().select(candidates(ledger=ledger)))
        ledger.add(found, None, np.zeros(3, dtype=bool))
        seen.append(found.tolist())
    assert seen == [[0, 2, 6], [3, 5, 8], [0, 2, 9], [3, 5, 11]]


def test_the_oldest_updates():
    """A client whose upload fails is chosen again; ties go to the better channel."""
    ledger = Ledger(12)
    first = np.sort(Age().select(candidates(ledger=ledger)))
    assert first.tolist() == [0, 2, 6]
    ledger.add(first, None, np.array([True, False, False]))
    assert sorted(Age().select(candidates(ledger=ledger))) == [2, 3, 6]
    assert sorted(RoundRobin().select(candidates(ledger=ledger))) == [3, 5, 8]
    h = np.sqrt(np.stack([1.0 + CLIENTS, 0.0 * CLIENTS], -1))
    assert sorted(Age().select(candidates(ledger=ledger, h=h))) == [3, 5, 11]
    wired = candidates(ledger=ledger, h=h, radio=False)
    assert sorted(Age().select(wired)) == [2, 3, 6]


def test_power_of_choice():
    """With all as candidates, the largest losses; otherwise those of the drawn ones."""
    asked = []

    def losses(clients, samples):
        asked.append((clients, samples))
        return np.where(clients == 5, np.nan, clients % 7.0)  # 5 has diverged

    choice = PowerOfChoice(loss_candidates=4, loss_samples=17)
    assert sorted(choice.select(candidates(losses=losses))) == [3, 5, 6]
    assert asked[0][0].tolist() == CLIENTS.tolist()
    assert asked[0][1] == 17
    for seed in range(20):
        here = candidates(losses=losses, stream=Stream(seed))
        found = np.sort(PowerOfChoice().select(here))
        drawn = asked[-1][0]
        assert np.bincount(drawn > 5).tolist() == [4, 2]  # twice as many as wanted
        best = [*sorted(drawn[:4], key=lambda i: -np.nan_to_num(i % 7.0 if i != 5 else 99))[:2]]
        assert found[:2].tolist() == sorted(best)
        assert found[2] == max(drawn[4:], key=lambda i: i % 7)


def test_candidates_are_drawn_by_weight():
    """Client 0 has weight 3, the others 1: the first of one candidate is client 0 in half of the
    draws, within 5 standard deviations."""
    weights, hits = np.array([3.0, 1, 1, 1, 1, 1, 1, 1]), 0
    for seed in range(400):
        here = candidates(
            (1, 0),
            losses=lambda clients, _: 1.0 * (clients == 0),
            weights=weights,
            stream=Stream(seed),
        )
        hits += 0 in PowerOfChoice(loss_candidates=1).select(here)
    assert abs(hits - 200) < 50


def test_too_few_candidates_are_refused():
    PowerOfChoice(loss_candidates=3).check(6, 2)
    with pytest.raises(ConfigError, match="loss_candidates=2 per cell conflicts with clients_per_"):
        PowerOfChoice(loss_candidates=2).check(6, 2)


@pytest.mark.parametrize("cls", SELECTIONS.classes().values(), ids=lambda cls: cls.name)
def test_all_one_and_none(cls):
    """All of each cell, one of one cell, and a cell without participants."""

    def losses(clients, _):
        return np.ones(len(clients))

    assert sorted(cls().select(candidates((4, 4), losses=losses))) == CLIENTS.tolist()
    for counts in ((1, 0), (0, 1), (4, 0), (0, 4)):
        found = cls().select(candidates(counts, losses=losses))
        assert np.bincount(NODE[np.searchsorted(CLIENTS, found)], minlength=2).tolist() == [*counts]
    one = candidates((1, 0), clients=np.array([4]), losses=losses)
    assert cls().select(one).tolist() == [4]


def test_random_clients_are_equally_likely():
    counts = np.zeros(12)
    for seed in range(400):
        counts[RandomSelection().select(candidates(stream=Stream(seed)))] += 1
    assert np.abs(counts[CLIENTS] - np.repeat([200, 100], 4)).max() < 50  # 5 deviations


@dataclass(frozen=True)
class First(Selection):
    """The first candidates of each cell, changed."""

    change: object = None

    def select(self, candidates):
        return self.change(candidates.smallest(candidates.clients))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda found: found[:2], "select returned 0 clients of cell 1 instead of 1"),
        (lambda found: [*found, 3], "select returned 3 clients of cell 0 instead of 2"),
        (lambda found: [0, 3, 7], "select returned client 7, which is not a candidate"),
        (lambda found: [0, 0, 6], "select returned client 0 twice"),
        (lambda found: [0, 2, 12], "select returned 12 at [2]"),
        (lambda found: found / 2, "select returned float64 [3]"),
        (lambda found: found > 0, "select returned bool [3]"),
        (lambda found: None, "select returned None. Return 3 of the candidates"),
    ],
)
def test_a_wrong_answer_is_named(change, text):
    with pytest.raises(ConfigError) as caught:
        First(change=change).select(candidates())
    assert text in str(caught.value)
    assert "candidates.counts[cell] of each cell" in str(caught.value)


def test_a_users_answer_is_sorted():
    assert First(change=lambda found: found[::-1].tolist()).select(candidates()).tolist() == [
        0,
        2,
        6,
    ]


def test_which_selections_are_unbiased():
    """The one statement that lists and notes repeat."""
    kinds = SELECTIONS.classes()
    assert {name for name, cls in kinds.items() if cls.unbiased} == {"random", "round-robin"}
    for cls in kinds.values():
        first = cls.__doc__.splitlines()[0]
        assert ("unbiased" in first) == cls.unbiased
        assert ("biased to" in first or "biased where" in first) != cls.unbiased


def test_lazy_facts_are_found_once():
    found = []
    here = candidates(
        find_draw=lambda some: found.append(1) or ChannelDraw(NETWORK, np.ones((12, 2)))
    )
    assert here.draw is here.draw
    assert found == [1]
    assert replace(here, round=5).draw is not here.draw


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("access", [EqualSlots(), EqualBands(), ReadyOrder()], ids=repr)
@pytest.mark.parametrize("counts", [(2, 1), (3, 3), (0, 4)])
def test_blocks_of_candidates_choose_as_one(monkeypatch, size, access, counts):
    """Channels of very many candidates are drawn in blocks; clients 3 and 8 are out of reach."""
    random = np.random.default_rng(size)
    h = random.normal(size=(8, 2)) * ~np.isin(CLIENTS, [3, 8])[:, None]
    load = Load(1e8 * random.uniform(size=8), 1e4 * random.integers(1, 4, 8))
    ledger = Ledger(12)
    ledger.add(np.array([0, 5, 8]), np.ones(3), np.ones(3, bool))
    here = candidates(counts, h=h, access=access, ledger=ledger, find_load=lambda: load)
    kinds = Soonest(), BestChannel(), Age()
    whole = [kind.select(here).tolist() for kind in kinds]
    monkeypatch.setattr("wirelessfl.engine.selection.selection.AT_ONCE", size)
    monkeypatch.setattr("wirelessfl.engine.selection.built_in.AT_ONCE", size)
    drawn = []

    def draw(some):
        drawn.append(len(some))
        return here.draw.of(some)

    assert [kind.select(replace(here, find_draw=draw)).tolist() for kind in kinds] == whole
    assert size in drawn
    snr = replace(here, find_draw=draw).snr_hz()
    assert snr.tolist() == here.draw.snr_hz.tolist()


@pytest.mark.parametrize(("count", "tied"), [(1, [3, 5]), (2, []), (3, []), (4, [])])
def test_channels_of_clients_of_equal_age_alone_are_drawn(count, tied):
    """Clients 3 and 5 are the oldest of cell 0, then comes client 2."""
    ledger, drawn = Ledger(12), []
    ledger.add(np.array([0, 2, 6, 8, 9, 11]), np.ones(6), np.ones(6, bool))
    ledger.add(np.array([0]), np.ones(1), np.ones(1, bool))
    here = candidates((count, 4), ledger=ledger)
    some = replace(here, find_draw=lambda some: drawn.extend(some) or here.draw.of(some))
    assert sorted(Age().select(some)) == sorted(Age().select(here))
    assert drawn == tied
