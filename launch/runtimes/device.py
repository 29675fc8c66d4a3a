"""Which device TensorFlow computes on. Imports TensorFlow, which takes seconds, only when a device is chosen."""

import ctypes
import glob
import os
import sys
import sysconfig

# What leads to a GPU of NVIDIA, under Windows's WSL, and of AMD; then where TensorFlow's plug-ins for others lie.
_GPU_FILES = ("/dev/nvidia*", "/dev/dxg", "/dev/kfd", f"{sysconfig.get_path('purelib')}/tensorflow-plugins/*")
NO_GPU = "TensorFlow sees no GPU here; install the extra gpu, or give --device=cpu"


class DeviceError(ValueError):
    """A device that cannot be had; the message is one line that follows the flag."""


def give_sessions_own_threads() -> None:
    """Lets each session have as many threads an operation as its config says; before TensorFlow's first device.

    By default all sessions of a process share the threads of whatever came first, such as an evaluation on all cores.
    Sessions that several threads call are then slower, and a result depends on the number of cores.
    """
    os.environ["TF_OVERRIDE_GLOBAL_THREADPOOL"] = "1"


def may_have_gpu() -> bool:
    """Whether TensorFlow may see a GPU. False is certain, and known at once; True is for TensorFlow to look into."""
    if sys.platform != "linux" or any(map(glob.glob, _GPU_FILES)):
        return True
    try:
        ctypes.CDLL("libcuda.so.1")  # the driver, without which TensorFlow sees no GPU of NVIDIA's
    except OSError:
        return False
    return True


def use_device(device: str) -> str:
    """Lets TensorFlow compute on the device alone; call it before TensorFlow has computed anything.

    On a GPU it asks for operations that repeat bit for bit, and for memory as it is needed.

    Args:
      device: "cpu", "gpu", or "auto": a GPU if TensorFlow sees one.

    Returns:
      "cpu" or "gpu".

    Raises:
      DeviceError: no GPU is seen, or TensorFlow computes on one already that should be left alone.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if device == "gpu" and not gpus:
        raise DeviceError(NO_GPU)
    if not gpus:
        return "cpu"
    if device == "cpu":
        try:
            tf.config.set_visible_devices([], "GPU")
        except RuntimeError:
            if tf.config.get_visible_devices("GPU"):
                raise DeviceError("this process has computed on a GPU before; start another") from None
        return "cpu"
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_op_determinism()
    return "gpu"
