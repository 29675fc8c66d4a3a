"""What a model may be called."""

import pytest

from models.model_names import MODEL_NAMES, ModelError, check_model_name


@pytest.mark.parametrize("model", ["auto", *MODEL_NAMES, "my_models:build", "a.b:c"])
def test_good_names(model):
    check_model_name(model)


@pytest.mark.parametrize("model", ["", "resnet", ":build", "module:", "a:b:c", "a/b.py:f", "a..b:f"])
def test_bad_names_in_one_line(model):
    with pytest.raises(ModelError, match=r"^model=.*expected .*module:function") as error:
        check_model_name(model)
    assert "\n" not in str(error.value)
