"""A child process and the messages to and from it. If it dies, that is one more message."""

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from viscoil.studio.messages import Arrays, Ended, receive_arrays

PATIENCE = 5.0  # seconds a process may take to end when asked


class Link:
    """Starts ``target(pipe, *arguments)`` in a process of its own and hands on what it sends.

    ``deliver(link, message, arrays)`` is called from a thread that does nothing but receive, so the child never waits long
    for its messages to be taken. After the last message comes ``Ended``, whatever the reason.
    """

    def __init__(self, target: Callable[..., None], arguments: tuple[Any, ...], deliver: Callable[..., None], name: str):
        context = multiprocessing.get_context("spawn")  # a forked kernel compiler or thread pool would not work
        self._pipe, theirs = context.Pipe()
        self._lock = threading.Lock()  # one sender at a time
        self._deliver = deliver
        self.process = context.Process(target=target, args=(theirs, *arguments), name=name, daemon=True)
        self.process.start()
        theirs.close()  # only the child holds its end: when it dies, reading here ends
        self._reader = threading.Thread(target=self._receive, name=f"{name} reader", daemon=True)
        self._reader.start()

    def send(self, message: Any) -> bool:
        """Sends a message; False when nobody is left to read it."""
        try:
            with self._lock:
                self._pipe.send(message)
            return True
        except (OSError, ValueError):
            return False

    def send_with(self, sender: Callable[[Connection], None]) -> bool:
        """Lets ``sender`` write several pieces that belong together."""
        try:
            with self._lock:
                sender(self._pipe)
            return True
        except (OSError, ValueError):
            return False

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    def stop(self, farewell: Any) -> None:
        """Asks the process to end, and ends it if it does not."""
        self.send(farewell)
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        with contextlib.suppress(OSError):
            self._pipe.close()

    def _receive(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = self._pipe.recv()
                if isinstance(message, Arrays):
                    self._deliver(self, message.content, receive_arrays(self._pipe, message))
                else:
                    self._deliver(self, message, {})
        self.process.join(PATIENCE)
        self._deliver(self, Ended(self.process.exitcode), {})


def leave_interrupts_to_the_parent() -> None:
    """Ctrl-C in a terminal reaches every process of the group; the parent tells its children when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
