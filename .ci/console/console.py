"""What the scenarios of the console share: a server, a browser, and the checks that every scenario makes."""

import contextlib
import gzip
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import urllib.request

from axe_playwright_python.sync_playwright import Axe

import sources

DATA = "demo/(default)/data/"
SIZES = [(360, 740), (768, 1024), (1440, 900), (2560, 1440)]


def text(value):
    """A text as a value of the API."""
    return {"stringValue": value}


class Server:
    """A hearth in emulator mode with its own memory."""

    def __init__(self, hearth, *options):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [hearth, "serve", "--emulator", "--in-memory", "--project", "demo", "--port", "0", "--one-port", *options],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        for line in self.process.stdout:
            if line.startswith("hearth: listening on "):
                self.url = line.split()[-1]
                return
        self.log.seek(0)
        raise AssertionError("hearth did not start: " + self.log.read())

    def call(self, method, path, body=None, token="owner", kind="application/json"):
        headers = {"Content-Type": kind}
        if token:
            headers["Authorization"] = "Bearer " + token
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            text = response.read()
        return json.loads(text) if text[:1] in b"{[" and text else text

    def documents(self, path="", database="(default)"):
        return f"/v1/projects/demo/databases/{database}/documents{path}"

    def put(self, path, fields):
        return self.call("PATCH", self.documents("/" + path), {"fields": fields})

    def fields(self, path):
        return self.call("GET", self.documents("/" + path)).get("fields", {})

    def token(self, uid, claims=None):
        return self.call("POST", "/hearth/v1/tokens", {"uid": uid, "claims": claims or {}})["idToken"]

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


class StaticPage:
    """A server of some files with their compressed bytes, as a context manager that gives its URL."""

    def __init__(self, files):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body, kind = files.get(self.path, (b"", "text/plain"))
                packed = gzip.compress(body)
                self.send_response(200)
                for name, value in [("Content-Type", kind), ("Content-Encoding", "gzip"), ("Content-Length", str(len(packed)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(packed)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/"

    def __exit__(self, *_):
        self.server.shutdown()


class Console:
    """A tab of the console. `problems` are what no scenario may cause."""

    def __init__(self, browser, server, size=(1440, 900), scheme="light", motion="reduce"):
        self.server = server
        self.problems = []
        self.expected = []
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion=motion)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        if os.environ.get("CONSOLE_SOURCES"):
            sources.serve(self.page)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective))")

    def _console(self, message):
        if message.type == "error" and not any(part in message.text for part in self.expected):
            self.problems.append(f"console: {message.text}")

    def _request(self, request):
        if not request.url.startswith((self.server.url + "/", "blob:", "data:")):
            self.problems.append(f"request to another origin: {request.url}")

    def open(self, address="", wait="main.screen *"):
        self.page.goto(f"{self.server.url}/_/console/#/{address}")
        self.page.wait_for_selector(wait)

    def go(self, address):
        self.page.evaluate("(hash) => { location.hash = hash; }", "#/" + address)

    def role(self, role, name=None, exact=False):
        return self.page.get_by_role(role, name=name, exact=exact) if name else self.page.get_by_role(role)

    def check_accessibility(self, where):
        found = Axe().run(self.page).response["violations"]
        for violation in found:
            for node in violation["nodes"][:3]:
                self.problems.append(f"axe, {where}: {violation['id']}: {node['target']} {node['failureSummary'][:200]}")

    def check_width(self, where):
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            self.problems.append(f"{where}: the page is {wide} px wider than the window")

    def close(self):
        self.context.close()


@contextlib.contextmanager
def console(browser, server, **options):
    """A tab whose problems fail the scenario."""
    tab = Console(browser, server, **options)
    try:
        yield tab
        assert not tab.problems, "\n".join(tab.problems)
    except Exception:
        folder = pathlib.Path(".build/clients/console-failures")
        folder.mkdir(parents=True, exist_ok=True)
        tab.page.screenshot(path=folder / f"{os.getpid()}.png")
        for problem in tab.problems:
            print("   ", problem)
        raise
    finally:
        tab.close()
