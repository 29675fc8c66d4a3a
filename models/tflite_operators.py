"""Which operators a TFLite file needs, read from the file itself and not from how an interpreter would run it."""

import collections

from tensorflow.lite.python import schema_py_generated as schema

_SELECT = "Flex"  # begins the names of TensorFlow's operators, which the select operators add to TFLite's
_NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if name.isupper()}


def list_operators(content: bytes) -> dict[str, int]:
    """How often each operator occurs in the functions of a file; one that TFLite lacks has the name of its own."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    names = [_name(code) for code in model.operatorCodes]
    used = [names[operator.opcodeIndex] for subgraph in model.subgraphs for operator in subgraph.operators]
    return dict(sorted(collections.Counter(used).items()))


def _name(code: "schema.OperatorCodeT") -> str:
    if code.customCode:
        return code.customCode.decode()
    # Files of older writers have the number in a field of one byte, which newer ones fill, too.
    return _NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]


def find_select_operators(content: bytes) -> tuple[str, ...]:
    """The operators of TensorFlow that a file needs, by TensorFlow's names; none if TFLite's own are enough."""
    return tuple(name.removeprefix(_SELECT) for name in list_operators(content) if name.startswith(_SELECT))
