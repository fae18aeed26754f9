"""The model of a task, as its handler sees it, that does nothing."""

import numpy as np

from channels import Load


class Silent:
    """Its updates have ``elements`` values in simultaneous transmissions."""

    def __init__(self, elements=0):
        self.elements = elements

    def nothing(self, *args, **options):
        """Any other call of a handler."""

    issue = came_back = gave_up = drop = merge_updates = end = spread = train_round = nothing

    def share(self, client):
        return 1.0

    def shares(self, clients):
        return np.ones(len(clients))

    def air_load(self, requests):
        return Load(elements=np.full(len(requests), self.elements))

    def air_load_of_round(self, clients, chosen):
        return Load(elements=np.full(len(clients), self.elements))
