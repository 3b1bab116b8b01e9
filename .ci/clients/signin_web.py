"""Signs in with the Firebase web SDK by pop-up and redirect, in headless Chromium. The pages of the server are the only
ones that the browser reaches: scripts of other hosts are blocked.

usage: signin_web.py HEARTH CHROMIUM SDK [SCREENSHOTS]
    SDK  the browser builds of one release: firebase-app.js and firebase-auth.js
"""

import base64
import hashlib
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

HEARTH, CHROMIUM, SDK = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], pathlib.Path(sys.argv[3])
SHOTS = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
PAGE = """<!DOCTYPE html><html lang="en"><title>An app</title><script src="%(auth)s/__/auth/gapi.js"></script><body>
<script type="module">
import * as app from "/sdk/firebase-app.js";
import * as auth from "/sdk/firebase-auth.js";
const sdk = window.sdk = { ...app, ...auth };
const own = sdk.initializeApp({ projectId: "p", apiKey: "any", authDomain: "%(domain)s" });
window.auth = sdk.initializeAuth(own, {
  persistence: sdk.browserLocalPersistence, popupRedirectResolver: sdk.browserPopupRedirectResolver });
if (%(emulated)s) sdk.connectAuthEmulator(window.auth, "%(auth)s", { disableWarnings: true });
window.begin = (work) => { window.answer = null; work().then(
  (result) => { window.answer = { uid: result && result.user.uid, email: result && result.user.email,
    providers: result && result.user.providerData.map((entry) => entry.providerId) }; window.result = result; },
  (error) => { window.answer = { code: error.code, message: error.message }; window.failure = error; }); };
window.ready = true;
</script></body></html>"""


# The functions of Google's frame library that the SDK and the hidden frame call, over plain messages.
GAPI = """(() => {
const handlers = {}, replies = {};
let count = 0;
const peer = (other) => ({
  register(name, handler) { handlers[name] = handler; },
  send(name, data, reply) {
    count += 1;
    replies[count] = reply || (() => {});
    other().postMessage({ isTest: true, name, id: count, data }, "*");
  },
  ping(reply) { return new Promise((done) => this.send("ping", null, (data) => { if (reply) reply(data); done(data); })); },
  restyle() { return Promise.resolve([]); }
});
window.addEventListener("message", ({ data, source }) => {
  if (!data || !data.isTest) return;
  if (data.reply) { replies[data.reply](data.data); delete replies[data.reply]; return; }
  const answer = handlers[data.name] ? handlers[data.name](data.data) : null;
  source.postMessage({ isTest: true, reply: data.id, data: [answer] }, "*");
});
const context = {
  open(options, opened) {
    const frame = document.createElement("iframe");
    frame.src = options.url;
    options.where.appendChild(frame);
    return new Promise((done) => { frame.onload = () => done(opened(peer(() => frame.contentWindow))); });
  },
  getParentIframe: () => peer(() => window.parent)
};
window.gapi = {
  load: (name, options) => (options.callback || options)(),
  iframes: { Iframe: class {}, CROSS_ORIGIN_IFRAMES_FILTER: () => true, getContext: () => context }
};
const name = new URL(document.currentScript.src).searchParams.get("onload");
if (name) window[name]();
if (window.gapi_onload) window.gapi_onload();
})();"""


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **headers):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class App(Quiet):
    """The pages of the app, and the SDK."""

    pages = {}

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.startswith("/sdk/"):
            return self.reply(200, (SDK / path[5:]).read_bytes(), "text/javascript")
        page = self.pages.get(path)
        return self.reply(200 if page else 404, page or "", "text/html")


class Provider(Quiet):
    """An OpenID provider that signs everybody in as the user in `claims`."""

    claims = {}
    wish = "code"
    codes = {}
    secret = "s3cret"
    folder = None
    jwk = None

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/.well-known/openid-configuration":
            return self.reply(200, json.dumps({
                "issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/keys"}))
        if url.path == "/keys":
            return self.reply(200, json.dumps({"keys": [self.jwk]}))
        if url.path == "/authorize":
            assert query["response_type"] == "code" and query["code_challenge_method"] == "S256", query
            if Provider.wish == "deny":
                back = {"error": "access_denied", "state": query["state"]}
            else:
                code = hashlib.sha256(self.path.encode()).hexdigest()
                Provider.codes[code] = query
                back = {"code": code, "state": query["state"]}
            return self.reply(302, "", Location=query["redirect_uri"] + "?" + urllib.parse.urlencode(back))
        return self.reply(404, "")

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        query = Provider.codes.pop(form["code"], None)
        pair = base64.b64decode(self.headers["Authorization"].split()[1]).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if not query or pair != "web:" + self.secret or challenge != query["code_challenge"]:
            return self.reply(400, json.dumps({"error": "invalid_grant"}))
        now = int(time.time())
        token = self.sign({**Provider.claims, "iss": self.issuer, "aud": "web", "nonce": query["nonce"],
                           "iat": now, "exp": now + 300})
        return self.reply(200, json.dumps({"id_token": token, "access_token": "a-1", "token_type": "Bearer"}))

    def sign(self, claims):
        def text(value):
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
        signed = text(json.dumps({"alg": "RS256", "kid": "k1"}).encode()) + "." + text(json.dumps(claims).encode())
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", f"{self.folder}/provider.key"], input=signed.encode(),
            stdout=subprocess.PIPE, check=True).stdout
        return signed + "." + text(signature)


def serve(handler, folder=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/tls.pem", f"{folder}/tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def start(*options, cwd=None):
    """Starts a server, and returns its process and port."""
    process = subprocess.Popen(
        [HEARTH, "serve", "--port", "0", *options], stdout=subprocess.PIPE, stderr=sys.stderr, text=True, cwd=cwd)
    line = process.stdout.readline()
    return process, int(re.search(r":(\d+)$", line.strip()).group(1))


class Session:
    """A page of the app, and what a user does in it."""

    def __init__(self, browser, url, auth_port, has_google=False):
        self.has_google = has_google
        self.context = browser.new_context(ignore_https_errors=True)
        self.context.route("https://**/*", self.other_hosts)
        self.auth_port = auth_port
        self.url = url
        self.blocked = []
        self.page = self.context.new_page()
        self.problems = []
        self.context.on("console", lambda line: self.problems.append(line.text) if "Content Security" in line.text else None)
        self.page.goto(url)
        self.page.wait_for_function("window.ready")

    def other_hosts(self, route):
        url = urllib.parse.urlsplit(route.request.url)
        if url.hostname == "localhost":
            return route.continue_()
        if url.hostname in ("identitytoolkit.googleapis.com", "securetoken.googleapis.com"):
            # In production, a name in DNS leads these hosts to the server, or a setting of the app.
            request = urllib.request.Request(
                f"https://localhost:{self.auth_port}/{url.hostname}{url.path}?{url.query}", route.request.post_data_buffer,
                {name: value for name, value in route.request.headers.items() if name != "accept-encoding"},
                method=route.request.method)
            try:
                answer = urllib.request.urlopen(request, timeout=20, context=ssl._create_unverified_context())
            except urllib.error.HTTPError as error:
                answer = error
            return route.fulfill(status=answer.status, headers=dict(answer.headers), body=answer.read())
        if self.has_google and url.hostname == "apis.google.com":
            return route.fulfill(content_type="text/javascript", body=GAPI)
        self.blocked.append(route.request.url)
        return route.abort()

    def answer(self, page=None):
        page = page or self.page
        page.wait_for_function("window.answer", timeout=20_000)
        return page.evaluate("window.answer")

    def popup(self, code):
        """Runs code in the page that opens a pop-up, and returns the pop-up."""
        with self.page.expect_popup() as opened:
            self.page.evaluate("window.begin(() => { const { " + ", ".join(NAMES) + " } = sdk; return " + code + "; })")
        opened.value.wait_for_load_state()
        return opened.value

    def run(self, code):
        self.page.evaluate("window.begin(() => { const { " + ", ".join(NAMES) + " } = sdk; return " + code + "; })")
        return self.answer()


NAMES = [
    "GoogleAuthProvider", "GithubAuthProvider", "OAuthProvider", "EmailAuthProvider", "signInWithPopup",
    "signInWithRedirect", "getRedirectResult", "linkWithPopup", "linkWithRedirect", "linkWithCredential",
    "reauthenticateWithPopup", "signInWithCredential", "signInWithEmailAndPassword", "createUserWithEmailAndPassword",
    "signInAnonymously", "signOut",
]
GOOGLE = "new GoogleAuthProvider()"
passed = 0


def check(name, condition, detail=""):
    global passed
    if not condition:
        print(f"FAIL {name}: {detail}")
        sys.exit(1)
    passed += 1
    print(f"ok   {name}")


def shot(page, name, dark=False):
    if SHOTS:
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.screenshot(path=str(SHOTS / f"{name}.png"))


def add_account(page, email="", name="", verified=True):
    if page.locator("#add").is_visible():
        page.click("#add")
    page.fill("#email", email)
    page.fill("#name", name)
    page.locator("#verified").set_checked(verified)
    page.click("#submit")


def emulator(browser):
    process, port = start("--emulator", "--in-memory", "--quiet", "--one-port", "--project", "p")
    try:
        app_port = serve(App)
        auth = f"http://localhost:{port}"
        App.pages["/app"] = PAGE % {"auth": auth, "domain": "p.example.com", "emulated": "true"}
        s = Session(browser, f"http://localhost:{app_port}/app", port)
        pop = s.popup(f"signInWithPopup(auth, {GOOGLE})")
        pop.set_viewport_size({"width": 520, "height": 640})
        check("the first account is described at once", pop.evaluate("document.activeElement.id") == "email")
        shot(pop, "emulator-new")
        pop.fill("#email", "not an address")
        pop.click("#submit")
        check("a wrong address is explained", pop.locator("#email-error").text_content().startswith("Enter"))
        shot(pop, "emulator-wrong", dark=True)
        pop.click("#generate")
        pop.keyboard.press("Enter")
        first = s.answer()
        check("a generated account signs in by pop-up", first.get("providers") == ["google.com"], first)
        check("the pop-up closes", pop.is_closed() or pop.wait_for_event("close") or True)
        check("the credential of the result has a token", s.page.evaluate(
            "sdk.GoogleAuthProvider.credentialFromResult(result).idToken.length > 20"))

        s.run("signOut(auth).then(() => null)")
        pop = s.popup(f"signInWithPopup(auth, {GOOGLE})")
        shot(pop, "emulator-choose")
        pop.keyboard.press("Tab")
        pop.keyboard.press("Enter")
        check("an existing account signs in by the keyboard", s.answer().get("uid") == first["uid"])

        pop = s.popup(f"reauthenticateWithPopup(auth.currentUser, {GOOGLE})")
        pop.click(".account")
        check("a user signs in again", s.answer().get("uid") == first["uid"], s.answer())
        pop = s.popup(f"reauthenticateWithPopup(auth.currentUser, {GOOGLE})")
        add_account(pop, "other@example.com", "Other")
        check("another user cannot", s.answer().get("code") == "auth/user-mismatch", s.answer())

        pop = s.popup(f"signInWithPopup(auth, {GOOGLE})")
        pop.get_by_role("button", name="Cancel").click()
        check("cancelling is reported", s.answer().get("code") == "auth/popup-closed-by-user", s.answer())

        s.run("createUserWithEmailAndPassword(auth, 'ann@example.com', 'secret-1')")
        pop = s.popup(f"linkWithPopup(auth.currentUser, {GOOGLE})")
        add_account(pop, "ann.private@example.com", "Ann")
        linked = s.answer()
        check("an account is linked", sorted(linked.get("providers", [])) == ["google.com", "password"], linked)

        s.run("signInAnonymously(auth)")
        pop = s.popup(f"linkWithPopup(auth.currentUser, {GOOGLE})")
        pop.get_by_role("button", name="ann.private@example.com").click()
        check("a linked identity is not linked again", s.answer().get("code") == "auth/credential-already-in-use", s.answer())
        again = s.run("signInWithCredential(auth, GoogleAuthProvider.credentialFromError(window.failure))")
        check("its credential signs in", again.get("uid") == linked["uid"], again)

        s.run("createUserWithEmailAndPassword(auth, 'bob@example.com', 'secret-1')")
        bob = s.answer()["uid"]
        for provider, kind in (("GoogleAuthProvider", "google.com"), ("GithubAuthProvider", "github.com")):
            pop = s.popup(f"signInWithPopup(auth, new {provider}())")
            add_account(pop, "bob@example.com", "Bob", verified=False)
            check(f"another account with the address is reported ({kind})",
                  s.answer().get("code") == "auth/account-exists-with-different-credential", s.answer())
            s.page.evaluate(f"window.credential = sdk.{provider}.credentialFromError(window.failure)")
            s.run("signInWithEmailAndPassword(auth, 'bob@example.com', 'secret-1')")
            both = s.run("linkWithCredential(auth.currentUser, window.credential)")
            check(f"the user links it after the password ({kind})",
                  both.get("uid") == bob and kind in both["providers"], both)

        s.page.evaluate(f"sdk.signInWithRedirect(auth, new sdk.GoogleAuthProvider()); 0")
        s.page.wait_for_url("**/emulator/auth/handler**")
        s.page.get_by_role("button", name="ann.private@example.com").click()
        s.page.wait_for_url("**/app")
        s.page.wait_for_function("window.ready")
        check("a redirect signs in", s.run("getRedirectResult(auth)").get("uid") == linked["uid"], s.answer())
        check("a result is returned once", s.run("getRedirectResult(auth)").get("uid") is None, s.answer())
        s.page.evaluate(f"sdk.signInWithRedirect(auth, new sdk.GoogleAuthProvider()); 0")
        s.page.wait_for_url("**/emulator/auth/handler**")
        s.page.get_by_role("button", name="Cancel").first.click()
        s.page.wait_for_url("**/app")
        s.page.wait_for_function("window.ready")
        check("a cancelled redirect is reported",
              s.run("getRedirectResult(auth)").get("code") == "auth/user-cancelled", s.answer())
        check("no script of another host was needed", s.blocked == [], s.blocked)
        check("no policy of a page was violated", s.problems == [], s.problems)
        App.pages["/plain"] = App.pages["/app"].replace("/__/auth/gapi.js", "/missing.js")
        g = Session(browser, f"http://localhost:{app_port}/plain", port, has_google=True)
        pop = g.popup(f"signInWithPopup(auth, {GOOGLE})")
        pop.get_by_role("button", name="ann.private@example.com").click()
        check("without the loader, the frame uses Google's library", g.answer().get("uid") == linked["uid"], g.answer())
        check("no policy of the frame was violated", g.problems == [], g.problems)
        g.page.evaluate("sdk.signInWithRedirect(auth, new sdk.GoogleAuthProvider()); 0")
        g.page.wait_for_url("**/emulator/auth/handler**")
        g.page.get_by_role("button", name="ann.private@example.com").click()
        g.page.wait_for_url("**/plain")
        g.page.wait_for_function("window.ready")
        check("without the loader, a redirect signs in", g.run("getRedirectResult(auth)").get("uid") == linked["uid"])
        g.context.close()
        b = Session(browser, f"http://localhost:{app_port}/plain", port)
        failed = b.run(f"signInWithPopup(auth, {GOOGLE})").get("code")
        check(f"without both, the app gets an error ({failed})", failed is not None)
        b.context.close()

        s.page.goto(f"{auth}/emulator/auth/handler?apiKey=a&appName=b&authType=signInViaRedirect&providerId=google.com"
                    "&redirectUrl=javascript:alert(1)")
        check("a script is not a page", "auth/unauthorized-domain" in s.page.content())
        shot(s.page, "failure")
        s.page.goto(f"{auth}/emulator/auth/handler?apiKey=a&appName=b&authType=signInViaPopup&providerId=%3Cb%3Ex"
                    "&redirectUrl=http://localhost/")
        check("the name of a provider is text", s.page.locator("b").count() == 0)
        s.context.close()
    finally:
        process.terminate()
        process.wait()


def production(browser):
    folder = tempfile.mkdtemp()
    for command in (
        f"openssl genrsa -out {folder}/provider.key 2048",
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        f" -keyout {folder}/tls.key -out {folder}/tls.pem",
    ):
        subprocess.run(command.split(), check=True, stderr=subprocess.DEVNULL)
    modulus = subprocess.run(
        ["openssl", "rsa", "-in", f"{folder}/provider.key", "-noout", "-modulus"], stdout=subprocess.PIPE, check=True
    ).stdout.decode().strip().split("=")[1]
    Provider.folder = folder
    Provider.jwk = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "e": "AQAB",
                    "n": base64.urlsafe_b64encode(bytes.fromhex(modulus)).decode().rstrip("=")}
    provider_port = serve(Provider)
    (pathlib.Path(folder) / "provider.secret").write_text(Provider.secret + "\n")
    (pathlib.Path(folder) / "hearth.json").write_text(json.dumps({"project": "p", "providers": {
        "oidc.work": {"issuer": f"http://127.0.0.1:{provider_port}", "clientId": "web",
                      "clientSecretFile": "provider.secret"}}}))
    work = "new OAuthProvider('oidc.work')"
    for emulated in (True, False):
        tls = [] if emulated else ["--tls-cert", "tls.pem", "--tls-key", "tls.key"]
        process, port = start("--in-memory", "--quiet", *tls, cwd=folder)
        how = "connectAuthEmulator" if emulated else "authDomain"
        try:
            # Browsers give a frame the storage of its top-level page only if both are of one site and scheme.
            app_port = serve(App, None if emulated else folder)
            scheme = "http" if emulated else "https"
            auth = f"{scheme}://localhost:{port}"
            App.pages["/app"] = PAGE % {
                "auth": auth, "domain": f"localhost:{port}", "emulated": "true" if emulated else "false"}
            s = Session(browser, f"{scheme}://localhost:{app_port}/app", port)
            Provider.wish = "code"
            Provider.claims = {"sub": "w1", "email": "dora@example.com", "email_verified": True, "name": "Dora"}
            s.popup(f"signInWithPopup(auth, {work})")
            dora = s.answer()
            check(f"{how}: a pop-up signs in", dora.get("providers") == ["oidc.work"], dora)
            check(f"{how}: the app gets the access token", s.page.evaluate(
                "sdk.OAuthProvider.credentialFromResult(result).accessToken") == "a-1")
            s.popup(f"reauthenticateWithPopup(auth.currentUser, {work})")
            check(f"{how}: the user signs in again", s.answer().get("uid") == dora["uid"], s.answer())
            Provider.wish = "deny"
            s.popup(f"signInWithPopup(auth, {work})")
            check(f"{how}: a refusal is reported", s.answer().get("code") == "auth/user-cancelled", s.answer())
            Provider.wish = "code"
            s.popup("signInWithPopup(auth, new OAuthProvider('oidc.other'))")
            check(f"{how}: an unknown provider is reported",
                  s.answer().get("code") == "auth/operation-not-allowed", s.answer())
            s.run("createUserWithEmailAndPassword(auth, 'eve@example.com', 'secret-1')")
            Provider.claims = {"sub": "w2", "email": "eve@example.com", "email_verified": False}
            s.popup(f"signInWithPopup(auth, {work})")
            check(f"{how}: another account with the address is reported",
                  s.answer().get("code") == "auth/account-exists-with-different-credential", s.answer())
            s.page.evaluate("window.credential = sdk.OAuthProvider.credentialFromError(window.failure)")
            s.run("signInWithEmailAndPassword(auth, 'eve@example.com', 'secret-1')")
            both = s.run("linkWithCredential(auth.currentUser, window.credential)")
            check(f"{how}: the user links it after the password", "oidc.work" in both.get("providers", []), both)
            s.run("linkWithCredential(auth.currentUser, window.credential)")
            check(f"{how}: a credential works once", s.answer().get("code") is not None, s.answer())
            Provider.claims = {"sub": "w1"}
            s.page.evaluate("sdk.signInWithRedirect(auth, new sdk.OAuthProvider('oidc.work')); 0")
            s.page.wait_for_url("**/app")
            s.page.wait_for_function("window.ready")
            check(f"{how}: a redirect signs in", s.run("getRedirectResult(auth)").get("uid") == dora["uid"], s.answer())
            check(f"{how}: no script of another host was needed", s.blocked == [], s.blocked)
            check(f"{how}: no cookie stays", [c["name"] for c in s.context.cookies() if "hearth" in c["name"]] == [])
            check(f"{how}: no policy of a page was violated", s.problems == [], s.problems)
            if emulated:
                foreign = "&".join([
                    "apiKey=any", "appName=x", "authType=signInViaRedirect", "providerId=oidc.work",
                    "redirectUrl=https://evil.example/"])
                s.page.goto(f"{auth}/__/auth/handler?{foreign}")
                check("a foreign page gets nothing", "auth/unauthorized-domain" in s.page.content())
            s.context.close()
        finally:
            process.terminate()
            process.wait()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    emulator(chromium)
    production(chromium)
    chromium.close()
print(f"{passed} passed")
