"""Drives the console of a production server in a real browser, as its operators do.

usage: operators.py HEARTH CHROMIUM [SCENARIO…]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

from console import SIZES, console

HEARTH, CHROMIUM = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
DATA = "shop/(default)/data/"


class Production:
    """A production server with a console, a web app, backups, and the operators viewer, editor and owner."""

    def __init__(self, hearth):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "app").mkdir()
        (folder / "app/index.html").write_text("<!doctype html><title>App</title>")
        (folder / "app/sw.js").write_text("self.addEventListener('fetch', (event) => {\n"
            "  if (new URL(event.request.url).origin === location.origin) event.respondWith(new Response('evil'));\n});")
        self.hearth, self.data = hearth, str(folder / "data")
        subprocess.run([hearth, "import", str(ROOT / "fixtures/shop.json"), "--project", "shop", "--data", self.data],
                       check=True, capture_output=True)
        for role in ["viewer", "editor", "owner"]:
            self.operators("add", role, "--role", role)
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen(
            [hearth, "serve", "--project", "shop", "--data", self.data, "--port", "0", "--console-address", "127.0.0.1:0",
             "--rules", str(ROOT / "rules/shop.rules"), "--hosting", str(folder / "app"), "--backup-to", str(folder / "backups"),
             "--mail-command", "send --password hunter2", "--action-url", "https://shop.example.com/action"],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        for line in self.process.stdout:
            if line.startswith("hearth: listening on "):
                self.app = line.split()[-1]
                break
        text = self.logged()
        assert "/_/console/" in text, "hearth did not start: " + text
        self.url = next(word for word in text.replace('"', " ").split() if "/_/console/" in word).split("/_/")[0]

    def operators(self, verb, name, *options):
        subprocess.run([self.hearth, "operators", verb, name, *options, "--project", "shop", "--data", self.data],
                       input=PASSWORD + "\n", text=True, check=True, capture_output=True)

    def logged(self):
        return pathlib.Path(self.log.name).read_text()

    def call(self, method, path, body=None, token=None):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read())

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        self.folder.cleanup()


# Chromium reports each response with an error status. Those that a scenario causes are expected.
REFUSALS = ["status of 401", "status of 403", "status of 429", "status of 400", "status of 404"]


def enter(tab, name, password=PASSWORD, address=""):
    tab.expected += REFUSALS
    tab.page.goto(f"{tab.server.url}/_/console/#/{address}")
    tab.page.get_by_label("Name").fill(name)
    tab.page.get_by_label("Password").fill(password)
    tab.role("button", "Sign in").click()


def sign_in(browser, server):
    """Sign-in, a wrong password, sign-out, a new tab, and a deep link."""
    with console(browser, server) as tab:
        enter(tab, "owner", "a wrong password")
        expect(tab.role("alert")).to_have_text("The name or the password is wrong.")
        expect(tab.page.get_by_label("Password")).to_be_focused()
        expect(tab.page.get_by_label("Password")).to_have_value("")
        tab.check_accessibility("sign-in")
        tab.page.get_by_label("Password").fill(PASSWORD)
        tab.page.keyboard.press("Enter")
        expect(tab.page.get_by_text("PRODUCTION")).to_be_visible()
        expect(tab.page.get_by_text("owner, owner")).to_be_visible()
        assert tab.page.evaluate("document.cookie") == "" and tab.page.evaluate("Object.keys(localStorage).join()") == "hearth.theme"
        token = json.loads(tab.page.evaluate("sessionStorage.getItem('hearth.session')"))["token"]
        assert PASSWORD not in tab.page.evaluate("JSON.stringify(sessionStorage)") and token not in tab.page.url
        # A reload keeps the session, another tab has none.
        tab.page.reload()
        expect(tab.page.get_by_text("owner, owner")).to_be_visible()
        other = tab.context.new_page()
        other.goto(f"{server.url}/_/console/")
        expect(other.get_by_role("heading", name="Sign in to the console")).to_be_visible()
        tab.role("button", "Sign out").click()
        expect(tab.page.get_by_text("You are signed out.")).to_be_visible()
        assert tab.page.evaluate("sessionStorage.getItem('hearth.session')") is None
        try:
            server.call("GET", "/hearth/v1/session", token=token)
            raise AssertionError("the token is valid after sign-out")
        except urllib.error.HTTPError as error:
            assert error.code == 401
        assert token not in server.logged() and PASSWORD not in server.logged()


def throttle(browser, server):
    """Ten wrong passwords, and then the correct one, which is refused too."""
    with console(browser, server) as tab:
        enter(tab, "editor", "wrong wrong 0")
        for count in range(1, 10):
            expect(tab.role("alert")).to_have_text("The name or the password is wrong.")
            tab.page.get_by_label("Password").fill(f"wrong wrong {count}")
            tab.role("button", "Sign in").click()
            expect(tab.role("button", "Sign in")).to_be_enabled()
        expect(tab.role("alert")).to_have_text("The name or the password is wrong.")
        tab.page.get_by_label("Password").fill(PASSWORD)
        tab.role("button", "Sign in").click()
        expect(tab.role("alert")).to_contain_text("Try again in 15 minutes")
        assert "too many failed attempts" in server.logged()


def roles(browser, server):
    """A viewer reads and changes nothing; an editor unlocks the console and changes documents, but no keys."""
    with console(browser, server) as tab:
        enter(tab, "viewer", address=DATA + "products/red-mug")
        expect(tab.page.get_by_text("red-mug").first).to_be_visible()
        for screen in ["server", "users", "health", "rules", "files", "query"]:
            tab.go(f"shop/(default)/{screen}")
            expect(tab.page.locator("main h1, main input").first).to_be_attached()
        tab.go("shop/(default)/server")
        expect(tab.role("heading", "Service keys")).to_be_visible()
        expect(tab.role("button", "New key…")).to_be_disabled()
        expect(tab.role("button", "New operator…")).to_be_disabled()
        expect(tab.role("button", "Locked")).to_have_count(0)
        # Whatever the page does, the server decides.
        status = tab.page.evaluate("""async () => (await fetch("/v1/projects/shop/databases/(default)/documents/products/red-mug", { method: "DELETE",
            headers: { Authorization: "Bearer " + JSON.parse(sessionStorage.getItem("hearth.session")).token } })).status""")
        assert status == 403, status
    with console(browser, server) as tab:
        enter(tab, "editor", address=DATA + "products/red-mug")
        expect(tab.role("button", "Locked")).to_be_visible()
        tab.page.keyboard.press("Escape")
        tab.page.wait_for_selector("main.screen *")
        tab.role("button", "Locked").click()
        expect(tab.role("button", "Unlocked")).to_be_visible()
        tab.go("shop/(default)/server")
        expect(tab.role("heading", "Service keys")).to_be_visible()
        expect(tab.role("button", "New key…")).to_be_disabled()
        tab.go("shop/(default)/users")
        tab.role("button", "User").last.click()
        tab.page.get_by_label("Email").fill("eve@example.com")
        tab.page.get_by_label("Password, 6 characters or more").fill("secret-1")
        tab.role("button", "Create").last.click()
        expect(tab.page.get_by_text("eve@example.com").first).to_be_visible()
        assert 'requested \\"POST /v1/projects/shop/accounts\\"' in server.logged() or 'requested "POST /v1/projects/shop/accounts"' in server.logged()


# The names of controls that change something, and the screens of the console, with a collection that has nothing.
CHANGING = re.compile(r"^(New|Create|Delete|Remove|Revoke|Rename|Duplicate|Import|Upload|Edit|Save|Set|Mark|Enable|Disable|Restore|Back up|"
                      r"Copy an ID token|View data|Collection|User|Field|Element|Record|Stop recording)\b|^(Change|Change…|Run|Clear)$")
VIEWED = ["data/products/red-mug", "data/orders/1001", "data/products?view=table", "data/nothing/here", "data/nothing", "data/products?changes=1&at={then}",
          "data/products/red-mug?at={then}", "query?p=collection%20products", "why", "rules", "users/{user}", "files", "files/shop.appspot.com?file=note.txt", "health",
          "server"]


def enabled_changes(scope):
    """The enabled controls below an element that would change something, and the disabled ones that do not say why."""
    found = []
    for control in scope.locator("button, input, textarea, select, [role=menuitem]").all():
        if not control.is_visible():
            continue
        name, kind = control.evaluate("(e) => [(e.getAttribute('aria-label') ?? e.textContent).trim(), e.tagName]")
        is_form = re.match(r"(Value|Type) of |Fields as JSON|Name of the field", name) or control.get_attribute("id") == "claims"
        if not is_form and (kind not in ["BUTTON"] or not CHANGING.match(name) or control.get_attribute("role") == "tab"):
            continue
        # The button Run runs a query or a pipeline, and only a pipeline can write.
        if name == "Run" and "run" not in control.get_attribute("class").split():
            continue
        if control.is_enabled() if kind in ["BUTTON", "SELECT"] else control.is_editable():
            found.append(name)
        elif kind == "BUTTON" and "Your role is viewer" not in (control.get_attribute("title") or ""):
            found.append(f"{name}, without a reason")
    return found


def viewers(browser, server):
    """A viewer meets no enabled control that changes something, on any screen, in any menu, and under any key."""
    user = None
    with console(browser, server) as tab:
        enter(tab, "owner", address=DATA + "products/red-mug")
        tab.role("button", "Locked").click()
        token = json.loads(tab.page.evaluate("sessionStorage.getItem('hearth.session')"))["token"]
        user = server.call("POST", "/v1/projects/shop/accounts", {"email": "zoe@example.com", "password": "secret-1"}, token)["localId"]
        server.call("POST", "/upload/storage/v1/b/shop.appspot.com/o?uploadType=media&name=note.txt", {"a": 1}, token)
        then = server.call("GET", "/v1/projects/shop/databases/(default)/documents/products/red-mug", token=token)
        server.call("PATCH", "/v1/projects/shop/databases/(default)/documents/products/red-mug?updateMask.fieldPaths=stock",
                    {"fields": {"stock": {"integerValue": "41"}}}, token)
        moment = server.call("POST", "/v1/projects/shop/databases/(default)/documents:batchGet", {"documents": [then["name"]]}, token)[0]["readTime"]
        server.call("PATCH", "/v1/projects/shop/databases/(default)/documents/products/red-mug?updateMask.fieldPaths=stock",
                    {"fields": {"stock": {"integerValue": "40"}}}, token)
    refused = []
    with console(browser, server) as tab:
        enter(tab, "viewer", address=DATA + "products/red-mug")
        expect(tab.page.get_by_text("viewer, viewer")).to_be_visible()
        tab.page.on("response", lambda response: refused.append(response.url) if response.status == 403 else None)
        for address in VIEWED:
            tab.go("shop/(default)/" + address.format(then=moment, user=user))
            tab.page.wait_for_timeout(500)
            if "view=table" in address:
                tab.page.get_by_label("Select red-mug").click()
                expect(tab.role("button", "Edit field…")).to_be_disabled()
                tab.role("row").filter(has_text="red-mug").get_by_role("gridcell", name="Red mug").dblclick()
                expect(tab.page.locator(".cell-input")).to_have_count(0)
            if "changes=1" in address:
                tab.role("option").first.click()
            if "data/orders" in address:
                expect(tab.page.get_by_label("Value of status")).not_to_be_editable()
            for toggle in tab.page.locator(".node .toggle:visible").all():
                toggle.click()
            if os.environ.get("CONSOLE_SHOTS"):
                tab.page.screenshot(path=pathlib.Path(os.environ["CONSOLE_SHOTS"]) / f"viewer-{VIEWED.index(address)}.png")
            assert enabled_changes(tab.page.locator("body")) == [], (address, enabled_changes(tab.page.locator("body")))
            for menu in tab.page.locator("main [aria-haspopup=menu]:visible").all():
                menu.click()
                assert enabled_changes(tab.page.locator("[role=menu]")) == [], (address, enabled_changes(tab.page.locator("[role=menu]")))
                tab.page.keyboard.press("Escape")
                expect(tab.page.locator("[role=menu]")).to_have_count(0)
            tab.page.locator("body").evaluate("() => document.activeElement.blur()")
            for key in ["n", "Shift+N", "d", "Delete", "Shift+Delete", "F2", "Control+s"]:
                tab.page.keyboard.press(key)
                assert tab.page.locator("dialog[open]").count() == 0, (address, key)
            tab.check_accessibility(f"{address} of a viewer")
        assert refused == [], refused
        # The palette offers no command that changes something.
        tab.page.keyboard.press("Control+k")
        for words in ["new", "delete", "view as", "upload"]:
            tab.page.get_by_role("combobox").fill(words)
            tab.page.wait_for_timeout(200)
            assert not [text for text in tab.page.locator("#palette-list li").all_inner_texts() if "COMMAND" in text.upper()], words


def recording(browser, server):
    """An owner records requests for a while; the screen Why shows each decision, to a viewer too."""
    def ask(path):
        try:
            urllib.request.urlopen(f"{server.app}/v1/projects/shop/databases/(default)/documents/{path}")
        except urllib.error.HTTPError as error:
            assert error.code in [403, 404], error
    ask("products/red-mug")
    with console(browser, server, size=(1280, 760)) as tab:
        enter(tab, "owner", address="shop/(default)/why")
        expect(tab.role("heading", "Requests are not recorded")).to_be_visible()
        tab.check_accessibility("no recording")
        tab.role("button", "Record requests").last.click()
        expect(tab.page.get_by_text("The console is locked against accidents.").first).to_be_visible()
        tab.page.reload()
        tab.role("button", "Locked").click()
        tab.role("button", "Record requests").last.click()
        expect(tab.role("heading", "Waiting for requests")).to_be_visible()
        ask("products/red-mug")
        ask("orders/1001")
        expect(tab.role("option")).to_have_count(2)
        tab.role("option").filter(has_text="orders/1001").click()
        expect(tab.role("region", "The decision")).to_contain_text("does not allow")
        expect(tab.role("status").filter(has_text="Recording: ")).to_contain_text("998 requests left")
        tab.check_accessibility("a recording")
        if os.environ.get("CONSOLE_IMAGES"):
            tab.page.screenshot(path=pathlib.Path(os.environ["CONSOLE_IMAGES"]) / "console-recording.png")
        tab.role("button", "Stop recording").click()
        expect(tab.role("button", "Record requests")).to_be_visible()
        ask("products/red-mug")
        tab.page.reload()
        expect(tab.role("option")).to_have_count(2)
        assert "POST /hearth/v1/recording" in server.logged()
    with console(browser, server) as tab:
        enter(tab, "viewer", address="shop/(default)/why")
        expect(tab.role("option")).to_have_count(2)
        expect(tab.role("button", "Record requests")).to_be_disabled()


def server_screen(browser, server):
    """Keys, operators, a backup, the databases, and a configuration without secrets."""
    with console(browser, server, size=(1280, 900)) as tab:
        enter(tab, "owner", address="shop/(default)/server")
        expect(tab.role("heading", "Configuration")).to_be_visible()
        expect(tab.page.get_by_text('"mail-command": "hidden"')).to_be_visible()
        assert "hunter2" not in tab.page.content()
        tab.role("button", "New key…").click()
        expect(tab.page.get_by_label("Name")).to_be_focused()
        tab.page.get_by_label("Name").fill("backend")
        tab.page.get_by_label("URL at which the program reaches the server").fill("https://db.example.com")
        tab.role("button", "Create the key").click()
        expect(tab.page.get_by_text("The console is locked against accidents.").first).to_be_visible()
        tab.role("button", "Cancel").click()
        tab.role("button", "Locked").click()
        tab.role("button", "New key…").click()
        tab.page.get_by_label("Name").fill("backend")
        tab.page.get_by_label("URL at which the program reaches the server").fill("https://db.example.com")
        tab.role("button", "Create the key").click()
        with tab.page.expect_download() as download:
            tab.role("link", "Save the file").click()
        assert json.loads(pathlib.Path(download.value.path()).read_text())["project_id"] == "shop"
        tab.role("button", "Close").click()
        tab.role("button", "Revoke the key backend").click()
        tab.page.get_by_label("Type backend to confirm").fill("backend")
        tab.role("button", "Revoke the key").last.click()
        expect(tab.page.get_by_text("No program has a key.")).to_be_visible()
        tab.role("button", "New operator…").click()
        tab.page.get_by_label("Name").fill("bob")
        tab.page.get_by_label("Password, 10 characters or more").fill("short")
        tab.role("button", "Add the operator").click()
        expect(tab.role("alert").last).to_contain_text("at least 10 characters")
        tab.page.get_by_label("Password, 10 characters or more").fill("another good one")
        tab.role("button", "Add the operator").click()
        expect(tab.role("button", "Remove bob")).to_be_visible()
        tab.role("button", "Back up now").click()
        expect(tab.page.get_by_text("succeeded", exact=False).first).to_be_visible(timeout=30_000)
        expect(tab.role("region", "List of backups")).to_be_visible(timeout=30_000)
        tab.check_accessibility("server")


def session_end(browser, server):
    """A session that the server ends, by a changed password, leads to the sign-in page, and no data stays on the screen."""
    with console(browser, server) as tab:
        enter(tab, "owner", address=DATA + "products/red-mug")
        expect(tab.page.get_by_text("owner, owner")).to_be_visible()
        server.operators("set", "owner", "--password")
        tab.go("shop/(default)/users")
        expect(tab.role("heading", "Sign in to the console")).to_be_visible()
        expect(tab.page.get_by_text("Your session has ended. Sign in again.")).to_be_visible()
        assert "red-mug" not in tab.page.locator("body").inner_text()


def draft(browser, server):
    """What an operator typed when the session ended is there again after the sign-in, and only for this operator."""
    with console(browser, server) as tab:
        enter(tab, "editor", address=DATA + "products/red-mug")
        tab.role("button", "Locked").click()
        tab.page.get_by_label("Value of name").fill("A new name")
        server.operators("set", "editor", "--password")
        tab.role("button", "Save").click()
        expect(tab.role("heading", "Sign in to the console")).to_be_visible()
        for name, value in [("viewer", "Red mug"), ("editor", "A new name")]:
            tab.page.get_by_label("Name", exact=True).fill(name)
            tab.page.get_by_label("Password").fill(PASSWORD)
            tab.role("button", "Sign in").click()
            expect(tab.page.get_by_text(f"{name}, {name}")).to_be_visible()
            expect(tab.page.get_by_label("Value of name")).to_have_value(value)
            if name == "viewer":
                tab.role("button", "Sign out").click()
        expect(tab.role("button", "Save")).to_be_visible()
        # The page asks before it leaves what is not saved.
        tab.role("button", "Discard").click()


def foreign_project(browser, server):
    """A link to another project leaves the session as it is."""
    with console(browser, server) as tab:
        enter(tab, "viewer", address=DATA)
        expect(tab.page.get_by_text("viewer, viewer")).to_be_visible()
        tab.go("other/(default)/data")
        expect(tab.page.get_by_text("You are signed in to the project shop.").first).to_be_visible()
        tab.go("shop/(default)/data/products/red-mug")
        expect(tab.page.get_by_label("Value of name")).to_have_value("Red mug")


def isolation(browser, server):
    """The app has another origin: its service worker and its pages cannot reach the console."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.app + "/")
    assert page.title() == "App"
    page.evaluate("navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).then(() => true)")
    page.goto(server.url + "/_/console/")
    expect(page.get_by_role("heading", name="Sign in to the console")).to_be_visible()
    assert page.evaluate("navigator.serviceWorker.controller") is None
    page.goto(server.app + "/")
    for script in [
        f"fetch('{server.url}/hearth/v1/session', {{ method: 'POST', body: '{{}}' }}).then((r) => r.status, () => 0)",
        f"fetch('{server.url}/_/console/').then((r) => r.status, () => 0)",
        f"fetch('{server.url}/_/console/', {{ mode: 'no-cors' }}).then((r) => r.type === 'opaque' ? 0 : 1, () => 0)",
    ]:
        assert page.evaluate(script) == 0, script
    framed = page.evaluate(f"""() => new Promise((done) => {{
        const frame = document.createElement("iframe");
        frame.onload = () => {{ let text = ""; try {{ text = frame.contentDocument.body.innerText; }} catch {{ text = "blocked"; }} done(text); }};
        frame.src = "{server.url}/_/console/";
        document.body.append(frame);
    }})""")
    assert "Sign in" not in framed, framed
    context.close()


def sizes(browser, server):
    """Sign-in and the screens at each size, light and dark, without a violation of accessibility."""
    for size in SIZES:
        for scheme in ["light", "dark"]:
            with console(browser, server, size=size, scheme=scheme) as tab:
                tab.page.goto(f"{server.url}/_/console/")
                expect(tab.page.get_by_label("Name")).to_be_visible()
                tab.check_width(f"sign-in, {size}")
                tab.check_accessibility(f"sign-in, {size} {scheme}")
                enter(tab, "viewer", address=DATA)
                for screen in ["server", "rules", "why", "data/products"]:
                    tab.go(f"shop/(default)/{screen}")
                    tab.page.wait_for_timeout(400)
                    tab.check_width(f"{screen}, {size}")
                    tab.check_accessibility(f"{screen}, {size} {scheme}")


def pictures(browser, server):
    """The pictures of docs/console.md, if CONSOLE_IMAGES names a folder."""
    folder = os.environ.get("CONSOLE_IMAGES")
    if not folder:
        return
    with console(browser, server, size=(1280, 760)) as tab:
        tab.page.goto(f"{server.url}/_/console/")
        tab.page.wait_for_timeout(400)
        tab.page.screenshot(path=pathlib.Path(folder) / "console-sign-in.png")
        enter(tab, "owner", address="shop/(default)/server")
        tab.page.wait_for_timeout(1500)
        tab.page.screenshot(path=pathlib.Path(folder) / "console-server.png")


SCENARIOS = [sign_in, roles, recording, viewers, server_screen, isolation, sizes, pictures, draft, foreign_project, throttle, session_end]


def main():
    wanted = sys.argv[3:]
    failures = 0
    server = Production(HEARTH)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scenario in SCENARIOS:
            if wanted and scenario.__name__ not in wanted:
                continue
            began = time.monotonic()
            try:
                scenario(browser, server)
                print(f"passed: {scenario.__name__} ({time.monotonic() - began:.1f} s): {scenario.__doc__}")
            except Exception as error:
                failures += 1
                place = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__][-1]
                print(f"FAIL: {scenario.__name__}, line {place.lineno}: {place.line}\n    {str(error)[:1200]}")
        browser.close()
    server.stop()
    print("console for operators: all scenarios passed" if failures == 0 else f"console for operators: {failures} scenarios failed")
    sys.exit(1 if failures else 0)


main()
