"""A FedAvg round in plain PyTorch, as reference for runs in sessions."""

import torch
from torch.func import functional_call
from torch.nn import functional as F


def full_batch_round(learner, spec, module, data, params, clients, lr):
    """One FedAvg round with a full-batch step per client, in plain PyTorch."""
    changes = []
    for client in clients:
        rows = learner.local.executor.data.source.client_samples[client]
        leaf = params.clone().requires_grad_()
        logits = functional_call(module, spec.views(leaf), (data.train_inputs[rows],))
        loss = F.cross_entropy(logits, data.train_labels[rows])
        changes.append(-lr * torch.autograd.grad(loss, leaf)[0])
    return params + torch.stack(changes).mean(0)
