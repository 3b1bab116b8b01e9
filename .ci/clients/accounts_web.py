"""Signs in with the Firebase web SDK, from the package streamlit-firebase-auth, in headless Chromium: with a password, and
by a pop-up.

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


def open_page(browser, page_url, provider):
    """Returns a page that shows the sign-in with a provider, and the list to which it adds its requests."""
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
        " providers: [settings.provider], firebase_config: settings}}, '*')", {**settings, "provider": provider})
    return page, calls


def sign_in(browser, page_url, password):
    """Returns the page's result of a sign-in with a password, and the requests that the page sent."""
    page, calls = open_page(browser, page_url, "email")
    page.wait_for_selector("input", timeout=20_000)
    email, secret = page.query_selector_all("input")[:2]
    email.fill(MEMBER["email"])
    secret.fill(password)
    page.query_selector("button").click()
    page.wait_for_function("window.answers.length > 0", timeout=20_000)
    answer = page.evaluate("window.answers")[0]
    page.close()
    return answer, calls


def sign_in_with_google(browser, page_url):
    """Returns the page's result of a sign-in by a pop-up. No script of another host is loaded."""
    page, _ = open_page(browser, page_url, "google")
    page.context.route("https://**/*", lambda route: route.abort())
    page.add_script_tag(url=f"http://{HOST}/__/auth/gapi.js")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Login with Google").click()
    popup = opened.value
    popup.fill("#email", "dora@example.com")
    popup.fill("#name", "Dora")
    popup.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_function("window.answers.length > 0", timeout=20_000)
    answer = page.evaluate("window.answers")[0]
    page.close()
    return answer


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
    answer = sign_in_with_google(browser, url.replace("127.0.0.1", "localhost"))
    assert answer["success"] and answer["user"]["email"] == "dora@example.com", answer
    assert answer["user"]["providerData"][0]["providerId"] == "google.com", answer
    browser.close()
server.shutdown()

print("3 passed")
