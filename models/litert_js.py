"""LiteRT.js, by which browsers run TFLite files: where `make web` puts it, and how pages take it in.

Of its builds those without threads are used: the default one, and `compat` for browsers without relaxed SIMD.
"""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
RUNTIME = ROOT / ".web" / "node_modules" / "@litertjs" / "core"
PACKAGES = ROOT / "launch" / "tflite" / "web" / "package.json"
LIBRARY = "dist/index.js"
BUILDS = {"default": "litert_wasm_internal", "compat": "litert_wasm_compat_internal"}
# What pages use of the library, which does not export `setGlobalLiteRt`.
USED_NAMES = ("Environment", "LiteRt", "Tensor", "loadAndCompile", "setGlobalLiteRt", "supportsFeature")


def read_wanted_version() -> str:
    """The version that the lock has."""
    return json.loads(PACKAGES.read_text(encoding="utf-8"))["dependencies"]["@litertjs/core"]


def read_version(folder: pathlib.Path) -> str:
    """The version of the package in a folder; "" if there is none."""
    try:
        return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def is_there(folder: pathlib.Path) -> bool:
    """Whether a folder has all that pages need, in the version of the lock."""
    names = [LIBRARY, *(f"wasm/{stem}{suffix}" for stem in BUILDS.values() for suffix in (".js", ".wasm"))]
    return read_version(folder) == read_wanted_version() and all((folder / name).is_file() for name in names)


def strip_library(module: str) -> str:
    """The library without its imports, of which pages use nothing, and without its exports."""
    body = re.sub(r"^import .*$\n", "", module, flags=re.MULTILINE)
    body = re.sub(r"^export \{.*?\};$\n?", "", body, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^//# sourceMappingURL=.*$\n?", "", body, flags=re.MULTILINE)  # browsers would ask for that file
