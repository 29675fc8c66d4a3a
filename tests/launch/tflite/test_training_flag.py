"""What each way to write --on_device_training means, those of the boolean that it was among them."""

import pytest

from launch.export import define_flags, parse_request


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "none"),
        (["--on_device_training=none"], "none"),
        (["--on_device_training=head"], "head"),
        (["--on_device_training=full"], "full"),
        (["--on_device_training"], "full"),
        (["--on_device_training=true"], "full"),
        (["--on_device_training=1"], "full"),
        (["--noon_device_training"], "none"),
        (["--on_device_training=False"], "none"),
        (["--on_device_training=head", "--on_device_training=full"], "full"),
    ],
)
def test_what_is_asked_for(arguments, part):
    assert parse_request(["--run_dir=runs/x", *arguments]).on_device_training == part


def test_help_shows_the_default():
    assert define_flags()["on_device_training"].default_as_str == "'none'"
