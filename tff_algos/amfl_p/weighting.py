"""The weight of a device in the meta-gradient (section 3.4), in any graph.

w_i = Q_i R_i / sum_j Q_j R_j. A device computes its own numerator, and the server only sums, so it needs nobody's loss
or data. Each factor can be left out, or both replaced by the number of examples.
"""

import tensorflow as tf

from tff_algos.amfl_p.config import USES_QUALITY, USES_RESOURCE


def compute_quality(validation_loss: tf.Tensor) -> tf.Tensor:
    """Q_i = exp(-L_i), L_i the mean cross-entropy of the adapted model on the device's validation split; in (0, 1]."""
    return tf.exp(-validation_loss)


def compute_unnormalized_weight(
    weighting: str, validation_loss: tf.Tensor, resource: tf.Tensor, num_examples: tf.Tensor
) -> tf.Tensor:
    """The numerator of w_i, float32.

    Args:
      weighting: "adaptive" (Q_i R_i), "resource" (R_i), "quality" (Q_i), "examples" (those of its train split) or
        "equal" (1).
      validation_loss: L_i.
      resource: R_i.
      num_examples: float32.
    """
    if weighting == "examples":
        return num_examples
    weight = tf.ones_like(resource)
    if weighting in USES_QUALITY:
        weight *= compute_quality(validation_loss)
    if weighting in USES_RESOURCE:
        weight *= resource
    return weight
