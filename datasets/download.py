"""Where the files of a data set may lie, and how one is fetched: resumable, digest-checked, put in place atomically.

The bytes go to `<file>.part`, which a later attempt continues with a Range request. It gets its final name only when
its digest is right, so a file under its final name is complete. Where no digest is known, it has its length.
"""

import contextlib
import dataclasses
import fcntl
import http.client
import os
import shutil
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.errors import DatasetError
from files.cache_folder import default_cache_dir
from files.digests import compute_sum
from files.reading import describe


def search_dirs(data_dir: str | None, subfolder: str) -> list[str]:
    """Where a data set's files may lie: `subfolder` of the data folder, the folder itself, then the same in the cache.

    The first is also where a download goes. An empty `data_dir` is none: FL_DATA_DIR= set to nothing must not mean the
    current folder, as an empty path would.
    """
    cache = default_cache_dir("data")
    roots = [os.path.abspath(os.path.expanduser(data_dir)), cache] if data_dir else [cache]
    return [path for root in roots for path in (os.path.join(root, subfolder), root)]


_NUM_ATTEMPTS = 3
_CHUNK_BYTES = 1 << 20


class DownloadError(DatasetError):
    """A file that could not be fetched: one line that names the file and the folder to put it in by hand."""


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """A file to fetch.

    Attributes:
      name: its name on disk.
      addresses: where it can be had, tried in this order.
      sha256: hex digest of the right content; "" where nobody has published one. Then only the length is checked, and
        that is said.
    """

    name: str
    addresses: tuple[str, ...]
    sha256: str = ""


class KnownFiles(NamedTuple):
    """Where the files of a data set of the catalog lie, or come from.

    Attributes:
      name: of the data set, and of the folder that is its own.
      look: from a folder to what of the data set lies in it, a path, or paths where it is several files; else nothing.
      remotes: what is downloaded if they lie nowhere; () if they cannot be had so. The last is what `look` would find.
      wanted: what could be put there by hand, in words; "" is the names of what is downloaded.
    """

    name: str
    look: Callable[[str], str | list[str] | None]
    remotes: tuple[RemoteFile, ...] = ()
    wanted: str = ""

    def find(self, data_dir: str | None) -> Any:
        """What the first folder that has the data set gives; None if none has it."""
        return next(filter(None, map(self.look, search_dirs(data_dir, self.name))), None)

    def find_or_fetch(self, options: DatasetOptions) -> Any:
        """Path of the data set, or the paths of its files; downloaded if they lie nowhere and the options allow it.

        Raises:
          DatasetError: they lie nowhere, and none can be downloaded, or the network may not be used.
          DownloadError: see `fetch_file`.
        """
        found = self.find(options.data_dir)
        if found is not None:
            return found
        if not (self.remotes and options.download):
            raise DatasetError(f"{self.name}: {self._explain(options.data_dir, 'put')}")
        fetched = [fetch_file(remote, search_dirs(options.data_dir, self.name)[0]) for remote in self.remotes]
        # Of several files all are read; else the last one, beside which the others are looked for.
        return fetched if isinstance(self.look(""), list) else fetched[-1]

    def locate(self, data_dir: str | None) -> DatasetLocation:
        """Where they lie, or what to do, for the doctor."""
        found = self.find(data_dir)
        if isinstance(found, list):
            found = f"{os.path.dirname(found[0])} ({', '.join(map(os.path.basename, found))})"
        fix = "downloaded by the first run, or put" if self.remotes else "put"
        return DatasetLocation(found is not None, found or self._explain(data_dir, fix))

    def _explain(self, data_dir: str | None, fix: str) -> str:
        wanted = self.wanted or ", ".join(remote.name for remote in self.remotes)
        return f"not found; {fix} {wanted} into {search_dirs(data_dir, self.name)[0]}"


def look_for(*names: str) -> Callable[[str], str | None]:
    """Finds the first of these files, or folders, in a folder; for `KnownFiles.look`."""
    return lambda folder: next(filter(os.path.exists, (os.path.join(folder, name) for name in names)), None)


def fetch_file(remote: RemoteFile, folder: str, timeout_s: float = 30.0) -> str:
    """Returns the path of `remote` in `folder`, downloading it unless it lies there already.

    A connection that breaks is resumed; a server that cannot resume is read from the start; a part with a wrong digest
    is thrown away and fetched again. Each address gets three attempts. If two processes ask for the same file, one
    waits for the other.

    Args:
      remote: what to fetch.
      folder: where to put it; made if it does not exist.
      timeout_s: how long a connection may stay silent.

    Raises:
      DownloadError: no network, a wrong digest from every address, or a folder that cannot be written.
    """
    path = os.path.join(folder, remote.name)
    part_path = path + ".part"
    if os.path.isfile(path):
        return path
    # A link that leads nowhere would be taken for a missing file.
    if os.path.lexists(path):
        raise DownloadError(f"{path}: no file, expected one to download; remove what lies there")
    try:
        os.makedirs(folder, exist_ok=True)
        # One open file for lock and bytes; after the wait for the lock another process may have finished the file.
        # It follows no link and waits at no pipe.
        follow_none = lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        with open(part_path, "ab", opener=follow_none) as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            if not os.path.exists(path):
                unchecked = "" if remote.sha256 else " (no digest of it is published: only its length is checked)"
                print(f"downloading {remote.name} to {folder}{unchecked}", file=sys.stderr, flush=True)
                problems = []
                for address in remote.addresses:
                    problem = _fetch_from_address(address, remote.sha256, part, timeout_s)
                    if problem is None:
                        break
                    problems.append(problem)
                else:
                    raise DownloadError(
                        f"cannot download {remote.name} ({'; '.join(dict.fromkeys(problems))}): get it from "
                        f"{remote.addresses[0]} and put it into {folder}"
                    )
                os.replace(part_path, path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(part_path)
    except OSError as error:
        raise DownloadError(f"cannot write {path}: {describe(error)}; choose another --data_dir") from None
    return path


def _fetch_from_address(address: str, sha256: str, part, timeout_s: float) -> str | None:
    """Completes `part` from one address. Returns None on success, else what went wrong last."""
    problem = None
    for _ in range(_NUM_ATTEMPTS):
        try:
            _append_missing_bytes(address, part, timeout_s)
        except urllib.error.HTTPError as error:
            # 416: the part has all bytes already, or those of another file. The digest tells.
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                return f"the server answered {error.code} {error.reason}"
        except urllib.error.URLError as error:
            return f"no connection: {describe(error.reason)}"
        except (http.client.HTTPException, ssl.SSLError, TimeoutError, ConnectionError) as error:
            problem = f"the connection broke: {str(error) or type(error).__name__}"
            continue
        if not sha256 or compute_sum(part.name) == sha256:
            return None
        part.truncate(0)
        problem = "wrong digest: the server gave another or a damaged file"
    return problem


def _append_missing_bytes(address: str, part, timeout_s: float) -> None:
    """One request: appends what `part` lacks, or replaces its content if the server sends the file from its start."""
    num_present_bytes = part.seek(0, os.SEEK_END)
    # Unpacked, since a part is gone on with by the number of its bytes.
    headers = {"User-Agent": "federated-suite", "Accept-Encoding": "identity"}
    if num_present_bytes:
        headers["Range"] = f"bytes={num_present_bytes}-"
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=timeout_s) as response:
        if not response.headers.get("Content-Range", "").startswith(f"bytes {num_present_bytes}-"):
            part.truncate(0)
            num_present_bytes = 0
        shutil.copyfileobj(response, part, _CHUNK_BYTES)
        expected_bytes = response.headers.get("Content-Length")
    num_new_bytes = part.seek(0, os.SEEK_END) - num_present_bytes
    if expected_bytes is not None and num_new_bytes != int(expected_bytes):
        raise ConnectionError(f"{num_new_bytes} of {expected_bytes} bytes came")
