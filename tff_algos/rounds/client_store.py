"""STUB until the branch `work-store` is merged."""


class ClientStore:
    def __init__(self, initial, num_clients):
        self.initial = initial
