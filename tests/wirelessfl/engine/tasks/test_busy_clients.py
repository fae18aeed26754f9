"""Clients are chosen for requests as by a reference implementation with plain lists."""

from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.engine.tasks.clients import BusyClients
from wirelessfl.engine.tasks.request import Request

STEPS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 2), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def issued(number, task, client):
    return Request(number, task, client, 0, 0.0, 1.0)


@given(st.integers(1, 9), st.one_of(st.none(), st.integers(1, 9)), st.booleans(), STEPS)
def test_choices_equal_a_reference_with_lists(clients, limit, idle_first, steps):
    """``BusyClients`` and the reference choose the same clients, also after a restore."""
    busy = BusyClients(clients, limit, idle_first=idle_first)
    order, out = [], []  # busy clients in their order; requests by client, oldest first
    for number, (place, task, ends) in enumerate(steps):
        if len(order) >= min(limit or clients, clients):
            without = [c for c in order if all(r.task != task for r in out if r.client == c)]
            pool = (without or order) if idle_first else order
        else:
            pool = [c for c in range(clients) if not idle_first or c not in order]
        wanted = pool[int(place * len(pool))]
        again = BusyClients(clients, limit, idle_first=idle_first)
        again.restore(busy.all, out)
        assert busy.choose(place, task) == again.choose(place, task) == wanted
        out.append(issued(number, task, wanted))
        busy.add(out[-1])
        if wanted not in order:
            order.append(wanted)
        for request in out[: min(ends, len(out)) // 2]:
            out.remove(request)
            idle = all(other.client != request.client for other in out)
            busy.remove(request, idle=idle)
            if idle:
                index = order.index(request.client)
                order[index] = order[-1]
                order.pop()
        assert busy.all == order


def test_choosing_an_idle_client_does_not_scan_the_busy_ones():
    """With 10^5 clients, half of them busy, choosing one takes fewer than 20 look-ups."""
    busy = BusyClients(100_000, None, idle_first=True)
    for client in range(0, 100_000, 2):
        busy.add(issued(client, 0, client))
    looked = []

    class Counted(list):
        def __getitem__(self, place):
            looked.append(place)
            return super().__getitem__(place)

        def __iter__(self):
            raise AssertionError("all busy clients are scanned")

    busy._sorted = Counted(busy._sorted)
    assert busy.choose(0.5, 0) == 50_001
    assert len(looked) < 20
