"""Names of algorithms, data sets, models and uplinks in figures and tables."""

from __future__ import annotations

NAMES = {
    "fa-nt": "FA-NT",
    "fadamgc": "FAdamGC",
    "fedacg": "FedACG",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedams": "FedAMS",
    "fedast": "FedAST",
    "fedast-nobuffer": "FedAST-NoBuffer",
    "fedasync": "FedAsync",
    "fedavg": "FedAvg",
    "fedavg-m": "FedAvg-M",
    "fedavg-small": "FedAvg-small",
    "fedbuff": "FedBuff",
    "fedprox": "FedProx",
    "fedrolex": "FedRolex",
    "fedyogi": "FedYogi",
    "heterofl": "HeteroFL",
    "hfedavg": "HFedAvg",
    "hist": "HIST",
    "local-adam": "LocalAdam",
    "moon": "MOON",
    "ra-fed": "RA-Fed",
    "ram-fed": "RAM-Fed",
    "scaffold": "SCAFFOLD",
    "scaffold-m": "SCAFFOLD-M",
    "sync-bayes-st": "Sync-Bayes-ST",
    "sync-st": "Sync-ST",
    "sync-ucb-st": "Sync-UCB-ST",
}
"""Names of the algorithms, as in their papers."""
DATA = {
    "ag-news": "AG News",
    "cifar10": "CIFAR-10",
    "cifar10-jpeg": "CIFAR-10 (JPEG copy)",
    "cifar100": "CIFAR-100",
    "digits": "digits",
    "fashion-mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "svhn": "SVHN",
    "tinyimagenet": "TinyImageNet",
    "20newsgroups": "20 Newsgroups",
    "qnli": "QNLI",
    "qqp": "QQP",
    "sst2": "SST-2",
    "shakespeare": "Shakespeare",
}
"""Names of the data sets in figures and tables."""
MODELS = {
    "fcnn": "FCNN",
    "mlp": "MLP",
    "lenet5": "LeNet-5",
    "gn-cnn": "CNN with group norm",
    "cnn": "CNN",
    "linear": "linear model",
    "text-mean": "mean of embeddings",
}
UPLINKS = {"tdma": "OMA", "aircomp": "AirComp"}
"""Names of uplinks: orthogonal multiple access is TDMA."""
