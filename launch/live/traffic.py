"""What is counted of the network: bytes and answers. Imports no TensorFlow."""

from typing import NamedTuple


class Traffic(NamedTuple):
    """What went over the network since this was last taken: a row of traffic.csv, without its round.

    Attributes:
      bytes_down, bytes_up: of all messages.
      bytes_of_orders, bytes_of_files: of these, the orders of examples; the training file, parts and descriptions.
      num_present: clients that are there now.
      num_asked: tasks that algorithms gave.
      num_answered, num_late, num_rejected: answers that counted, that nobody waited for any more, that must not count.
      num_missing: tasks that were withdrawn, unanswered.
      num_returns: of clients after a connection was lost, shortly or not.
    """

    bytes_down: int
    bytes_up: int
    bytes_of_orders: int
    bytes_of_files: int
    num_present: int
    num_asked: int
    num_answered: int
    num_late: int
    num_rejected: int
    num_missing: int
    num_returns: int
