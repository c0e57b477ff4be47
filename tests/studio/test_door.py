"""Who may talk to the studio's server: every request is looked at before it is answered, handshakes included."""

import socket

import pytest
import viser
import websockets.asyncio.server as wire
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from viscoil.errors import ViscoilError
from viscoil.studio import server

HANDSHAKE = (
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    f"Sec-WebSocket-Protocol: viser-v{viser.__version__}",
)  # fmt: skip


@pytest.fixture(scope="module")
def port():
    web = server.start(server.LOCAL, 0)
    yield web.get_port()
    web.stop()


def ask(port, *headers, handshake=True, address="127.0.0.1"):
    """Status of a request with exactly these headers, and the bytes that follow the answer's head."""
    lines = ["GET / HTTP/1.1", *headers, *(HANDSHAKE if handshake else ())]
    with socket.create_connection((address, port), timeout=20) as wire_:
        wire_.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        got = b""
        while b"\r\n\r\n" not in got or got.endswith(b"\r\n\r\n"):
            if b" 101 " in got:
                break
            more = wire_.recv(65536)
            if not more:
                break
            got += more
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


RIGHT = ["127.0.0.1:PORT", "localhost:PORT", "LocalHost:PORT", "[::1]:PORT"]
FOREIGN = [
    "rebound.example:PORT", "rebound.example", "localhost.rebound.example:PORT", "127.0.0.1.rebound.example:PORT",
    "localhost", "127.0.0.1", "localhost:1", "[::1]", "[::1]:1", "::1:PORT", "192.0.2.7:PORT", "[2001:db8::7]:PORT",
    "0.0.0.0:PORT", "user@localhost:PORT", "localhost:PORT/", "localhost:PORT, rebound.example:PORT", "localhost:", ":PORT", "",
]  # fmt: skip


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("host", RIGHT)
def test_its_own_names_are_answered(port, host, handshake):
    host = host.replace("PORT", str(port))
    good = 101 if handshake else 200
    assert ask(port, f"Host: {host}", handshake=handshake)[0] == good, "no page's"
    assert ask(port, f"Host: {host}", f"Origin: http://{host}", handshake=handshake)[0] == good, "its own page"
    assert ask(port, f"Host: {host}", f"Origin: HTTP://{host.upper()}", handshake=handshake)[0] == good


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("host", FOREIGN)
def test_other_names_are_not_even_when_their_page_asks(port, host, handshake):
    host = host.replace("PORT", str(port))
    for headers in ([], [f"Origin: http://{host}"], [f"Origin: http://127.0.0.1:{port}"]):
        status, body = ask(port, f"Host: {host}", *headers, handshake=handshake)
        assert status == 421 and body.startswith(b"This studio answers to its own address")


@pytest.mark.parametrize("handshake", [True, False])
def test_without_a_host_or_with_two_nobody_is_answered(port, handshake):
    right = f"Host: 127.0.0.1:{port}"
    assert ask(port, handshake=handshake)[0] == 421
    assert ask(port, right, right, handshake=handshake)[0] == 421
    assert ask(port, right, "host: rebound.example", handshake=handshake)[0] == 421
    assert ask(port, right.replace("Host", "hOST"), handshake=handshake)[0] in (101, 200)


@pytest.mark.parametrize("origin", [
    "http://rebound.example", "https://127.0.0.1:PORT", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost:PORT",
    "null", "", "file://", "http://127.0.0.1:PORT@rebound.example", "http://127.0.0.1:PORT.rebound.example", "127.0.0.1:PORT",
])  # fmt: skip
def test_pages_from_elsewhere_may_not_connect(port, origin):
    origin = origin.replace("PORT", str(port))
    status, body = ask(port, f"Host: 127.0.0.1:{port}", f"Origin: {origin}")
    assert status == 403 and body == b"Only the studio's own page may connect.\n"
    assert ask(port, f"Host: 127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}", f"Origin: {origin}")[0] == 403


def test_a_refused_page_gets_no_connection_at_all(port):
    """Closing it afterwards would be too late: its first messages would have been obeyed."""
    spoken = [Subprotocol(f"viser-v{viser.__version__}")]
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{port}", origin="https://example.org", subprotocols=spoken)
    assert refused.value.response.status_code == 403
    with connect(f"ws://127.0.0.1:{port}", origin=f"http://127.0.0.1:{port}", subprotocols=spoken, max_size=None) as friend:
        assert len(friend.recv(timeout=30)) > 100


def test_over_version_six():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        free = server.free_port("::1", 0, exactly=False)
    except server.AddressError:
        pytest.skip("no IPv6 here")
    web = server.start("::1", free)
    try:
        port = web.get_port()
        right = f"[::1]:{port}"
        assert ask(port, f"Host: {right}", f"Origin: http://{right}", address="::1")[0] == 101
        assert ask(port, f"Host: {right}", f"Origin: http://localhost:{port}", address="::1")[0] == 403
        assert ask(port, f"Host: rebound.example:{port}", address="::1")[0] == 421
    finally:
        web.stop()


@pytest.mark.parametrize("listening", ["0.0.0.0", "::", "192.0.2.7", "workstation.lan"])
def test_who_opens_it_to_the_network_is_reached_by_address_and_by_own_names(listening, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "Bench")
    told = f"[{listening}]" if ":" in listening else listening
    for name in ("localhost", "192.0.2.7", "[2001:db8::7]", "bench", "Bench.local", told):
        host = f"{name}:8080"
        assert server.refusal([host], [], listening, 8080) is None, host
        assert server.refusal([host], [f"http://{host}"], listening, 8080) is None, host
        assert server.refusal([host], ["http://192.0.2.99:8080"], listening, 8080)[0] == 403
    for host in ("rebound.example:8080", "bench.rebound.example:8080", "192.0.2.7.rebound.example:8080", "192.0.2.7:80"):
        assert server.refusal([host], [f"http://{host}"], listening, 8080)[0] == 421, host


def test_a_server_that_cannot_be_guarded_does_not_start(monkeypatch):
    """If viser once starts its server in another way, the door is shut, not open; and nothing of ours stays behind."""
    usual, started = wire.serve, viser.ViserServer
    made = []

    def unguarded(**settings):
        with monkeypatch.context() as other:
            other.setattr(wire, "serve", usual)
            made.append(started(**settings))
        return made[0]

    monkeypatch.setattr(viser, "ViserServer", unguarded)
    with pytest.raises(ViscoilError, match="cannot guard"):
        server.start(server.LOCAL, server.free_port(server.LOCAL, 0, exactly=False))
    assert wire.serve is usual
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", made[0].get_port()), timeout=20).close()
