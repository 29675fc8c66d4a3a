"""A network of clients whose times are a script's, in virtual time; how they train is the test's."""

import numpy as np

from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, REJECTED, TICK_S, Happening


class ScriptedNetwork:
    """As `tff_algos.rounds.network.Network` says, without a wait.

    Args:
      train: a function (task) -> LocalResult.
      find_seconds: a function (client, number of the task) -> seconds until the answer, whole ticks.
      moves: (time, client, JOINED or LEFT), in order; one that leaves trains again from the start when it is back.
      present: who is there at first.
      time_s: at which it begins, that of a state.
      doubled: clients whose answers come twice, the second time a tick later.
      rejected: (client, number) of answers that must not count.
    """

    def __init__(self, train, find_seconds, moves=(), present=(), time_s=0.0, doubled=(), rejected=()):
        self.train, self.find_seconds, self.doubled, self.rejected = train, find_seconds, doubled, rejected
        self.coming = [Happening(*move) for move in moves if move[0] > time_s]
        self.at_first, self.present, self.time_s, self.started_s = set(present), set(), time_s, None
        self.pending, self.tasks = {}, []

    def start_clock(self, time_s):
        if self.started_s is None:
            self.started_s, self.present = time_s, self.at_first

    def now_s(self):
        return self.time_s

    def find_present(self):
        return np.array(sorted(self.present), np.int64)

    def ask(self, *tasks):
        for task in tasks:
            assert task.client in self.present and self.pending.get(task.client) is not task
            self.tasks.append(task)
            self.pending[task.client] = task
            self._send(task, self.time_s)

    def withdraw(self, client):
        self.pending.pop(client, None)
        self.coming = [each for each in self.coming if each.client != client or each.what in (JOINED, LEFT)]

    def take(self, until_s):
        assert self.started_s is not None and (self.coming or until_s is not None), "nothing happens any more"
        if not self.coming or (until_s is not None and self.coming[0].time_s > until_s):
            self.time_s = max(self.time_s, until_s)
            return None
        happening = self.coming.pop(0)
        self.time_s = max(self.time_s, happening.time_s)
        if happening.what == JOINED:
            self.present.add(happening.client)
            if task := self.pending.get(happening.client):
                self._send(task, self.time_s)
        elif happening.what == LEFT:
            self.present.discard(happening.client)
            self.coming = [each for each in self.coming if each.client != happening.client or each.number == 0]
        else:
            self.pending.pop(happening.client, None)
        return happening._replace(time_s=self.time_s)

    def _send(self, task, time_s):
        end_s = time_s + self.find_seconds(task.client, task.number)
        what = REJECTED if (task.client, task.number) in self.rejected else ANSWERED
        result = None if what == REJECTED else self.train(task)
        times = [end_s, end_s + TICK_S] if task.client in self.doubled else [end_s]
        self.coming += [Happening(each, task.client, what, task.number, result) for each in times]
        self.coming.sort(key=lambda each: each.time_s)
