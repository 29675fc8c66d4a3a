"""Random changes to stored images while a client trains, in the graph and as a function of a seed, image by image."""

import tensorflow as tf

MARGIN = 4  # pixels on each side


def crop_and_flip(x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Each image shifted by up to `MARGIN` pixels in both directions, zeros coming in, and mirrored half of the time.

    It is the usual crop of a padded image and flip (He et al., Deep Residual Learning, 2016, section 4.2). The shifts
    -4..4 are equally likely; images of a batch are changed independently of each other.

    Args:
      x: images as stored, shape (batch, height, width, channels), any dtype.
      seed: int32, shape (2,); the same seed gives the same images.

    Returns:
      The same shape and dtype.
    """
    num_images, height, width = tf.shape(x)[0], tf.shape(x)[1], tf.shape(x)[2]
    top_seed, left_seed, flip_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 3))

    def draw(number, below):
        return tf.random.stateless_uniform((num_images, 1), number, 0, below, tf.int32)

    rows = draw(top_seed, 2 * MARGIN + 1) + tf.range(height)
    columns = draw(left_seed, 2 * MARGIN + 1) + tf.range(width)
    columns = tf.where(tf.equal(draw(flip_seed, 2), 1), tf.reverse(columns, [1]), columns)
    padded = tf.pad(x, [[0, 0], [MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]])
    changed = tf.gather(tf.gather(padded, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    return tf.ensure_shape(changed, x.shape)
