"""Which model a client has that has not taken part yet."""

import pytest

from tff_algos.settings.local_training import LocalTrainingConfig

ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)


@pytest.mark.parametrize(
    ("algorithm", "fields", "source"),
    [
        ("ditto", {}, "before"),  # the first model
        ("apfl", {}, "after"),  # the shared one
        ("pfedme", {}, "after"),
        ("partial", {"personal": "*/bias"}, "after"),  # the shared layers with the first personal ones
    ],
)
def test_who_has_not_taken_part(
    build_algorithm, make_federation, run, get_personal, get_bytes, algorithm, fields, source
):
    """One client of three is asked. New clients have a model where it is the shared one."""
    process = build_algorithm(algorithm, make_federation([9, 4, 14]), ONE_STEP, cohort_size=1, **fields)
    (before, after), (row,) = run(process, 1)
    first, shared = (get_bytes(process.get_models(state)["global"]) for state in (before, after))
    assert row["num_clients"] == 1 and first != shared
    assert [get_bytes(own) for own in get_personal(process, before)] == [first] * 3
    expected, (client,) = first if source == "before" else shared, after.kept.clients
    is_expected = [get_bytes(own) == expected for own in get_personal(process, after)]
    assert is_expected == [index != client for index in range(3)]
    assert process.takes_new_clients == (algorithm in ("apfl", "pfedme"))
