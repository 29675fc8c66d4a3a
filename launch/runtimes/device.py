"""Which device TensorFlow computes on. Imports TensorFlow, which takes seconds, only when a device is chosen."""


class DeviceError(ValueError):
    """A device that cannot be had; the message is one line that follows the flag."""


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
        raise DeviceError("TensorFlow sees no GPU here; install the extra gpu, or give --device=cpu")
    if device == "cpu" or not gpus:
        _hide(gpus)
        return "cpu"
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_op_determinism()
    return "gpu"


def _hide(gpus: list) -> None:
    import tensorflow as tf

    if not gpus:
        return
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        if tf.config.get_visible_devices("GPU"):
            raise DeviceError("this process has computed on a GPU before; start another") from None
