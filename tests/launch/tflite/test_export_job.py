"""What the files of a model say of its examples, where it gets the stored numbers as they are."""

from types import SimpleNamespace

import pytest
from small_formats import change_format, make_format

from datasets.example_format import Preprocessing
from launch.tflite.export_models import _find_page_data
from launch.tflite.export_plan import ExportJob
from models.model_names import ModelError
from models.model_spec import ModelSpec

SCALED = Preprocessing(1 / 16, 0.5)
FORM = make_format((4,), scale=1 / 16, offset=0.5)
WHOLE = ModelSpec("own:whole", None, make_format((4,)), input_dtype="uint8")
OTHER = ModelSpec("perceptron", None, FORM)


@pytest.fixture
def job(make_federation):
    data = change_format(make_federation([3]), preprocessing=SCALED)
    return ExportJob(None, data, SimpleNamespace(web_page=True), None, None, {})


def test_the_preprocessing_is_that_of_the_model(job):
    assert job.suit(WHOLE).data.format.preprocessing == Preprocessing(1.0, 0.0)
    assert job.suit(OTHER) is job and job.data.format.preprocessing == SCALED


def test_a_page_has_one_preprocessing(job):
    exports = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
    assert _find_page_data(job, exports, [WHOLE, WHOLE]).format.preprocessing == Preprocessing()
    with pytest.raises(
        ModelError, match=r"^web_page: models a and b get examples of unlike scale; choose one with --mo"
    ):
        _find_page_data(job, exports, [WHOLE, OTHER])
