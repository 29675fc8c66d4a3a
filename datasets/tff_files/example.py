"""Reads tf.train.Example, the record of TensorFlow's files, without TensorFlow.

The message is described here at run time, in a pool of its own, so that it never meets TensorFlow's own description:
features by name, each a list of bytes, of float32 or of int64.
"""

import functools
from collections.abc import Collection

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

BYTES, FLOATS, INTS = "bytes_list", "float_list", "int64_list"
Features = dict[str, "list[bytes] | np.ndarray"]
_DTYPES = {FLOATS: np.float32, INTS: np.int64}
_KINDS = ((BYTES, "TYPE_BYTES"), (FLOATS, "TYPE_FLOAT"), (INTS, "TYPE_INT64"))


@functools.cache
def _make_message_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="read", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto

    def add(parent, name: str, *fields: tuple) -> "descriptor_pb2.DescriptorProto":
        message = parent.add(name=name)
        for number, (field_name, kind, label) in enumerate(fields, start=1):
            given = {"type_name": kind} if kind.startswith(".") else {"type": getattr(field, kind)}
            if kind.startswith("."):
                given["type"] = field.TYPE_MESSAGE
            message.field.add(name=field_name, number=number, label=getattr(field, f"LABEL_{label}"), **given)
        return message

    for kind, value_type in _KINDS:
        add(file.message_type, kind, ("value", value_type, "REPEATED"))
    feature = add(file.message_type, "Feature", *((kind, f".read.{kind}", "OPTIONAL") for kind, _ in _KINDS))
    feature.oneof_decl.add(name="kind")
    for each in feature.field:
        each.oneof_index = 0
    features = add(file.message_type, "Features", ("feature", ".read.Features.FeatureEntry", "REPEATED"))
    entry = ("key", "TYPE_STRING", "OPTIONAL"), ("value", ".read.Feature", "OPTIONAL")
    add(features.nested_type, "FeatureEntry", *entry).options.map_entry = True
    add(file.message_type, "Example", ("features", ".read.Features", "OPTIONAL"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("read.Example"))


def decode_example(record: bytes, names: Collection[str] | None = None) -> Features:
    """The features of a serialized tf.train.Example.

    Args:
      record: its bytes.
      names: of the features that are wanted, None for all; one that the example lacks is not in the answer.

    Returns:
      Name -> a list of bytes, or an array, float32 or int64, of shape (values,). One of no kind has no values.

    Raises:
      ValueError: these bytes are no such message.
    """
    message = _make_message_class()()
    try:
        message.ParseFromString(record)
    except (DecodeError, TypeError) as error:
        raise ValueError(f"no tf.train.Example ({error})") from None
    found = message.features.feature
    # A look-up in a map of messages makes what it lacks, so ask first.
    wanted = found if names is None else [name for name in names if name in found]
    features: Features = {}
    for name in wanted:
        kind = found[name].WhichOneof("kind")
        values = getattr(found[name], kind).value if kind else []
        features[name] = np.fromiter(values, _DTYPES[kind], len(values)) if kind in _DTYPES else list(values)
    return features
