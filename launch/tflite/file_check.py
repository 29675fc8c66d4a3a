"""Whether a file answers as its Keras model does, whatever it was asked before, and what a quantized one has lost.

Imports no TensorFlow.
"""

import numpy as np

from models.model_names import ModelError

NUM_CHECKED = 8  # examples on which a file is first run
# Shares of the largest logit. No CPU comes near them: float32 files agree within 1e-5, float16 files within 0.005.
MOST_BY_ORDER = 1e-3
MOST_BY_FORMAT = {"float32": 0.01, "float16": 0.1, "training": 0.01}
LEAST_AGREEMENT, MOST_LOST, MOST_SIZE = 0.95, 0.04, 2.0
# The same for single examples of the test set: beyond it, the export warns of them.
MOST_OF_AN_EXAMPLE = {"float32": 1e-3, "float16": 0.01}
WAYS_OUT = {
    "float16": "take float32",
    "dynamic": "take float16",
    "int8": "{ranges}, {training}or take dynamic",
    "qat_int8": "train longer after quantization has begun, or take dynamic",
}
TRAIN_QAT, TAKE_QAT = "train with --quantize=qat", "take qat_int8"
CLASSES_ALIKE = "chooses Keras's class for {} of the test set"
ALIKE = {
    "next_token": "chooses Keras's token for {} of the tokens of the test set",
    "multi_label": "gives Keras's answer for {} of the labels that either gives the test set",
}


def check_answers(answers: np.ndarray, expected: np.ndarray, export_format: str) -> None:
    """Refuses a file that keeps something from call to call, and a float file that is another model than Keras's.

    Args:
      answers: outputs, float32 (2, n, *output_shape), asked for in two orders.
      expected: Keras's, float32 (n, *output_shape).
      export_format: of EXPORT_FORMATS, or "training".

    Raises:
      ModelError: see above; one line.
    """
    known = _find_known(expected)
    if known.any():
        first, second = answers[:, known]
        unknown = ~np.isfinite(first.reshape(len(first), -1)).all(axis=1)
        # Where the order makes a difference, a state is what is wrong.
        if unknown.any() and np.array_equal(first, second, equal_nan=True):
            why = "a number of the model, such as an epsilon, is beyond float16" if export_format == "float16" else ""
            way_out = find_way_out(export_format) if export_format in WAYS_OUT else ""
            found = f"its outputs are no numbers for {unknown.sum()} of {len(first)} examples for which Keras's are"
            raise ModelError("; ".join(filter(None, (found, why, way_out))))
    by_order = _measure_difference(answers[0], answers[1], expected)
    # Not by `>`: what is NaN is no small difference.
    if not by_order <= MOST_BY_ORDER:
        raise ModelError("its answers depend on the examples before, or on chance; a layer of the model keeps a state")
    by_format = _measure_difference(answers[0], expected, expected)
    if not by_format <= MOST_BY_FORMAT.get(export_format, np.inf):
        raise ModelError(f"its outputs differ from Keras's by {by_format:.2g} of the largest; it is another model")


def _find_known(expected: np.ndarray) -> np.ndarray:
    """The rows for which Keras has an answer: where it has none, none can be wrong."""
    return np.isfinite(expected.reshape(len(expected), -1)).all(axis=1)


def check_alone(alone: np.ndarray, expected: np.ndarray) -> None:
    """Refuses a model whose answer for an example depends on the others of its batch.

    Args:
      alone: Keras's outputs for single examples, float32 (2, n, *output_shape), computed in two orders.
      expected: those for the same examples among others, float32 (n, *output_shape).

    Raises:
      ModelError: see above; one line.
    """
    if not _measure_difference(alone[0], alone[1], expected) <= MOST_BY_ORDER:
        return  # a state, which `check_answers` finds in the file
    if not _measure_difference(alone[0], expected, expected) <= MOST_BY_FORMAT["float32"]:
        problem = "its answer for an example depends on the others of its batch, and a file takes one at a time"
        raise ModelError(f"{problem}; let no layer compute over the batch axis")


def _measure_difference(found: np.ndarray, other: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference as a share of the largest number expected."""
    known = _find_known(expected)
    if not known.any():
        return 0.0
    largest = max(float(np.abs(expected[known]).max()), np.finfo(np.float32).tiny)
    return float(np.abs(found[known] - other[known]).max()) / largest


def find_way_out(
    export_format: str, training: str = TRAIN_QAT, used: int = 0, asked: int = 0, is_of_one: bool = False
) -> str:
    """What to try instead of a file that has lost too much.

    Args:
      export_format: of WAYS_OUT.
      training: what quantization-aware training can do for it: TRAIN_QAT, TAKE_QAT if it was done, "" for nothing.
      used: how many examples set the ranges of an int8 file; 0 if that is not known.
      asked: how many the flag allows.
      is_of_one: whether a client was named whose they are.
    """
    other = "another --representative_client"
    if is_of_one:
        other = "other clients' examples, without --representative_client"
    more = f"give more --representative_examples or {other}"
    if used and used < asked:  # there are no more
        more = f"give {other} (all {used:,} train examples set the ranges)"
    elif used:
        more = f"give more than --representative_examples={asked} or {other}"
    return WAYS_OUT[export_format].format(ranges=more, training=f"{training}, " if training else "")


def warn_of_difference(export_format: str, outputs: np.ndarray, reference: np.ndarray) -> str:
    """What to say of a float file that is another model than Keras's for some examples; "" of one that is for none.

    `check_answers` sees a few examples, and what differs may be rare: a step that is masked, a category that is looked
    up, a number beyond float16's range.

    Args:
      export_format: of EXPORT_FORMATS.
      outputs: of the file on the test set, float32 (examples, *output_shape).
      reference: Keras's.
    """
    if export_format not in MOST_OF_AN_EXAMPLE or not len(reference):
        return ""
    ours, keras = (each.reshape(len(each), -1) for each in (outputs, reference))
    known = _find_known(keras)
    if not known.any():
        return ""
    largest = max(float(np.abs(keras[known]).max()), np.finfo(np.float32).tiny)
    shares = np.abs(ours[known] - keras[known]).max(axis=1) / largest
    others = shares[~(shares <= MOST_OF_AN_EXAMPLE[export_format])]
    if not len(others):
        return ""
    found = f"answers otherwise than Keras's model for {len(others):,} of {len(reference):,} test examples"
    way_out = WAYS_OUT.get(export_format, "a layer of the model computes otherwise in TFLite for these")
    return f"{found}, by up to {100 * others.max():.2g} % of the largest output; {way_out}"


def warn_of_loss(
    export_format: str,
    agreement: float | None,
    lost: float,
    share: float | None,
    title: str = "accuracy",
    way_out: str = "",
    alike: str = CLASSES_ALIKE,
) -> str:
    """What to say of a file that its format makes much worse or much larger, with the way out; "" of a good one.

    Args:
      export_format: of EXPORT_FORMATS.
      agreement: share of the test set for which it answers as Keras's model, as from `compute_alike`; None of numbers.
      lost: how much worse than Keras's the file's main metric is on the test set, as a share.
      share: its size as a share of the float32 file's; None if there is none.
      title: of the main metric.
      way_out: as from `find_way_out`; "" for that of the format.
      alike: what the agreement is of, with {} for its percentage.
    """
    if export_format not in WAYS_OUT:
        return ""
    texts = []
    if (agreement is not None and agreement < LEAST_AGREEMENT) or lost > MOST_LOST:
        found = f"is {100 * lost:.1f} % worse than Keras's model by {title}"
        if agreement is not None:
            points = f"{-100 * lost:+.1f} points of {title}"
            found = f"{alike.format(f'{100 * agreement:.1f} %')}, {points}"
        texts.append(f"{found}; {way_out or find_way_out(export_format)}")
    if share is not None and share > MOST_SIZE:  # recurrent layers in int8 are written out step by step
        texts.append(f"is {share:,.0f} times the size of float32; take dynamic")
    return "; it ".join(texts)
