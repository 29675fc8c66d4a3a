"""A Firefox without a window that takes part in a live run: `python tests/live/firefox.py <link> [folder of shots]`.

It is driven by WebDriver BiDi, which Firefox speaks itself, since Playwright wants a newer one than some distributions
have. It agrees, waits until the run is over, and prints a line of JSON: what the page shows, and what it should not do.
"""

import asyncio
import base64
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from urllib.parse import urlsplit

import aiohttp

BROWSER = os.environ.get("FIREFOX", "firefox-esr")
LIMIT_S = 600.0
PHONE = {"width": 390, "height": 844}
PREFERENCES = """
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
"""


class Page:
    """The one tab of a Firefox."""

    def __init__(self, socket, origin):
        self._socket, self._origin, self._number, self._waiting = socket, origin, 0, {}
        self.problems = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self):
        async for each in self._socket:
            message = json.loads(each.data)
            if "id" in message:
                self._waiting.pop(message["id"]).set_result(message)
            elif message.get("method") == "log.entryAdded" and message["params"]["level"] in ("error", "warn"):
                self.problems.append(f"console: {message['params']['text']}")
            elif message.get("method") == "network.beforeRequestSent":
                address = message["params"]["request"]["url"]
                if urlsplit(address).netloc != self._origin and not address.startswith(("data:", "blob:", "about:")):
                    self.problems.append(f"request: {address}")

    async def send(self, method, **parameters):
        self._number += 1
        self._waiting[self._number] = asyncio.get_running_loop().create_future()
        reply = self._waiting[self._number]
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        message = await asyncio.wait_for(reply, LIMIT_S)
        if message["type"] == "error":
            raise RuntimeError(f"{method}: {message['message']}")
        return message["result"]

    async def open(self, link):
        await self.send("session.new", capabilities={})
        await self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self._context = (await self.send("browsingContext.getTree"))["contexts"][0]["context"]
        await self.send("browsingContext.setViewport", context=self._context, viewport=PHONE)
        await self.send("browsingContext.navigate", context=self._context, url=link, wait="complete")

    async def evaluate(self, expression):
        """The text that an expression gives, or its promise."""
        target = {"context": self._context}
        found = await self.send("script.evaluate", expression=expression, target=target, awaitPromise=True)
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    async def wait_for(self, condition):
        async with asyncio.timeout(LIMIT_S):
            while not await self.evaluate(condition):
                await asyncio.sleep(0.1)

    async def shoot(self, folder, name):
        if folder:
            place = {"context": self._context, "origin": "document"}
            content = (await self.send("browsingContext.captureScreenshot", **place))["data"]
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            (pathlib.Path(folder) / f"{name}.png").write_bytes(base64.b64decode(content))


async def take_part(address, link, shots):
    limits = {"max_msg_size": 2**26, "heartbeat": None}
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{address}/session", **limits) as socket:
        page = Page(socket, urlsplit(link).netloc)
        await page.open(link)
        await page.wait_for('document.documentElement.dataset.shown === "asking"')
        await page.shoot(shots, "asking")
        await page.evaluate('document.querySelector("#agree").click()')
        await page.wait_for('document.querySelector("#rounds").value > 1')
        await page.shoot(shots, "working")
        await page.wait_for('document.documentElement.dataset.shown !== "working"')
        await page.wait_for(
            'document.querySelector("#tested").textContent !== "" || document.querySelector("#why").textContent'
        )
        await page.shoot(shots, "over")
        texts = [f'document.querySelector("{each}").textContent' for each in ("#summary", "#tested", "#why")]
        shown = [await page.evaluate(text) for text in texts]
        print(json.dumps({"browser": "firefox", "shown": shown, "problems": page.problems}), flush=True)
        return not page.problems and await page.evaluate("document.documentElement.dataset.shown") == "over"


def main(link, shots=""):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        (pathlib.Path(profile) / "user.js").write_text(PREFERENCES, encoding="utf-8")
        command = [
            BROWSER,
            "--headless",
            "--no-remote",
            "--profile",
            profile,
            "--remote-debugging-port=0",
            "about:blank",
        ]
        firefox = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            found = next(filter(None, (re.search(r"listening on (ws://\S+)", line) for line in firefox.stderr)))
            return 0 if asyncio.run(take_part(found[1], link, shots)) else 1
        finally:
            firefox.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                firefox.wait(10)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
