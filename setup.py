"""Installs the four packages of the suite. Exact versions of everything are in requirements.lock."""

import pathlib

from setuptools import find_packages, setup

setup(
    name="federated-suite",
    version="0.1.0",
    description="Four published federated-learning systems on TensorFlow Federated and Keras, down to TFLite on phones",
    long_description=pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.12",
    packages=find_packages(include=["datasets*", "models*", "tff_algos*", "launch*"]),
    package_data={"launch": ["experiments/*.flags", "reports/*/*.csv"]},
    install_requires=[
        "absl-py",
        "dp-accounting",
        "grpcio",
        "matplotlib",
        "numpy",
        "packaging",
        "portpicker",
        "psutil",
        "scikit-learn",
        "scipy",
        "tensorflow==2.14.*",
        "tensorflow-federated==0.87.0",
        "tensorflow-model-optimization==0.7.5",
        "tqdm",
    ],
    extras_require={"dev": ["hypothesis", "pytest", "ruff"], "ray": ["ray==2.52.1"]},
)
