"""Installs the packages of the suite. Exact versions of everything are in requirements.lock."""

import pathlib

from setuptools import find_packages, setup

# CUDA as TensorFlow's extra and-cuda has it, less TensorRT, which has no wheel for Python 3.11 and is not needed.
GPU_LIBRARIES = [
    "nvidia-cublas-cu11==11.11.3.6",
    "nvidia-cuda-cupti-cu11==11.8.87",
    "nvidia-cuda-nvcc-cu11==11.8.89",
    "nvidia-cuda-runtime-cu11==11.8.89",
    "nvidia-cudnn-cu11==8.7.0.84",
    "nvidia-cufft-cu11==10.9.0.58",
    "nvidia-curand-cu11==10.3.0.86",
    "nvidia-cusolver-cu11==11.4.1.48",
    "nvidia-cusparse-cu11==11.7.5.86",
    "nvidia-nccl-cu11==2.16.5",
    "tensorflow==2.14.*",
]

setup(
    name="federated-suite",
    version="0.1.0",
    description="Four published federated-learning systems on TensorFlow Federated and Keras, down to TFLite on phones",
    long_description=pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.12",
    packages=find_packages(include=["files*", "datasets*", "models*", "tff_algos*", "launch*"]),
    package_data={
        "": ["py.typed"],
        "datasets": ["*.csv"],
        "launch": [
            "*/*.j2",
            "*/*/*.j2",
            "live/web/*",
            "tflite/web/*",
            "pages/comparison/web/*",
            "*/*.css",
            "*/*/*.css",
        ],
    },
    install_requires=[
        "absl-py",
        "aiohttp==3.14.*",  # the connections of launch.serve
        "dm-tree",
        "dp-accounting",
        "flatbuffers",
        "grpcio",
        "jinja2",
        "matplotlib",
        "numpy",
        "packaging",
        "pandas",
        "pillow",
        "plotly",
        "portpicker",
        "protobuf",
        "psutil",
        "pyarrow==21.0.0",  # the last that takes this NumPy
        "scikit-learn",
        "scipy",
        "segno",  # the QR code of a link
        # Both bring the package tensorflow. The first has no CUDA, takes 0.6 GB less, and is for x86-64 alone.
        "tensorflow-cpu==2.14.*; platform_machine == 'x86_64'",
        "tensorflow==2.14.*; platform_machine != 'x86_64'",
        "tensorflow-federated==0.87.0",
        "tensorflow-model-optimization==0.7.5",
        "tqdm",
    ],
    entry_points={"console_scripts": ["federated = launch.federated:run_script"]},
    extras_require={
        "completion": ["argcomplete==3.7.2"],
        "dev": ["hypothesis", "import-linter", "pytest", "pytest-xdist", "ruff"],
        "gpu": GPU_LIBRARIES,
        "ray": ["ray==2.52.1"],
        "tune": ["optuna==5.0.0"],
    },
)
