"""Losses of a model on the clients' own samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from channels.arrays import FloatArray, IntArray
from wirelessfl.submodels import Submodels
from wirelessfl.training.evaluate import deployed, logits_of
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.objective import Objective
from wirelessfl.training.pooling import FastPooling


@dataclass(frozen=True, eq=False)
class ClientLosses:
    """Evaluates models on the samples of clients.

    Args:
        objective: model and loss.
        data: training data of all clients.
        tested: the submodel that is evaluated; None for the full model.
    """

    objective: Objective
    data: TrainingData
    tested: Submodels | None = None

    @torch.no_grad()
    def of(self, params: Tensor, clients: IntArray, samples: int | None = None) -> FloatArray:
        """Mean loss of each client [clients]; 0 for a client without samples.

        Batches contain samples of several clients. Sums are float64.

        Args:
            params: parameters [P] of the full model.
            clients: client numbers.
            samples: largest number of samples of a client, evenly spaced among its own; None for
                all.

        Raises:
            ConfigError, TrainingError: as for ``logits_of``.
        """
        objective, flat = deployed(self.objective, params, self.tested)
        tensors = objective.spec.views(flat)
        objective.module.eval()
        own = [_spaced(self.data.source.client_samples[int(i)], samples) for i in clients]
        sizes = np.array([len(rows) for rows in own], dtype=np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *own])
        losses = np.empty(len(rows))
        for first in range(0, len(rows), objective.test_batch):
            part = slice(first, first + objective.test_batch)
            x, y = self.data.batch(torch.from_numpy(rows[part]).to(self.data.inputs.device))
            with FastPooling():
                logits = logits_of(objective, tensors, x, y)
            losses[part] = objective.criterion.values(logits, y).double().cpu().numpy()
        client = np.repeat(np.arange(len(own)), sizes)
        return np.asarray(np.bincount(client, losses, len(own)) / np.maximum(sizes, 1))


def _spaced(rows: IntArray, count: int | None) -> IntArray:
    """At most ``count`` of the rows, evenly spaced: samples may be sorted by label."""
    rows = np.asarray(rows, dtype=np.int64)
    if count is None or len(rows) <= count:
        return rows
    return rows[np.arange(count) * len(rows) // count]
