"""Prints what W&B wrote offline into a run's folder, as JSON. It runs in `.venv-track`.

The file is in LevelDB's log format: 7 bytes of a header, then blocks of 32 KiB, in which each piece of a record follows
its checksum, its length, and whether it is whole (1), the first (2), a middle (3) or the last one (4).
"""

import json
import pathlib
import struct
import sys

from wandb.proto import wandb_internal_pb2

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7


def read_records(content):
    position, record = FILE_HEADER, b""
    while position + HEADER <= len(content):
        if BLOCK - position % BLOCK < HEADER:
            position += BLOCK - position % BLOCK
            continue
        _, size, kind = struct.unpack_from("<IHB", content, position)
        record += content[position + HEADER : position + HEADER + size]
        position += HEADER + size
        if kind in (1, 4):
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def read_items(items):
    """Keys and values; of a nested key, whose value is a picture or a table, its kind alone."""
    return {
        item.key or "/".join(item.nested_key): json.loads(item.value_json)
        for item in items
        if not item.nested_key or len(item.nested_key) == 1 or item.nested_key[-1] == "_type"
    }


def main():
    (path,) = pathlib.Path(sys.argv[1]).glob("*.wandb")
    found = {"history": {}, "config": {}, "summary": {}, "artifacts": {}, "exit_code": None}
    for record in read_records(path.read_bytes()):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
            found["run"] = {"id": run.run_id, "name": run.display_name, "group": run.run_group, "project": run.project}
            found["run"]["tags"] = list(run.tags)
        elif kind == "config":
            found["config"] |= read_items(record.config.update)
        elif kind == "history":
            assert record.history.step.num not in found["history"], "a round twice"
            found["history"][record.history.step.num] = read_items(record.history.item)
        elif kind == "summary":
            found["summary"] |= read_items(record.summary.update)
        elif kind == "artifact":
            found["artifacts"][record.artifact.type] = sorted(each.path for each in record.artifact.manifest.contents)
        elif kind == "exit":
            found["exit_code"] = record.exit.exit_code
    print(json.dumps(found))


if __name__ == "__main__":
    main()
