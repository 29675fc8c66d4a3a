"""A stand-in for LiteRT.js as `make web` puts it."""

from launch.runs.tables import write_json
from models.litert_js import BUILDS, read_wanted_version

LIBRARY = """import { createWasmLib } from "@litertjs/wasm-utils";
function setGlobalLiteRt() {}
var mark = "</script><!--";
export {
  LiteRt,
  Tensor
};
//# sourceMappingURL=index.js.map
"""


def make_litert(folder):
    """Writes the files of the package into a folder, in the version of the lock."""
    (folder / "wasm").mkdir(parents=True)
    (folder / "dist").mkdir()
    (folder / "dist" / "index.js").write_text(LIBRARY)
    for stem in BUILDS.values():
        (folder / "wasm" / f"{stem}.js").write_text(f"var ModuleFactory = '{stem}';")
        (folder / "wasm" / f"{stem}.wasm").write_bytes(f"binary of {stem}".encode())
    write_json(folder / "package.json", {"version": read_wanted_version()})
    return folder
