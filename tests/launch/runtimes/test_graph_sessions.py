"""Parts of a round as functions: graphs small enough to work out by hand."""

import concurrent.futures
import contextlib

import numpy as np
import pytest
import tensorflow as tf

from launch.runtimes.graph_sessions import GraphFunction, GraphPart


@pytest.fixture
def open_part():
    """(build, dtypes) -> the part that `build` makes of as many scalars, as a function.

    `build` returns the outputs and the operation that makes the variables anew, or None.
    """
    with contextlib.ExitStack() as stack:

        def open_function(build, *dtypes, **given):
            with tf.Graph().as_default() as graph:
                inputs = [tf.compat.v1.placeholder(dtype, ()) for dtype in dtypes]
                outputs, initialize = build(*inputs)
            names = (tuple(tensor.name for tensor in tensors) for tensors in (inputs, outputs))
            part = GraphPart(graph.as_graph_def().SerializeToString(), *names, initialize.name if initialize else "")
            return stack.enter_context(contextlib.closing(GraphFunction(part, **given)))

        yield open_function


@pytest.mark.parametrize(
    ("build", "dtypes", "calls"),
    [
        (
            lambda a, b: ([a - b, a * b], None),  # in order
            (tf.float32,) * 2,
            [((np.float32(5), np.float32(2)), [3.0, 10.0]), ((np.float32(2), np.float32(5)), [-3.0, 10.0])],
        ),
        # As where a round hands a client's values on, or gives the same number two names.
        (lambda a: ([a, a], None), (tf.int32,), [((np.int32(7),), [7, 7])]),
        (lambda a: ([2 * a] * 2, None), (tf.int32,), [((np.int32(7),), [14, 14])]),
        # The path of a client's files is text.
        (lambda path, n: ([path + b".bin", n], None), (tf.string, tf.float32), [(("client", 3), [b"client.bin", 3.0])]),
        (lambda: ([], None), (), [((), [])]),
        (lambda a: ([], None), (tf.float32,), [((np.float32(1),), [])]),
        (lambda: ([tf.constant(4)], None), (), [((), [4])]),
    ],
    ids=["order", "input", "twice", "text", "nothing", "no output", "no input"],
)
def test_a_part_takes_its_inputs_and_gives_its_outputs(open_part, build, dtypes, calls):
    function = open_part(build, *dtypes)
    for given, expected in calls:
        found = function(*given)
        assert found == expected
        assert all(each.dtype == np.float32 for each in found if isinstance(each, np.floating))


def test_variables_are_made_anew_before_each_call_and_each_session_has_its_own(open_part):
    """From the second input alone, which the start is fed, too."""

    def count_up(step, first):
        variable = tf.compat.v1.get_variable("v", initializer=lambda: first, use_resource=True)
        return [variable.assign_add(step).read_value()], tf.group(variable.initializer)

    function = open_part(count_up, tf.float32, tf.float32, num_sessions=2)
    assert [function(np.float32(step), np.float32(10)) for step in (1, 1, 2)] == [[11.0], [11.0], [12.0]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda step: function(np.float32(step), np.float32(10)), range(200))
        assert list(found) == [[10.0 + step] for step in range(200)]


def test_a_failed_operation_is_the_error_of_the_call_and_the_next_one_works(open_part):
    def divide(a, b):
        with tf.control_dependencies([tf.debugging.assert_none_equal(b, 0, message="nothing to divide by")]):
            return [a // b], None

    function = open_part(divide, tf.int32, tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing to divide by"):
        function(np.int32(6), np.int32(0))
    assert function(np.int32(6), np.int32(3)) == [2]
