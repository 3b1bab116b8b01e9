"""Measures what an open console costs a server that nothing else uses.

usage: idle.py HEARTH CHROMIUM [SECONDS]

Prints the CPU time of the server and its requests in a minute, without a page and with one page that nobody touches.
"""

import pathlib
import sys
import time

from playwright.sync_api import sync_playwright

from console import Server

HEARTH, CHROMIUM = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCREENS = ["data/products/red-mug", "query", "why", "rules", "users", "health"]


def cpu_seconds(server):
    """The time that the threads of the server have run, with the resolution of the scheduler."""
    total = 0
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def requests(server):
    """The requests so far, without this one."""
    text = server.call("GET", "/metrics").decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("hearth_http_requests_total"))


def measure(server, name):
    asked, used, began = requests(server), cpu_seconds(server), time.monotonic()
    time.sleep(SECONDS)
    used, seconds = cpu_seconds(server) - used, time.monotonic() - began
    asked = requests(server) - asked - 1
    print(f"{name}: {1000 * used * 60 / seconds:.1f} ms of CPU and {asked * 60 / seconds:.0f} requests a minute, {100 * used / seconds:.3f} % of a core", flush=True)


server = Server(HEARTH, "--import", str(ROOT / "fixtures/shop.json"), "--rules", str(ROOT / "rules/shop.rules"))
try:
    time.sleep(3)
    measure(server, "no page")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for screen in SCREENS:
            page = browser.new_page()
            page.goto(f"{server.url}/_/console/#/demo/(default)/{screen}")
            page.wait_for_selector("main.screen *")
            time.sleep(5)
            measure(server, screen.split("/")[0])
            page.close()
        browser.close()
finally:
    server.stop()
