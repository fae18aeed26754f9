"""The stored partition of a run has its samples and counts."""

import numpy as np
import pytest

from channels import Stream
from wirelessfl.data import partition, split
from wirelessfl.data.client_samples import ClientSamples
from wirelessfl.data.partition import COUNTED, ClientPartition
from wirelessfl.data.picture import label_counts
from wirelessfl.errors import DataError

LABELS = Stream(1).generator().integers(0, 7, 600)


@pytest.mark.parametrize("kind", ["noniid", "dirichlet", "iid"])
def test_samples_and_counts_are_those_of_the_split(kind):
    dealt = split(LABELS, 12, kind=kind, stream=Stream(1))
    found = ClientPartition.of_arrays(ClientPartition.of(dealt, LABELS, 7).arrays())
    assert len(found) == 12
    for client, mine in enumerate(dealt):
        assert found.indices(client).tolist() == found[client].tolist() == list(mine)
    assert np.array_equal(found.counts.T, label_counts(dealt, LABELS, 7))
    assert repr(found) == "ClientPartition(12 clients, 600 samples)"
    assert [list(mine) for mine in found[2:4]] == [list(mine) for mine in dealt[2:4]]


class OnDemand(ClientSamples):
    """Two samples of each client, which are computed on demand."""

    def __init__(self, clients):
        self.clients, self.asked = clients, 0

    @property
    def sizes(self):
        return np.broadcast_to(np.int64(2), self.clients)

    identity = ()

    def __len__(self):
        return self.clients

    def _samples_of(self, client):
        self.asked += 1
        return np.array([client % 600, (client + 1) % 600])


@pytest.mark.parametrize("clients", [COUNTED + 1, 10**13])
def test_many_clients_on_demand_are_counted_only_at_the_beginning(clients):
    samples = OnDemand(clients)
    found = ClientPartition.of(samples, LABELS, 7)
    assert samples.asked == COUNTED
    assert found.counts.shape == (COUNTED, 7)
    assert (len(found), found.known) == (clients, False)
    assert np.array_equal(np.flatnonzero(found.counts[3]), np.unique(LABELS[3:5]))
    with pytest.raises(DataError, match="were not stored"):
        found.indices(0)


def test_large_partitions_are_not_stored_unless_they_were_given(monkeypatch):
    monkeypatch.setattr(partition, "LARGEST_BYTES", 1000)
    many = [np.zeros(300, dtype=np.int64)] * 2
    assert not ClientPartition.of(many, LABELS, 7).known
    assert ClientPartition.of(many, LABELS, 7, whole=True).known


@pytest.mark.parametrize("labels", [LABELS / 2, np.stack([LABELS, LABELS], axis=1)])
def test_other_labels_are_not_counted(labels, tmp_path):
    found = ClientPartition.of([[0, 1], [2]], labels, 7)
    assert found.counts is None
    assert found.indices(1).tolist() == [2]
    with pytest.raises(DataError, match="labels are not classes"):
        found.draw(tmp_path / "figure")


def test_clients_are_checked():
    found = ClientPartition.of([[0, 1], [2]], LABELS, 7)
    for client in (2, -3):
        with pytest.raises(DataError, match=f"client is {client}: choose one from 0 to 1"):
            found.indices(client)
    assert found.indices(-1).tolist() == [2]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("clients", "classes"), [(3, 7), (60, 30)])
def test_figures_are_drawn(clients, classes, tmp_path):
    labels = Stream(2).generator().integers(0, classes, 600)
    dealt = split(labels, clients, kind="dirichlet", stream=Stream(1))
    files = ClientPartition.of(dealt, labels, classes).draw(tmp_path / "labels")
    assert [file.name for file in files] == ["labels.png", "labels.pdf"]
    assert all(file.stat().st_size > 2000 for file in files)
