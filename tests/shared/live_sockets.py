"""Programs that speak to the server of a live run by sockets, beside a test that is its main thread."""

import asyncio
import concurrent.futures
import contextlib
import threading

import aiohttp

PATIENCE_S = 60  # of a busy machine; nothing waits so long


@contextlib.asynccontextmanager
async def connect(port, path="/ws", **options):
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}{path}", max_msg_size=0, **options) as ws,
    ):
        yield ws


def run_client(program):
    """Runs a coroutine in a thread; returns the future of its result."""
    done = concurrent.futures.Future()

    def run():
        try:
            done.set_result(asyncio.run(program))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done
