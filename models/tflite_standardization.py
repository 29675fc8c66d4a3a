"""Puts the standardization of features before a TFLite model that was converted without it.

The converter would treat its constants like all others. In float16 a mean of 1e6 becomes infinite; in int8 the input
gets one scale for all features, so that those of scale 1 vanish beside one of 1e6; and the factors are multiplied into
the first layer's weights, which then have unlike scales themselves. So the file gets two operators more, SUB and MUL in
float32, after it was converted.
"""

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils


def put_standardization_first(content: bytes, means: np.ndarray, factors: np.ndarray) -> bytes:
    """The file whose input "x" is unscaled: (x - means) * factors, then what `content` does.

    Args:
      content: a model of one function, whose one input is float32.
      means: float32, of a shape that broadcasts with an example.
      factors: alike.
    """
    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    subgraph = model.subgraphs[0]
    scaled_input = int(subgraph.inputs[0])
    shape = subgraph.tensors[scaled_input].shape
    raw = _add_tensor(model, "unscaled", shape)
    shifted = _add_tensor(model, "shifted", shape)
    offsets, scales = (
        _add_tensor(model, name, values.shape, values) for name, values in (("means", means), ("factors", factors))
    )
    operators = schema.BuiltinOperator
    subgraph.operators = [
        _build_operator(model, operators.SUB, (raw, offsets), shifted, "Sub"),
        _build_operator(model, operators.MUL, (shifted, scales), scaled_input, "Mul"),
        *subgraph.operators,
    ]
    subgraph.inputs = [raw]
    for signature in model.signatureDefs:
        for named in signature.inputs:
            named.tensorIndex = raw
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _add_tensor(model: "schema.ModelT", name: str, shape, values: np.ndarray | None = None) -> int:
    buffer = schema.BufferT()
    if values is not None:
        buffer.data = np.frombuffer(np.ascontiguousarray(values, "<f4").tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor = schema.TensorT()
    tensor.name, tensor.shape = f"standardization/{name}", np.array(shape, np.int32)
    tensor.type, tensor.buffer = schema.TensorType.FLOAT32, len(model.buffers) - 1
    tensors = model.subgraphs[0].tensors
    tensors.append(tensor)
    return len(tensors) - 1


def _build_operator(model: "schema.ModelT", kind: int, inputs: tuple[int, ...], output: int, options: str):
    code = schema.OperatorCodeT()
    code.builtinCode, code.deprecatedBuiltinCode, code.version = kind, kind, 1
    model.operatorCodes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs, operator.outputs = list(inputs), [output]
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, f"{options}Options")
    operator.builtinOptions = getattr(schema, f"{options}OptionsT")()
    return operator
