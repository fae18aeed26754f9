"""Partitions of flwr-datasets as splits of runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown

INDEX = "wirelessfl index"
"""Column of a data set that numbers its samples."""


def flower_split(partitioner: Any, dataset: Any) -> list[IntArray]:
    """The samples of each partition, to give to ``wirelessfl.run(split=...)``: one client each.

    Client k has the samples that ``partitioner.load_partition(k)`` would return. Partitioners by
    natural ids give natural clients.

    >>> import datasets, wirelessfl
    >>> from flwr_datasets.partitioner import LinearPartitioner
    >>> samples = datasets.Dataset.from_dict({"label": [0, 1, 0, 1, 0, 1]})
    >>> split = wirelessfl.bridges.flower_split(LinearPartitioner(num_partitions=3), samples)
    >>> [len(indices) for indices in split]
    [1, 2, 3]

    Args:
        partitioner: a new partitioner of ``flwr_datasets.partitioner``, without a data set.
        dataset: the training samples, a ``datasets.Dataset``, in the order of the run's data.

    Returns:
        Indices of each client's samples in ``dataset``, ascending.

    Raises:
        ConfigError: an argument has another type, the partitioner has a data set already, or its
            partitions are columns instead of samples.
    """
    if not hasattr(partitioner, "load_partition"):
        raise ConfigError(
            f"partitioner is {shown(partitioner)}: give one of flwr_datasets.partitioner, e.g. "
            "IidPartitioner(num_partitions=10)."
        )
    if not hasattr(dataset, "add_column"):
        raise ConfigError(
            f"dataset is {shown(dataset)}: give a datasets.Dataset, e.g. the split 'train' of a "
            "Hugging Face data set."
        )
    if partitioner.is_dataset_assigned():
        raise ConfigError(
            "partitioner has a data set already: give a new one, which gets the data set here."
        )
    count = len(dataset)
    partitioner.dataset = dataset.add_column(INDEX, np.arange(count))
    split = []
    for number in range(partitioner.num_partitions):
        partition = partitioner.load_partition(number)
        if INDEX not in partition.column_names:
            raise ConfigError(
                f"partitioner {type(partitioner).__name__} gives clients columns instead of "
                "samples: choose one that partitions samples, e.g. DirichletPartitioner."
            )
        split.append(np.sort(np.array(partition[INDEX], dtype=np.int64)))
    return split
