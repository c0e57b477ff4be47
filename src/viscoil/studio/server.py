"""The web server: where it listens, what it prints, and who may talk to it."""

import contextlib
import errno
import socket
from typing import Any
from urllib.parse import urlsplit

from viscoil.errors import ViscoilError
from viscoil.extras import require

LOCAL = "127.0.0.1"
TRIES = 50  # ports looked at after the one asked for


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
    """A quiet viser server. Pages of other sites that open a connection to it are turned away."""
    viser = require("viser", "for the studio")
    import rich

    console = rich.get_console()
    console.quiet = True  # viser announces itself; what there is to say, the command line says
    server = viser.ViserServer(host=host, port=port, verbose=False)
    # A browser with the page open could ask viser to publish it through an outside service: never from here.
    server.request_share_url = lambda verbose=True: None

    async def refuse_strangers(connection: Any) -> None:
        live = server._websock_server._live_connections.get(connection.client_id)
        headers = live.request.headers if live is not None and live.request is not None else {}
        if not same_site(headers.get("Origin"), headers.get("Host")):
            await live.close(1008, "only the studio's own page may connect")

    server._websock_server.on_client_connect(refuse_strangers)
    return server


def same_site(origin: str | None, host: str | None) -> bool:
    """Whether a connection comes from the page that this server itself delivered (or from no page at all)."""
    return origin is None or urlsplit(origin).netloc == host
