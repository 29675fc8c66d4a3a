"""Whether a run could be made with quantization-aware training, so that it is advised only where it can be."""

from launch.settings.run_config import RunConfig, find_algorithm
from models.model_names import UNQUANTIZED, ModelError, is_own_model
from models.model_spec import ModelSpec


def can_train_quantized(config: RunConfig, spec: ModelSpec) -> bool:
    """Whether a run with these settings and this float model would begin with --quantize=qat, too."""
    privacy = getattr(config.algorithm, "privacy", None)
    is_private = privacy is not None and privacy.is_active
    if find_algorithm(config.algo).takes_floats_alone or config.precision != "float32" or is_private:
        return False
    if not is_own_model(spec.name):
        return spec.name not in UNQUANTIZED
    from models.quantization import build_quantized_spec  # TF-MOT takes seconds to import

    try:
        build_quantized_spec(spec)
    except ModelError:
        return False
    return True
