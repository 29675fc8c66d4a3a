"""Lets TensorFlow's eager tensors leave no memory behind. Imports TensorFlow only when it is asked to.

When `object.__new__` makes an object, Python 3.11 sets memory aside for its attributes. TensorFlow 2.14 has code of its
own for the end of a tensor, which does not free that memory: 48 bytes a tensor, for good. A round of FedAvg on digits
made 190 of them (9 kB), one of SCAFFOLD with five clients 680.
"""

import ctypes
import sys

_PYTHON = (3, 11)
_NEW_SLOT = 65  # Py_tp_new, a number of Python's stable interface
_NEW_OFFSET = 312  # of tp_new in a PyTypeObject of 64 bits, in bytes


def set_nothing_aside() -> None:
    """Has eager tensors made without memory for attributes; one that is given an attribute still gets a dict for it.

    They are made by Python's own `PyType_GenericNew` from now on, which does no more than to allocate an object. Where
    Python is another, or a type does not lie in memory as expected, nothing is done.
    """
    if sys.version_info[:2] != _PYTHON:
        return
    from tensorflow.python.framework.ops import EagerTensor

    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    slot = ctypes.c_void_p.from_address(id(EagerTensor) + _NEW_OFFSET)
    if slot.value == get_slot(EagerTensor, _NEW_SLOT) == get_slot(object, _NEW_SLOT):
        slot.value = ctypes.cast(ctypes.pythonapi.PyType_GenericNew, ctypes.c_void_p).value
