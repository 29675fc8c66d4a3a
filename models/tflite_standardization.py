"""Puts the standardization of features before a TFLite model that was converted without it.

The converter would treat its constants like all others. In float16 a mean of 1e6 becomes infinite; in int8 the input
gets one scale for all features, so that those of scale 1 vanish beside one of 1e6; and the factors are multiplied into
the first layer's weights, which then have unlike scales themselves. So the file gets two operators more, SUB and MUL in
float32, after it was converted; where sequences are filled up, others after these put the padding back as it was.
"""

from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from datasets.example_format import ASIDE, Padding

_OPERATORS = schema.BuiltinOperator
_FLOAT32, _INT32, _BOOL = (np.dtype(name) for name in ("float32", "int32", "bool"))
_TYPES = {_FLOAT32: schema.TensorType.FLOAT32, _INT32: schema.TensorType.INT32, _BOOL: schema.TensorType.BOOL}
_CAST = {"inDataType": schema.TensorType.BOOL, "outDataType": schema.TensorType.INT32}


def put_standardization_first(
    content: bytes, means: np.ndarray, factors: np.ndarray, padding: Padding | None = None
) -> bytes:
    """The file whose input "x" is unscaled: (x - means) * factors, then what `content` does.

    Args:
      content: a model of one function, whose one input is float32.
      means: float32, of a shape that broadcasts with an example.
      factors: alike.
      padding: the steps that are not changed; the input is (1, steps) or (1, steps, channels) then.
    """
    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    subgraph = model.subgraphs[0]
    scaled_input = int(subgraph.inputs[0])
    shape = subgraph.tensors[scaled_input].shape
    raw = _add_tensor(model, "unscaled", shape)
    shifted = _add_tensor(model, "shifted", shape)
    scaled = scaled_input if padding is None else _add_tensor(model, "scaled", shape)
    offsets = _add_constant(model, "means", means)
    scales = _add_constant(model, "factors", factors)
    added = [
        _build_operator(model, _OPERATORS.SUB, (raw, offsets), shifted, "Sub"),
        _build_operator(model, _OPERATORS.MUL, (shifted, scales), scaled, "Mul"),
    ]
    if padding is not None:
        moved = _add_tensor(model, "moved", shape)
        aside = _add_constant(model, "aside", np.float32(padding.value + ASIDE))
        is_equal = _compare(model, scaled, padding, added, is_equal=True)
        is_measured = _find_measured(model, raw, padding, added)
        added += [
            _build_operator(model, _OPERATORS.SELECT_V2, (is_equal, aside, scaled), moved, "SelectV2"),
            _build_operator(model, _OPERATORS.SELECT_V2, (is_measured, moved, raw), scaled_input, "SelectV2"),
        ]
    subgraph.operators = [*added, *subgraph.operators]
    subgraph.inputs = [raw]
    for signature in model.signatureDefs:
        for named in signature.inputs:
            named.tensorIndex = raw
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _compare(model: "schema.ModelT", values: int, padding: Padding, added: list, is_equal: bool) -> int:
    """The tensor that tells in which steps all channels have the padding's value, or in which not all have."""
    shape, name = model.subgraphs[0].tensors[values].shape, f"{'equal' if is_equal else 'other'}_{values}"
    found, value = _add_tensor(model, name, shape, _BOOL), _add_constant(model, "padding", np.float32(padding.value))
    compare, options = (_OPERATORS.EQUAL, "Equal") if is_equal else (_OPERATORS.NOT_EQUAL, "NotEqual")
    added.append(_build_operator(model, compare, (values, value), found, options))
    if len(shape) < 3 or shape[2] == 1:
        return found
    reduced = _add_tensor(model, f"{name}_step", (*shape[:2], 1), _BOOL)
    inputs = (found, _add_constant(model, "channels", np.int32([2])))
    reduce = _OPERATORS.REDUCE_ALL if is_equal else _OPERATORS.REDUCE_ANY
    added.append(_build_operator(model, reduce, inputs, reduced, "Reducer", keepDims=True))
    return reduced


def _find_measured(model: "schema.ModelT", raw: int, padding: Padding, added: list) -> int:
    """The tensor that tells which steps are no padding, as `models.standardization.find_measured` has it."""
    found = _compare(model, raw, padding, added, is_equal=False)
    shape = model.subgraphs[0].tensors[found].shape
    if padding.is_anywhere:
        return found
    number = _add_tensor(model, "number", shape, _INT32)
    added.append(_build_operator(model, _OPERATORS.CAST, (found,), number, "Cast", **_CAST))
    steps = _add_constant(model, "steps", np.int32(1))
    before, after, least = (_add_tensor(model, name, shape, _INT32) for name in ("before", "after", "within"))
    for output, is_backwards in ((before, False), (after, True)):
        added.append(_build_operator(model, _OPERATORS.CUMSUM, (number, steps), output, "Cumsum", reverse=is_backwards))
    added.append(_build_operator(model, _OPERATORS.MINIMUM, (before, after), least, "MaximumMinimum"))
    found, zero = _add_tensor(model, "inside", shape, _BOOL), _add_constant(model, "zero", np.int32(0))
    added.append(_build_operator(model, _OPERATORS.GREATER, (least, zero), found, "Greater"))
    return found


def _add_constant(model: "schema.ModelT", name: str, values: np.ndarray) -> int:
    place = _add_tensor(model, name, values.shape, values.dtype)
    tensor = model.subgraphs[0].tensors[place]
    buffer = model.buffers[tensor.buffer]
    buffer.data = np.frombuffer(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes(), np.uint8)
    return place


def _add_tensor(model: "schema.ModelT", name: str, shape, dtype: np.dtype = _FLOAT32) -> int:
    model.buffers.append(schema.BufferT())
    tensor = schema.TensorT()
    tensor.name, tensor.shape = f"standardization/{name}", np.array(shape, np.int32)
    tensor.type, tensor.buffer = _TYPES[dtype], len(model.buffers) - 1
    tensors = model.subgraphs[0].tensors
    tensors.append(tensor)
    return len(tensors) - 1


def _build_operator(
    model: "schema.ModelT", kind: int, inputs: tuple[int, ...], output: int, options: str, **values: Any
):
    code = schema.OperatorCodeT()
    # What stood for an operator before there were more than 127; later ones have a place holder there.
    code.builtinCode, code.deprecatedBuiltinCode, code.version = kind, min(kind, 127), 1
    model.operatorCodes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs, operator.outputs = list(inputs), [output]
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, f"{options}Options")
    operator.builtinOptions = getattr(schema, f"{options}OptionsT")()
    for name, value in values.items():
        setattr(operator.builtinOptions, name, value)
    return operator
