"""Takes a TFF computation apart into graphs that need no TFF to run. Imports TFF: import this module lazily.

TFF knows a form for engines of other kinds, `tff.backends.mapreduce.MapReduceForm`. It wants a computation that maps
(state at the server, values at the clients) to (a state of the same type, a result at the server). `_shape_as_round`
brings any computation of one aggregation, or of none, into that shape.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from launch.runtimes.graph_sessions import GraphPart, RoundGraphs

PARTS = ("prepare", "work", "zero", "accumulate", "merge", "report", "update")

# What TFF has TensorFlow do by default when it makes such a form.
_SIMPLIFIED = (
    "memory_optimization",
    "constant_folding",
    "arithmetic_optimization",
    "loop_optimization",
    "function_optimization",
)
_JOINT_BATCH_NORM = b"_FusedBatchNormEx"


def is_graph(comp: Any) -> bool:
    """Whether a computation is a plain TensorFlow graph, without server or clients."""
    return tff.framework.serialize_computation(comp).WhichOneof("computation") == "tensorflow"


def export_graph(comp: Any) -> GraphPart:
    """The graph of a TensorFlow computation."""
    part = tff.framework.serialize_computation(comp).tensorflow
    graph_def = tf.compat.v1.GraphDef()
    part.graph_def.Unpack(graph_def)
    inputs = tuple(_name_tensors(part.parameter)) if part.HasField("parameter") else ()
    return GraphPart(graph_def.SerializeToString(), inputs, tuple(_name_tensors(part.result)), part.initialize_op)


def _name_tensors(binding: Any) -> Iterator[str]:
    kind = binding.WhichOneof("binding")
    if kind == "struct":
        for element in binding.struct.element:
            yield from _name_tensors(element)
    elif kind == "tensor":
        yield binding.tensor.tensor_name
    else:
        raise ValueError(f"a computation with a {kind}: only tensors and structures of them can be run here")


def export_round(comp: Any) -> RoundGraphs:
    """The parts of a federated computation.

    Raises:
      ValueError: it both aggregates and returns values of clients, aggregates what depends on another aggregate, or has
        a secure sum, or an argument that is placed neither at the server nor at the clients.
    """
    make, shaped = tff.backends.mapreduce.get_map_reduce_form_for_computation, _shape_as_round(comp)
    form = make(shaped)
    parts = {name: export_graph(getattr(form, name)) for name in PARTS}
    if not all(map(_can_be_loaded, parts.values())):
        # Simplified as TFF has it done by default, but without the remapper.
        config = tf.compat.v1.ConfigProto()
        options = config.graph_options.rewrite_options
        for name in _SIMPLIFIED:
            setattr(options, name, options.AGGRESSIVE)
        options.remapping = options.OFF
        form = make(shaped, config)
        parts = {name: export_graph(getattr(form, name)) for name in PARTS}
    if form.securely_aggregates_tensors:
        raise ValueError("a computation with a secure sum cannot be run here")
    # The state, which is only passed through, is not asked for.
    update = parts["update"]
    num_passed = len(parts["prepare"].inputs)
    parts["update"] = GraphPart(update.graph_def, update.inputs, update.outputs[num_passed:], update.initialize)
    return RoundGraphs(**parts, returns_client_values=returns_client_values(comp.type_signature.result))


def _can_be_loaded(part: GraphPart) -> bool:
    """Whether TensorFlow takes the graph as its own simplification has left it.

    Its remapper joins BatchNorm and the ReLU behind it also where the joint operation then refuses the number of
    channels, which must be a multiple of 4.
    """
    if _JOINT_BATCH_NORM not in part.graph_def:
        return True
    try:
        with tf.Graph().as_default():
            tf.compat.v1.import_graph_def(tf.compat.v1.GraphDef.FromString(part.graph_def), name="")
    except ValueError:
        return False
    return True


def list_placed(type_spec: tff.Type | None) -> list[tff.FederatedType]:
    """The types of the placed values in a type, in order.

    Raises:
      ValueError: something in it is placed nowhere.
    """
    if type_spec is None:
        return []
    if isinstance(type_spec, tff.FederatedType):
        return [type_spec]
    if isinstance(type_spec, tff.StructType):
        return [placed for _, part in tff.structure.iter_elements(type_spec) for placed in list_placed(part)]
    raise ValueError(f"{type_spec} is placed neither at the server nor at the clients")


def is_at_clients(placed: tff.FederatedType) -> bool:
    """Whether there is a value for each client."""
    return placed.placement is tff.CLIENTS


def returns_client_values(result: tff.Type) -> bool:
    """Whether a computation's result is values of clients. Raises ValueError if it has values of the server, too."""
    at_clients = {is_at_clients(placed) for placed in list_placed(result)}
    if len(at_clients) > 1:
        raise ValueError("a computation aggregates and returns values of clients as well: make two of it")
    return at_clients == {True}


def type_of_values(types: Sequence[tff.FederatedType]) -> tff.Type:
    """The type of what a place has: its values in order; of a place without any, an int32 that nobody reads."""
    return tff.to_type([placed.member for placed in types] or [np.int32])


def _shape_as_round(comp: Any) -> Any:
    """`comp` as ((the server's values), (a client's values)) -> (the server's values, result), all placed.

    Values of clients are "aggregated" by an aggregation that throws them away, so that the form's `work` returns them.
    """
    parameter, result = comp.type_signature.parameter, comp.type_signature.result
    placed = list_placed(parameter)
    server_type = type_of_values([each for each in placed if not is_at_clients(each)])
    client_type = type_of_values([each for each in placed if is_at_clients(each)])
    discards = returns_client_values(result)

    @tff.federated_computation(tff.FederatedType(server_type, tff.SERVER), tff.FederatedType(client_type, tff.CLIENTS))
    def as_round(server, clients):
        counts = {False: 0, True: 0}

        def fill(type_spec):
            if isinstance(type_spec, tff.StructType):
                return [fill(part) for _, part in tff.structure.iter_elements(type_spec)]
            at_clients = is_at_clients(type_spec)
            counts[at_clients] += 1
            return (clients if at_clients else server)[counts[at_clients] - 1]

        filled = [] if parameter is None else fill(parameter)
        outcome = comp(*filled) if isinstance(filled, list) else comp(filled)
        return server, _discard(outcome) if discards else outcome

    return as_round


def _discard(values: Any) -> Any:
    """An aggregate of values of clients that is 0 for any."""
    if not isinstance(values.type_signature, tff.FederatedType):
        values = tff.federated_zip(values)
    compute = tff.tensorflow.computation
    two_values = (np.int32, values.type_signature.member)
    return tff.federated_aggregate(
        values,
        compute(lambda: tf.constant(0))(),
        compute(lambda total, value: total, two_values),
        compute(lambda first, second: first, (np.int32, np.int32)),
        compute(lambda total: total, np.int32),
    )
