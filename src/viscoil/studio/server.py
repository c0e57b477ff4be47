"""The web server: where it listens, what it prints, and who may talk to it."""

import contextlib
import errno
import ipaddress
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

from viscoil.errors import ViscoilError
from viscoil.extras import require

LOCAL = "127.0.0.1"
LOOPBACK = ("localhost", LOCAL, "::1")  # names of this computer that only it can use
TRIES = 50  # ports looked at after the one asked for
_STARTING = threading.Lock()  # servers start one after the other: each is guarded on its own way out


class AddressError(ViscoilError):
    """The studio cannot listen where it was asked to."""

    exit_code = 2


def free_port(host: str, port: int, exactly: bool) -> int:
    """``port``, or the next free one after it unless it has to be ``exactly`` that; 0: any."""
    if not 0 <= port <= 65535:
        raise AddressError(f"--port: expected a number from 0 to 65535; got {port}")
    for candidate in [port] if exactly or port == 0 else range(port, min(port + TRIES, 65536)):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
                return int(probe.getsockname()[1])
            except (OSError, OverflowError) as error:
                if getattr(error, "errno", None) not in (errno.EADDRINUSE, errno.EACCES):
                    raise AddressError(f"--host {host}: cannot listen there ({error})") from None
    tried = f"port {port} is" if exactly else f"ports {port} to {port + TRIES - 1} are"
    raise AddressError(f"{tried} in use or not allowed on {host}; choose another with --port, or 0 for any free one")


def start(host: str, port: int) -> Any:
    """A quiet viser server that answers its own pages only (see :func:`refusal`)."""
    viser = require("viser", "for the studio")
    import rich

    console = rich.get_console()
    console.quiet = True  # viser announces itself; what there is to say, the command line says
    with _guarded(host) as guarded:
        server = viser.ViserServer(host=host, port=port, verbose=False)
    if not guarded:
        server.stop()  # it answers everybody
        raise ViscoilError("this version of viser starts its server in a way the studio cannot guard; install viser 1.1")
    # A browser with the page open could ask viser to publish it through an outside service: never from here.
    server.request_share_url = lambda verbose=True: None
    return server


# --- the door --------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def _guarded(host: str) -> Iterator[list[bool]]:
    """Has the server that is started meanwhile look at every request before anything else does, handshakes included.

    viser has no place for that: what it hands to ``websockets`` is taken on the way there. Empty afterwards: it was not.
    """
    import websockets.asyncio.server as wire

    usual = wire.serve
    taken: list[bool] = []

    def serve(*arguments: Any, process_request: Any = None, **settings: Any) -> Any:
        def first(connection: Any, request: Any) -> Any:
            port = connection.local_address[1]
            refused = refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"), host, port)
            return connection.respond(*refused) if refused else process_request(connection, request)

        taken.append(True)
        return usual(*arguments, process_request=first, **settings)

    with _STARTING:
        wire.serve = serve
        try:
            yield taken
        finally:
            wire.serve = usual


def refusal(hosts: list[str], origins: list[str], listening: str, port: int) -> tuple[int, str] | None:
    """Status and text for a request that must not be answered; None when it may be.

    A browser lets any page open connections to this computer, and lets whoever owns a name point it here (DNS rebinding).
    Its request then says the name (Host) and the page (Origin). So the host has to be this computer's, with the port
    listened on, and a page has to be one that came from there. Without an origin it is no page's: a script, or the visit
    itself. ``listening``: the address the server was asked to listen on.
    """
    host = _authority(hosts[0]) if len(hosts) == 1 else None
    if host is None or host[1] != port or not _ours(host[0], listening):
        return 421, f"This studio answers to its own address and port {port} only, e.g. ssh -L {port}:localhost:{port}.\n"
    if origins and (len(origins) > 1 or _page(origins[0]) != host):
        return 403, "Only the studio's own page may connect.\n"
    return None


def _authority(text: str) -> tuple[str, int] | None:
    """Name, in lower case, and port of ``name:port``; None for anything else."""
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?", text.lower())
    return (found[1] or found[2], int(found[3] or 80)) if found else None


def _page(origin: str) -> tuple[str, int] | None:
    """Where a page came from; None unless over http."""
    scheme, _, rest = origin.partition("://")
    return _authority(rest) if scheme.lower() == "http" else None


def _ours(name: str, listening: str) -> bool:
    """Whether ``name`` is this computer's, as the user wants to be reached."""
    told = listening.lower()
    if name in LOOPBACK or name == told:
        return True
    if told in LOOPBACK:
        return False
    own = socket.gethostname().lower()
    return name in (own, f"{own}.local") or _is_address(name)  # nobody can point an address elsewhere


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
