"""Serves the page and the scripts of the console from Sources/, so that a change needs no build."""

import pathlib
import re

FILES = pathlib.Path(__file__).resolve().parents[2] / "Sources/C/CConsole/files"


def joined():
    """All scripts as one module, as the server joins them."""
    names = re.findall(r'#embed "files/([^"]+[.]js)"', (FILES.parent / "files.c").read_text())
    lines = []
    for name in names:
        if name != "early.js":
            lines += [line.removeprefix("export ") for line in (FILES / name).read_text().split("\n")
                      if not (line.startswith("import {") and line.endswith('.js";'))]
    return "\n".join(lines)


def serve(page):
    """Replaces what the server sends. The headers stay those of the server."""
    def send_page(route):
        response = route.fetch()
        nonce = re.search(r"script-src 'nonce-([0-9a-f]+)'", response.headers["content-security-policy"])[1]
        text = (FILES / "index.html").read_text()
        parts = {"style": (FILES / "console.css").read_text(), "early": (FILES / "early.js").read_text(),
                 "script": "a/0000000000000000/console.js", "nonce": nonce, **dict(re.findall(r'data-(project|version|mode)="([^"]*)"', response.text()))}
        for name, value in parts.items():
            text = text.replace("{{" + name + "}}", value)
        route.fulfill(response=response, body=text)
    page.route(re.compile(r"/_/console/([?#].*)?$"), send_page)
    page.route(re.compile(r"/_/console/a/.*/console[.]js$"), lambda route: route.fulfill(
        body=joined(), content_type="text/javascript; charset=utf-8"))
