"""One writer per run folder. The lock dies with its process, however that dies."""

import contextlib
import json
import os
import socket
import time
from pathlib import Path

from viscoil.errors import RunFolderError
from viscoil.io.atomic import explain

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Lock:
    """A file with the writer's process id, held by the operating system's file lock where there is one.

    With such a lock a file left by a killed process is simply free again; elsewhere the process id in it decides.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    def acquire(self) -> None:
        """Take the lock or raise RunFolderError naming the process that has it."""
        while self._handle is None:
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise RunFolderError(explain(error, self.path)) from error
            if not self._claim(handle):
                owner = _read(handle)
                os.close(handle)
                raise RunFolderError(
                    f"{self.path.parent} is being written by {_name(owner)}. Wait for it, stop it, or choose another."
                )
            if not self._still_there(handle):  # its last owner deleted it between our open and our claim
                os.close(handle)
                continue
            me = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, json.dumps(me).encode())
            self._handle = handle

    def release(self) -> None:
        """Give the lock back and remove its file. Does nothing when it is not held."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        if os.name == "nt":  # an open file cannot be deleted there
            os.close(handle)
            handle = -1
        with contextlib.suppress(OSError):
            self.path.unlink()
        if handle >= 0:
            os.close(handle)

    def owner(self) -> dict | None:
        """Who else holds the lock now; None when it is free."""
        try:
            handle = os.open(self.path, os.O_RDWR)
        except OSError:
            return None
        try:
            return None if self._claim(handle) else _read(handle)
        finally:
            os.close(handle)

    def _claim(self, handle: int) -> bool:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False
            except OSError:
                pass  # file systems without locks: ask for the process instead
        owner = _read(handle)
        mine = owner.get("pid") == os.getpid() and owner.get("host") == socket.gethostname()
        return mine or not _alive(owner)

    def _still_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False


def _read(handle: int) -> dict:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(handle, 0, os.SEEK_SET)
        owner = json.loads(os.read(handle, 4096))
        if isinstance(owner, dict):
            return owner
    return {}


def _alive(owner: dict) -> bool:
    """Whether the process named in a lock file may still run. Other machines' processes cannot be asked."""
    pid = owner.get("pid")
    if not isinstance(pid, int):
        return False
    if owner.get("host") != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _name(owner: dict) -> str:
    if "pid" not in owner:
        return "another process"
    return f"process {owner['pid']} on {owner.get('host', 'this machine')} (since {owner.get('since', 'unknown')})"
