"""The links of a live run: whoever has one may join, so they are shown, and kept in a file of this user alone.

`links.txt` of the run folder has all that are to be handed out, for as long as the run lasts; a server that is started
again reads them there. Nothing else has them: of a token, `roster.json` has the SHA-256. Imports no TensorFlow.
"""

import pathlib
import re
import secrets

from files.reading import explain_errors, read_regular
from files.writing import write_whole
from launch.console.progress import say
from launch.live.roster import TOKEN_BYTES, Roster
from launch.runs.errors import RunFolderError

MOST_SHOWN = 3  # links in the terminal
MOST_BYTES = 2**22  # of the file
OF_ORGANISER, OF_ALL = "organiser", "everybody"
_OF_PAGE = "/organiser#"
_LINE = re.compile(r"([a-z]+(?: \d+)?) +(\S+#[\w-]{1,200})", re.ASCII)


class Links:
    """See the module.

    Args:
      roster: of the run, which knows the tokens of the links.
      path: of `links.txt`, from which those of a run that goes on are read. What cannot be read there is drawn anew.

    Attributes:
      watch_token: of the organiser's page.
      has_moved: whether the address, once open, is another one than that of the links that were read.
    """

    def __init__(self, roster: Roster, path: pathlib.Path):
        self._roster, self._path, self._base = roster, path, ""
        known = read_links(path) if roster.is_fixed else {}  # of a run that this one replaces there may be some
        organiser = known.pop(OF_ORGANISER, "")
        self.watch_token = _get_token(organiser) or secrets.token_urlsafe(TOKEN_BYTES)
        self._former, self.has_moved = organiser.partition(_OF_PAGE)[0], False
        self._tokens = roster.draw_tokens(map(_get_token, known.values()))

    def open(self, base: str) -> None:
        """Writes the file, now that the address of the server is known. Raises RunFolderError where it cannot."""
        self._base, self.has_moved = base, self._former not in ("", base)
        self.keep()

    def keep(self) -> None:
        """Writes the file again, of the seats that there are by now."""
        self._tokens = self._roster.draw_tokens(self._tokens.values())
        named = {OF_ORGANISER: self.organiser}
        named |= {self._name_owner(client): self._name(token) for client, token in self._tokens.items()}
        lines = [f"{whose:<12}{link}\n" for whose, link in named.items()]
        with explain_errors(self._path, RunFolderError, "cannot be written"):
            write_whole(self._path, "".join(lines).encode(), mode=0o600)

    def remove(self) -> None:
        """Removes the file, since nobody is to join any more."""
        self._path.unlink(missing_ok=True)

    @property
    def organiser(self) -> str:
        """The link of the organiser's page."""
        return f"{self._base}{_OF_PAGE}{self.watch_token}"

    def find_free(self) -> list[str]:
        """The links that nobody has used, of free seats in order; a shared one once."""
        free = [token for client, token in self._tokens.items() if self._roster.seats[client] is None]
        return [self._name(token) for token in dict.fromkeys(free)]

    def show(self) -> str | None:
        """Says the first links of free seats; returns the first one, None where all seats are taken."""
        free = self.find_free()
        if not free:
            say(f"link     none: all {len(self._roster.seats):,} seats are taken; clients come back by themselves")
        for place, link in enumerate(free[:MOST_SHOWN]):
            say(f"{'' if place else 'link':<9}{link}")
        if len(free) > MOST_SHOWN:
            say(f"         {len(free) - MOST_SHOWN:,} more in {self._path}; each is for one client")
        return free[0] if free else None

    def _name_owner(self, client: int) -> str:
        return OF_ALL if self._roster.is_shared else f"seat {client}"

    def _name(self, token: str) -> str:
        return f"{self._base}/#{token}"


def read_links(path: pathlib.Path) -> dict[str, str]:
    """{whose: link} of a file of links: `seat 0` and so on, or `everybody`, and `organiser`. Empty of what is none."""
    try:
        text = read_regular(path, MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    found = map(_LINE.fullmatch, text.splitlines())
    return {each[1]: each[2] for each in found if each}


def _get_token(link: str) -> str:
    return link.partition("#")[2]
