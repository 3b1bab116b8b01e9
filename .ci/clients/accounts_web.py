"""Signs in with the Firebase web SDK, from the package streamlit-firebase-auth, in headless Chromium.

usage: accounts_web.py HOST:PORT PROJECT
"""

import functools
import http.server
import importlib.util
import json
import pathlib
import sys
import threading
import urllib.request

from playwright.sync_api import sync_playwright

HOST, PROJECT = sys.argv[1:3]
MEMBER = {"email": "web@example.com", "password": "secret-1"}
BUILD = pathlib.Path(importlib.util.find_spec("streamlit_firebase_auth").submodule_search_locations[0]) / "frontend/build"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def sign_in(browser, page_url, password):
    """Returns the page's result of a sign-in, and the requests that the page sent."""
    page = browser.new_page()
    calls = []
    page.on("request", lambda request: calls.append(request.url.split("accounts:")[-1].split("?")[0]) if "accounts:" in request.url else None)
    page.add_init_script(
        "globalThis.__FIREBASE_DEFAULTS__ = {emulatorHosts: {auth: '%s'}}; window.answers = [];"
        "window.addEventListener('message', event => { if (event.data?.type === 'streamlit:setComponentValue'"
        " && event.data.value) window.answers.push(event.data.value) })" % HOST)
    page.goto(page_url)
    page.wait_for_timeout(500)
    settings = {"apiKey": "any", "authDomain": f"{PROJECT}.firebaseapp.com", "projectId": PROJECT}
    page.evaluate(
        "settings => window.postMessage({type: 'streamlit:render', args: {name: 'LoginForm', lang: 'en',"
        " providers: ['email'], firebase_config: settings}}, '*')", settings)
    page.wait_for_selector("input", timeout=20_000)
    email, secret = page.query_selector_all("input")[:2]
    email.fill(MEMBER["email"])
    secret.fill(password)
    page.query_selector("button").click()
    page.wait_for_function("window.answers.length > 0", timeout=20_000)
    answer = page.evaluate("window.answers")[0]
    page.close()
    return answer, calls


request = urllib.request.Request(
    f"http://{HOST}/v1/accounts:signUp?key=any", json.dumps(MEMBER).encode(), {"Content-Type": "application/json"})
uid = json.load(urllib.request.urlopen(request, timeout=20))["localId"]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=BUILD))
threading.Thread(target=server.serve_forever, daemon=True).start()
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[3], args=["--no-sandbox"])
    url = f"http://127.0.0.1:{server.server_port}/index.html"
    answer, calls = sign_in(browser, url, MEMBER["password"])
    assert answer["success"] and answer["user"]["uid"] == uid and not answer["user"]["isAnonymous"], answer
    assert calls == ["signInWithPassword", "lookup"], calls
    answer, calls = sign_in(browser, url, "wrong-1")
    assert not answer["success"] and "auth/wrong-password" in answer["message"], answer
    browser.close()
server.shutdown()

print("2 passed")
