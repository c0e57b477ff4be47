"""The door of the studio as browsers come to it: pages of other origins, and names that were pointed at this computer.

Needs Chromium, as ``test_browser.py`` does, and is skipped or fails without it in the same way.
"""

import http.server
import threading

import pytest
import viser
from playwright.sync_api import sync_playwright

from studio.test_browser import CHROMIUM, FLAGS, PATIENCE
from viscoil.studio import server

REBOUND = "rebound.example"  # a stranger's name that leads here
KNOCK = """url => new Promise(done => {
  const wire = new WebSocket(url, "viser-vVERSION");
  wire.binaryType = "arraybuffer";
  const told = [];
  wire.onopen = () => told.push("opened");
  wire.onmessage = event => { told.push("message"); wire.close(); };
  wire.onclose = () => done(told.join(" "));
})""".replace("VERSION", viser.__version__)


@pytest.fixture(scope="module")
def port():
    web = server.start(server.LOCAL, 0)
    yield web.get_port()
    web.stop()


@pytest.fixture(scope="module")
def stranger():
    """A page of somebody else's server: its port."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html><title>stranger</title></html>")

        def log_message(self, *_):
            pass

    elsewhere = http.server.ThreadingHTTPServer((server.LOCAL, 0), Page)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    yield elsewhere.server_address[1]
    elsewhere.shutdown()


@pytest.fixture(scope="module")
def page():
    with sync_playwright() as play:
        rules = f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, rules])
        page = browser.new_page(viewport={"width": 300, "height": 200})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_its_own_page_connects(page, port, name):
    page.goto(f"http://{name}:{port}", wait_until="commit")
    assert page.evaluate(KNOCK, f"ws://{name}:{port}") == "opened message"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", REBOUND])
def test_a_page_of_another_origin_does_not(page, port, stranger, name):
    """Not even one of this computer, as another program's is; the request never becomes a connection."""
    page.goto(f"http://{name}:{stranger}")
    assert page.title() == "stranger"
    for host in ("127.0.0.1", "localhost", REBOUND):
        assert page.evaluate(KNOCK, f"ws://{host}:{port}") == ""


def test_a_rebound_name_is_not_served(page, port):
    """The stranger's own name, pointed here after its page was loaded: the same origin for the browser, not for us."""
    answer = page.goto(f"http://{REBOUND}:{port}")
    assert answer.status == 421 and "own address" in page.content()
    assert page.evaluate(KNOCK, f"ws://{REBOUND}:{port}") == ""
    assert page.evaluate("fetch('/').then(answer => answer.status)") == 421
