"""Formats of made-up examples, and models for these, in few words."""

import dataclasses

from datasets.example_format import ExampleFormat, Preprocessing

AS_THEY_ARE = Preprocessing()


def make_format(shape, dtype="float32", num_classes=3, scale=1.0, offset=0.0, **fields):
    """A format whose classes are called "0", "1" and so on; a task of one output has two."""
    names = tuple(map(str, range(max(2, num_classes))))
    return ExampleFormat(tuple(shape), dtype, names, Preprocessing(scale, offset), **fields)


def format_of(x, class_names, preprocessing=AS_THEY_ARE, **fields):
    """The format that such examples, (examples, ...), have."""
    return ExampleFormat(x.shape[1:], x.dtype.name, tuple(class_names), preprocessing, **fields)


def change_format(data, **changes):
    """The same arrays, federation or source with another format."""
    return dataclasses.replace(data, format=dataclasses.replace(data.format, **changes))


def make_spec(model, input_shape, input_dtype="float32", num_classes=3, task=None, **values):
    """`build_model_spec` for examples of such a shape; `values` are of its options, and further ones of the format."""
    from models.catalog import ModelOptions, build_model_spec  # TensorFlow takes seconds

    known = {field.name for field in dataclasses.fields(ModelOptions)} & values.keys()
    options = ModelOptions(**{name: values.pop(name) for name in known})
    return build_model_spec(model, make_format(input_shape, input_dtype, num_classes, **values), options, task)
