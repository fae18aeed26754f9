"""A small model for the toy data, and the parameters of a result."""

import torch

from wirelessfl.models import FCNN


def model(hidden=(10,)):
    torch.manual_seed(3)
    return FCNN((12,), 4, hidden=hidden)


def flat(result):
    return torch.cat([value.reshape(-1) for value in result.params.values()])
