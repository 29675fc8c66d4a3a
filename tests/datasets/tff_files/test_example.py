"""Records of tf.train.Example against TensorFlow's own writer and reader."""

import numpy as np
import pytest
import tensorflow as tf

from datasets.tff_database import decode_example


def make_example():
    example = tf.train.Example()
    features = example.features.feature
    features["text"].bytes_list.value.extend([b"Hark!", b"\xff\0", b""])
    features["numbers"].int64_list.value.extend([0, -1, 2**63 - 1, -(2**63)])
    features["pixels"].float_list.value.extend([0.1, -1.5, float("inf")])
    features["é/ß"].int64_list.value.append(7)
    features["nothing"].SetInParent()
    features["empty"].float_list.SetInParent()
    return example


def test_every_kind_of_feature_is_read_as_tensorflow_has_it():
    found = decode_example(make_example().SerializeToString())
    assert set(found) == {"text", "numbers", "pixels", "é/ß", "nothing", "empty"}
    assert found["text"] == [b"Hark!", b"\xff\0", b""]
    assert found["numbers"].dtype == np.int64
    assert found["numbers"].tolist() == [0, -1, 2**63 - 1, -(2**63)]
    assert found["pixels"].dtype == np.float32
    np.testing.assert_array_equal(found["pixels"], np.array([0.1, -1.5, np.inf], np.float32))
    assert len(found["nothing"]) == 0
    assert found["empty"].shape == (0,)


def test_only_features_that_are_asked_for_and_there_are_read():
    assert set(decode_example(make_example().SerializeToString(), ["text", "absent"])) == {"text"}


def test_tensorflow_reads_on_after_us():
    record = make_example().SerializeToString()
    decode_example(record)
    parsed = tf.io.parse_single_example(record, {"é/ß": tf.io.FixedLenFeature((), tf.int64)})
    assert parsed["é/ß"].numpy() == 7


@pytest.mark.parametrize("record", [b"\x0a\xff", b"\x00", make_example().SerializeToString()[:-3]])
def test_what_is_no_example_is_refused(record):
    with pytest.raises(ValueError, match=r"no tf\.train\.Example"):
        decode_example(record)
