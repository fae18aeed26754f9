"""Losses and metrics as a user writes them, which worker processes can import."""

import torch
from torch.nn import functional as F


def scalar(outputs, labels):
    return F.cross_entropy(outputs, labels)


def per_sample(outputs, labels):
    return F.cross_entropy(outputs, labels, reduction="none")


def branching(outputs, labels):
    """Does not run under vmap, because it depends on a value."""
    loss = F.cross_entropy(outputs, labels)
    return loss if loss.item() > -1 else outputs.sum()


def weighted(outputs, labels):
    return F.cross_entropy(outputs, labels, weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))


def standardised(outputs, labels):
    losses = F.cross_entropy(outputs, labels, reduction="none")
    return losses / losses.std()


def top_two(outputs, labels):
    return float((outputs.topk(2).indices == labels[:, None]).any(1).float().mean())


def failing(outputs, labels):
    raise KeyError("weights")
