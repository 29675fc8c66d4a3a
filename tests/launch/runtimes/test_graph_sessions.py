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


def test_inputs_are_given_in_order_and_outputs_are_returned_in_order(open_part):
    function = open_part(lambda a, b: ([a - b, a * b], None), tf.float32, tf.float32)
    assert function(np.float32(5), np.float32(2)) == [3.0, 10.0]
    assert function(np.float32(2), np.float32(5)) == [-3.0, 10.0]


def test_an_output_may_be_an_input_and_be_there_twice(open_part):
    """As where a round hands a client's values on, or gives the same number two names."""
    assert open_part(lambda a: ([a, a], None), tf.int32)(np.int32(7)) == [7, 7]

    def double_twice(a):
        doubled = 2 * a
        return [doubled, doubled], None

    assert open_part(double_twice, tf.int32)(np.int32(7)) == [14, 14]


def test_values_take_the_type_of_the_input_and_text_stays_text(open_part):
    """The path of a client's files is text."""
    function = open_part(lambda path, number: ([path + b".bin", number], None), tf.string, tf.float32)
    path, number = function("client", 3)
    assert (path, number, number.dtype) == (b"client.bin", 3.0, np.float32)


def test_a_part_may_take_and_return_nothing(open_part):
    assert open_part(lambda: ([], None))() == []
    assert open_part(lambda a: ([], None), tf.float32)(np.float32(1)) == []
    assert open_part(lambda: ([tf.constant(4)], None))() == [4]


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
