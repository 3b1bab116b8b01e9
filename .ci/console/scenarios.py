"""Drives the console in a real browser.

usage: scenarios.py HEARTH CHROMIUM [SCENARIO…]
"""

import os
import pathlib
import struct
import sys
import tempfile
import time
import traceback
import urllib.parse
import zlib

from playwright.sync_api import expect, sync_playwright

from console import DATA, SIZES, Server, console, text
from modules import modules
from paint import first_paint
from workflows import csv_files, many_at_once, past, pipelines, rule_tests, rule_trial

HEARTH, CHROMIUM = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOP = ["--import", str(ROOT / "fixtures/shop.json"), "--rules", str(ROOT / "rules/shop.rules")]
SCREENS = ["data/products/red-mug", "data/products?view=table", "data/products/red-mug?at={then}", "query", "query?p=collection%20products",
           "why", "rules", "users", "files", "health"]


def first_contact(browser):
    """An empty server: the sample, a file, and a snippet; then rows without a click."""
    server = Server(HEARTH)
    try:
        with console(browser, server) as tab:
            tab.page.goto(server.url + "/")
            assert "/_/console/" in tab.page.url
            expect(tab.role("heading", "This database is empty")).to_be_visible()
            expect(tab.page.locator("pre.code")).to_contain_text("connectFirestoreEmulator")
            tab.role("tab", "Python").click()
            expect(tab.page.locator("pre.code")).to_contain_text("firestore.Client(project=\"demo\")")
            tab.check_accessibility("empty database")
            tab.role("button", "Load a sample").click()
            expect(tab.role("link", "products", exact=True)).to_be_visible()
            expect(tab.role("option")).to_have_count(2)
            assert server.fields("products/red-mug")["price"] == {"doubleValue": 12.5}
            assert server.fields("products/red-mug/reviews/ann")["stars"] == {"integerValue": "5"}
            # The order refers to a product of the same database.
            assert server.fields("orders/1001/items/1")["product"]["referenceValue"].endswith("/products/red-mug")
        with console(browser, server) as tab:
            tab.open("demo/other/data")
            tree = '{"$collections": ["big"], "big": {"one": {"n": 9007199254740993}}}'
            tab.page.set_input_files("input[type=file]", {
                "name": "tree.json", "mimeType": "application/json", "buffer": tree.encode()})
            expect(tab.role("option").filter(has_text="one")).to_be_visible()
            found = server.call("GET", server.documents("/big/one", "other"))
            assert found["fields"]["n"] == {"integerValue": "9007199254740993"}, found
            # The same collection as a file, which can be imported again.
            tab.role("button", "More about big").click()
            with tab.page.expect_download() as download:
                tab.role("menuitem", "Export as lines of JSON").click()
            written = pathlib.Path(download.value.path()).read_text()
            assert written == '{"path": "big/one", "fields": { "n": 9007199254740993 }}\n', written
    finally:
        server.stop()


def imports_of_csv(browser, server):
    with tempfile.TemporaryDirectory() as folder:
        csv_files(browser, server, HEARTH, pathlib.Path(folder))


imports_of_csv.__doc__ = csv_files.__doc__


def documents(browser, server):
    """Create, edit each type, rename, duplicate and delete, and undo each."""
    with console(browser, server) as tab:
        # The browser reports the conflict that the scenario causes.
        tab.expected = ["409"]
        tab.open(DATA + "products/red-mug")
        stock = tab.page.get_by_label("Value of stock")
        expect(stock).to_have_value("40")
        stock.fill("many")
        expect(tab.role("alert").filter(has_text="write a whole number").first).to_be_visible()
        expect(tab.role("button", "Save")).to_be_disabled()
        stock.fill("9007199254740993")
        tab.page.keyboard.press("Control+s")
        expect(tab.page.get_by_text("Saved products/red-mug")).to_be_visible()
        assert server.fields("products/red-mug")["stock"] == {"integerValue": "9007199254740993"}
        tab.role("button", "Undo").click()
        expect(stock).to_have_value("40")
        assert server.fields("products/red-mug")["stock"] == {"integerValue": "40"}

        # Types: a new field of each kind, by the editor.
        for name, kind, value, expected in [
            ("seen", "timestamp", "2025-03-27T14:30:00.123456Z", {"timestampValue": "2025-03-27T14:30:00.123456Z"}),
            ("best", "reference", "customers/ann", None), ("at", "geo", "45.5, 9.25", None),
            ("rate", "double", "NaN", {"doubleValue": "NaN"}), ("raw", "bytes", "aGVsbG8=", {"bytesValue": "aGVsbG8="}),
            ("embedding", "vector", "1, 0.5", None), ("is on", "boolean", None, {"booleanValue": False}),
            ("gone", "null", None, {"nullValue": None}),
        ]:
            tab.role("button", "Field", exact=True).click()
            tab.page.get_by_label("Name of the field").last.fill(name)
            tab.page.get_by_label("Type of ").last.select_option(kind)
            if value:
                tab.page.locator(".fields .node").last.locator(".entry input").fill(value)
            tab.role("button", "Save").click()
            expect(tab.role("button", "Save")).to_have_count(0)
            found = server.fields("products/red-mug")[name]
            assert expected is None or found == expected, (name, found)
        assert server.fields("products/red-mug")["at"] == {"geoPointValue": {"latitude": 45.5, "longitude": 9.25}}
        assert server.fields("products/red-mug")["best"]["referenceValue"].endswith("/documents/customers/ann")

        # JSON shows the same document, and saves the same way.
        tab.role("tab", "JSON").click()
        area = tab.page.get_by_label("Fields as JSON")
        assert '{"$double": "NaN"}' in area.input_value() and '{"$vector": [1, 0.5]}' in area.input_value()
        area.fill("{")
        expect(tab.page.locator(".problem").filter(has_text="JSON").first).to_be_visible()
        area.fill('{"name": "Cup", "stock": 7, "tags": ["a"]}')
        tab.page.keyboard.press("Control+s")
        expect(tab.role("button", "Save")).to_have_count(0)
        assert server.fields("products/red-mug") == {
            "name": text("Cup"), "stock": {"integerValue": "7"}, "tags": {"arrayValue": {"values": [text("a")]}}}
        tab.role("tab", "Fields").click()

        def menu(item):
            tab.role("button", "More about this document").click()
            tab.role("menuitem", item).click()

        menu("Duplicate D")
        expect(tab.page.get_by_text("Created products/")).to_be_visible()
        copied = tab.page.url.split("/")[-1]
        assert server.fields("products/" + copied)["name"] == text("Cup")
        menu("Rename…")
        tab.page.get_by_label("New id").fill("blue-mug")
        tab.role("button", "Rename").click()
        expect(tab.page.get_by_text("blue-mug exists already.")).to_be_visible()
        tab.page.get_by_label("New id").fill("cup")
        tab.role("button", "Rename").click()
        expect(tab.page.get_by_text(f"Renamed {copied} to cup")).to_be_visible()
        assert server.fields("products/cup")["name"] == text("Cup")
        menu("Delete…")
        expect(tab.page.get_by_text("Deleted products/cup")).to_be_visible()
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Deleted products/cup")).to_be_visible()
        assert server.fields("products/cup")["name"] == text("Cup")

        # What has documents below is counted, and the name must be typed.
        tab.go(DATA + "orders/1001")
        tab.page.get_by_label("Value of total").wait_for()
        menu("Delete…")
        expect(tab.page.get_by_text("everything below it: 3 documents")).to_be_visible()
        expect(tab.role("button", "Delete 3 documents")).to_be_disabled()
        tab.page.get_by_label("Type 1001 to confirm").fill("1001")
        tab.role("button", "Delete 3 documents").click()
        expect(tab.page.get_by_text("Deleted 3 documents at orders/1001")).to_be_visible()
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Deleted 3 documents at orders/1001")).to_be_visible()
        assert server.fields("orders/1001/items/1")["quantity"]


def live(browser, server):
    """Two tabs and a client see each other's changes; a conflict loses nothing."""
    with console(browser, server) as one, console(browser, server) as two:
        for tab in (one, two):
            tab.open(DATA + "products/notebook")
            expect(tab.page.get_by_label("Value of stock")).to_have_value("120")
            expect(tab.role("button", "live")).to_be_visible()
        one.page.get_by_label("Value of stock").fill("119")
        one.role("button", "Save").click()
        expect(two.page.get_by_label("Value of stock")).to_have_value("119")
        server.put("products/another", {"name": text("Another")})
        for tab in (one, two):
            expect(tab.role("option", "another")).to_be_visible()
        # Both change the document: the second one is told, and keeps what was typed.
        two.page.get_by_label("Value of stock").fill("1")
        one.page.get_by_label("Value of stock").fill("118")
        one.role("button", "Save").click()
        expect(two.page.get_by_text("This document was changed meanwhile.")).to_be_visible()
        expect(two.page.get_by_label("Value of stock")).to_have_value("1")
        two.role("button", "Keep mine").click()
        two.role("button", "Save").click()
        expect(one.page.get_by_label("Value of stock")).to_have_value("1")


def query(browser, server):
    """The builder, its results, the plan, and the code."""
    with console(browser, server) as tab:
        tab.open("demo/(default)/query")
        tab.page.get_by_label("Collection", exact=True).fill("products")
        tab.role("button", "Condition").click()
        tab.page.get_by_label("Field", exact=True).fill("category")
        tab.page.get_by_label("Value", exact=True).fill("kitchen")
        tab.role("button", "Order").click()
        tab.page.get_by_label("Field to sort by").fill("price")
        tab.page.get_by_label("Direction").select_option("desc")
        tab.role("button", "Run").click()
        rows = tab.page.locator("tbody tr")
        expect(rows).to_have_count(4)
        expect(rows.first).to_contain_text("tea-pot")
        expect(tab.role("status").filter(has_text="4 results")).to_be_visible()
        tab.role("tab", "JSON").click()
        expect(tab.page.locator("pre.code")).to_contain_text('"products/tea-pot": {')
        tab.role("tab", "Chart").click()
        expect(tab.page.locator("svg.chart").first).to_be_visible()
        tab.role("tab", "Plan").click()
        expect(tab.page.get_by_text('"collectionGroup": "products"')).to_be_visible()
        expect(tab.page.get_by_text('"order": "DESCENDING"')).to_be_visible()
        tab.role("tab", "Code").click()
        for language, part in [
            ("hearth", "hearth query products --where 'category == \"kitchen\"' --order price:desc"),
            ("REST", ":runQuery"), ("JavaScript", 'orderBy("price", "desc")'), ("Python", "FieldFilter"),
            ("Swift", '.where("category", .equal, "kitchen")'),
        ]:
            tab.role("tab", language, exact=True).click()
            expect(tab.page.locator("pre.code")).to_contain_text(part)
        # The address contains the query: a reload shows the same.
        tab.page.reload()
        expect(rows).to_have_count(4)
        tab.page.get_by_label("Result", exact=True).select_option("count")
        expect(tab.page.locator(".number")).to_have_text("4")
        tab.page.get_by_label("Result", exact=True).select_option("sum")
        tab.page.get_by_label("Field to aggregate").fill("price")
        tab.role("button", "Run").click()
        expect(tab.page.locator(".number")).to_have_text("78.9")


def why(browser, server):
    """A denial of an app, its reason, and the rights of a user."""
    ann = server.token("ann")
    for path in ["/orders/1001", "/orders/1002"]:
        try:
            server.call("GET", server.documents(path), token=ann)
        except OSError:
            pass
    with console(browser, server) as tab:
        tab.open("demo/(default)/why")
        denied = tab.role("option").filter(has_text="orders/1002").first
        denied.click()
        expect(tab.page.locator(".source")).to_contain_text("allow read: if isUser(resource.data.customer) || isStaff();")
        expect(tab.page.locator(".trace")).to_contain_text('resource.data.customer → "ben"')
        tab.check_accessibility("why")
        tab.role("tab", "Denied").click()
        expect(tab.role("option").filter(has_text="orders/1001")).to_have_count(0)
        # The data screens with the rights of a user.
        tab.expected = ["403"]
        tab.go(DATA + "orders/1002")
        tab.page.get_by_label("Value of total").wait_for()
        tab.role("button", "admin", exact=True).click()
        tab.page.get_by_label("User id").fill("ann")
        tab.role("button", "View as this user").click()
        expect(tab.page.get_by_text("You see the data as")).to_be_visible()
        expect(tab.role("heading", "Not allowed").first).to_be_visible()
        tab.role("button", "Back to administrator").click()
        tab.page.get_by_label("Value of total").wait_for()


def rules(browser, server):
    """Diagnostics while typing, a replay, and new rules in force."""
    ann = server.token("ann")
    server.call("GET", server.documents("/customers/ann"), token=ann)
    with console(browser, server) as tab:
        tab.open("demo/(default)/rules")
        editor = tab.page.get_by_label("Rules", exact=True)
        original = editor.input_value()
        assert "match /customers/{uid}" in original
        editor.fill(original.replace("isStaff();", "isStff();", 1))
        expect(tab.page.locator(".problems")).to_contain_text("isStff")
        expect(tab.page.locator(".squiggle").first).to_be_visible()
        editor.fill(original.replace("allow read, write: if isUser(uid);", "allow read, write: if false;"))
        expect(tab.page.locator(".problems button")).to_have_count(0)
        tab.role("button", "Replay requests").first.click()
        expect(tab.page.get_by_text("decisions would change")).to_be_visible()
        tab.role("button", "Apply").click()
        expect(tab.role("heading", "Put these rules in force?")).to_be_visible()
        tab.role("button", "Apply the rules").click()
        expect(tab.page.get_by_text("The rules are in force until the server stops.")).to_be_visible()
        try:
            server.call("GET", server.documents("/customers/ann"), token=ann)
            raise AssertionError("the new rules are not in force")
        except OSError:
            pass
        tab.role("tab", "Coverage").click()
        expect(tab.page.get_by_text("conditions were evaluated")).to_be_visible()
        editor.fill(original)
        tab.page.keyboard.press("Control+s")
        tab.role("button", "Apply the rules").click()
        expect(tab.page.get_by_text("The rules are in force until the server stops.")).to_be_visible()


def picture():
    rows = b"".join(b"\0" + bytes(value for x in range(320) for value in (190 + x // 8, 90 + y // 3, 60)) for y in range(200))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 320, 200, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def people_and_files(browser, server):
    """Accounts and files."""
    with console(browser, server) as tab:
        tab.open("demo/(default)/users")
        tab.role("button", "User", exact=True).click()
        tab.page.get_by_label("Email", exact=True).fill("mia@example.com")
        tab.page.get_by_label("Password, 6").fill("secret1")
        tab.page.get_by_label("User id, or nothing").fill("mia")
        tab.role("button", "Create", exact=True).click()
        expect(tab.role("heading", "mia@example.com")).to_be_visible()
        tab.page.get_by_label("Claims, as JSON").fill("{")
        expect(tab.page.get_by_text("The claims are not valid")).to_be_visible()
        tab.page.get_by_label("Claims, as JSON").fill('{"staff": true}')
        tab.role("button", "Save the claims").click()
        expect(tab.page.get_by_text("Saved the claims")).to_be_visible()
        tab.role("button", "Disable").click()
        expect(tab.role("button", "Enable")).to_be_visible()
        tab.check_accessibility("a user")
        found = server.call("POST", "/v1/projects/demo/accounts:lookup", {"localId": ["mia"]})["users"][0]
        assert found["disabled"] and found["customAttributes"] == '{"staff": true}', found
        tab.role("button", "Delete…").click()
        tab.role("button", "Delete the user").click()
        expect(tab.page.get_by_text("Deleted the user")).to_be_visible()

        tab.go("demo/(default)/files/demo.appspot.com/pictures")
        tab.page.locator("input[type=file]").set_input_files([
            {"name": "a.png", "mimeType": "image/png", "buffer": picture()},
            {"name": "note.txt", "mimeType": "text/plain", "buffer": b"<b>hello</b>"}])
        tab.role("button", "a.png").click()
        tab.page.locator(".preview-box img").wait_for()
        while tab.page.evaluate("document.querySelector('.preview-box img')?.naturalWidth") != 320:
            tab.page.wait_for_timeout(20)
        tab.check_accessibility("a file")
        tab.role("button", "note.txt").click()
        expect(tab.page.locator(".preview-box")).to_have_text("<b>hello</b>")
        tab.role("button", "Buckets").click()
        tab.role("menuitem", "New bucket…").click()
        tab.page.get_by_label("Name", exact=True).fill("pictures")
        tab.role("button", "Create").click()
        tab.page.wait_for_url("**/files/pictures")
        tab.role("button", "Buckets").click()
        tab.role("menuitemradio", "Keep old versions").click()
        expect(tab.page.get_by_text("Old versions are kept from now on")).to_be_visible()
        assert server.call("GET", "/storage/v1/b/pictures")["versioning"]["enabled"]
        tab.role("button", "Buckets").click()
        tab.role("menuitem", "Delete the bucket…").click()
        tab.role("button", "Delete the bucket").click()
        expect(tab.page.get_by_text("Deleted the bucket")).to_be_visible()
        tab.go("demo/(default)/files/demo.appspot.com/pictures?file=pictures%2Fnote.txt")
        tab.role("button", "Delete…").click()
        tab.role("button", "Delete the file").click()
        expect(tab.role("button", "note.txt")).to_have_count(0)


def hostile(browser, server):
    """Names and values that pretend to be markup stay text."""
    evil = '<img src=x onerror="window.hacked=1">'
    server.put("evil/" + "%3Cscript%3Ewindow.hacked=1%3Cscript%3E", {
        evil: text(evil), "name": text(evil), "flip": text("a\u202egnp.exe"),
        "link": text("java" + "script:window.hacked=1"), "deep": {"mapValue": {"fields": {evil: {"arrayValue": {"values": [text(evil)]}}}}}})
    server.call("POST", "/upload/storage/v1/b/demo.appspot.com/o?uploadType=media&name=evil.svg",
                b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.hacked=1</script></svg>', kind="image/svg+xml")
    server.call("POST", "/upload/storage/v1/b/demo.appspot.com/o?uploadType=media&name=%3Cb%3E.js", b"window.hacked=1",
                kind="text/javascript")
    with console(browser, server) as tab:
        tab.open(DATA + "evil")
        row = tab.role("option").first
        expect(row).to_contain_text(evil)
        row.click()
        expect(tab.page.get_by_label("Value of flip")).to_be_visible()
        tab.role("tab", "JSON").click()
        tab.go(DATA + "evil?view=table")
        tab.role("gridcell").first.wait_for()
        tab.page.wait_for_timeout(200)
        assert "⟨U+202E⟩" in tab.page.content()
        tab.go("demo/(default)/query?q=%7B%22path%22%3A%22evil%22%7D")
        tab.page.locator("tbody tr").first.wait_for()
        tab.go("demo/(default)/files/demo.appspot.com")
        tab.role("button", "evil.svg").click()
        tab.page.locator(".preview-box img").wait_for()
        tab.role("button", "<b>.js").click()
        expect(tab.page.locator(".preview-box")).to_have_text("window.hacked=1")
        assert tab.page.evaluate("window.hacked") is None
        # An injected script of this origin, such as an uploaded file, does not run.
        tab.expected = ["Content Security Policy", "policy:", "TrustedScriptURL", "Refused"]
        tab.page.evaluate("""() => new Promise((done) => {
            const script = document.createElement("script");
            script.onerror = script.onload = done;
            try { script.src = "/v0/b/demo.appspot.com/o/%3Cb%3E.js?alt=media"; document.body.append(script); } catch { done(); }
            setTimeout(done, 500);
        })""")
        assert tab.page.evaluate("window.hacked") is None
        tab.page.goto("about:blank")


def keys(browser, server):
    """A collection, a document, a query and an undo, with the keyboard only."""
    with console(browser, server) as tab:
        tab.open("demo/(default)/data/products")
        tab.role("option").first.wait_for()
        press, kind = tab.page.keyboard.press, tab.page.keyboard.type
        press("Shift+N")
        kind("trips")
        press("Tab")
        kind("rome")
        press("Tab")
        press("Control+a")
        kind('{"days": 3}')
        press("Tab")
        press("Tab")
        press("Enter")
        expect(tab.page.get_by_text("Created trips/rome")).to_be_visible()
        assert server.fields("trips/rome") == {"days": {"integerValue": "3"}}
        press("Control+z")
        expect(tab.page.get_by_text("Undone: Created trips/rome")).to_be_visible()
        press("Control+k")
        kind("products/red")
        tab.page.get_by_role("option", name="products/red-mug").wait_for()
        press("Enter")
        tab.page.get_by_label("Value of name").wait_for()
        tab.page.get_by_label("Documents of products", exact=True).last.focus()
        press("ArrowDown")
        tab.page.wait_for_url("**/products/tea-pot")
        press("End")
        tab.page.wait_for_url("**/products/water-bottle")
        press("v")
        tab.role("columnheader", "price").wait_for()
        press("g")
        press("q")
        tab.page.get_by_label("Collection", exact=True).wait_for()
        tab.page.locator("body").click(position={"x": 5, "y": 500})
        press("?")
        expect(tab.role("heading", "Keys")).to_be_visible()
        press("Escape")
        expect(tab.role("heading", "Keys")).to_have_count(0)
        press("Tab")
        assert tab.page.evaluate("document.activeElement !== document.body")


def sizes(browser, server):
    """Every screen from 360 to 2,560 px, light and dark, without a violation of axe."""
    server.call("POST", "/v1/projects/demo/accounts", {"email": "zoe@example.com", "password": "secret1"})
    then = server.call("GET", server.documents("/products/red-mug"))["updateTime"]
    for size in SIZES:
        for scheme in ("light", "dark"):
            with console(browser, server, size=size, scheme=scheme) as tab:
                for screen in [each.replace("{then}", then) for each in SCREENS]:
                    where = f"{screen} at {size[0]} px, {scheme}"
                    tab.open("demo/(default)/" + screen)
                    tab.page.wait_for_load_state("domcontentloaded")
                    tab.page.wait_for_timeout(350)
                    tab.check_width(where)
                    if size[0] in (360, 1440):
                        tab.check_accessibility(where)


def many(browser, server):
    """Many documents: the list asks only for what it shows, and jumps anywhere."""
    count = 20_000
    for start in range(0, count, 500):
        server.call("POST", server.documents(":commit"), {"writes": [{"update": {
            "name": f"projects/demo/databases/(default)/documents/many/d{number:06}",
            "fields": {"name": text(f"Number {number}")}}} for number in range(start, start + 500)]})
    with console(browser, server) as tab:
        tab.open(DATA + "many")
        listed = tab.role("option").first
        expect(listed).to_contain_text("d000000")
        expect(tab.role("status").filter(has_text="20,000")).to_be_visible()
        assert tab.role("option").count() < 60
        tab.page.get_by_label("Documents of many", exact=True).last.focus()
        tab.page.keyboard.press("End")
        tab.page.wait_for_url("**/many/d019999")
        tab.page.evaluate("document.querySelector('.virtual').scrollTop = 300000")
        expect(tab.role("option").filter(has_text="d010000")).to_be_visible()
        tab.page.get_by_label("Filter by the start of the id").fill("d0123")
        expect(tab.role("status").filter(has_text="100")).to_be_visible()
        expect(tab.role("option").first).to_contain_text("d012300")
        frames = tab.page.evaluate("""() => new Promise((done) => {
            const list = document.querySelector(".virtual");
            const times = [];
            const step = (now) => {
                times.push(now);
                list.scrollTop += 4000;
                if (times.length < 90) requestAnimationFrame(step); else done(times);
            };
            requestAnimationFrame(step);
        })""")
        gaps = sorted(b - a for a, b in zip(frames, frames[1:]))
        print(f"    frames while scrolling: median {gaps[len(gaps) // 2]:.1f} ms, p95 {gaps[int(len(gaps) * 0.95)]:.1f} ms")


def pictures(browser, server):
    """The pictures of docs/console.md, written to the folder in CONSOLE_IMAGES."""
    folder = os.environ.get("CONSOLE_IMAGES")
    if not folder:
        return
    # The coverage of the rules begins here.
    server.call("GET", "/emulator/v1/projects/demo:ruleCoverage")
    ann = server.token("ann")
    for method, path, body in [
        ("GET", "/orders/1001", None), ("GET", "/orders/1002", None), ("GET", "/products", None),
        ("PATCH", "/products/red-mug/reviews/ann", {"fields": {"stars": {"integerValue": "9"}, "text": text("Nice")}}),
    ]:
        try:
            server.call(method, server.documents(path), body, token=ann)
        except OSError:
            pass
    number = server.call("GET", "/hearth/v1/requests")["last"]
    moment = server.call("GET", server.documents("/products/tea-pot"))["updateTime"]
    mug = server.fields("products/red-mug")
    server.put("products/red-mug", {**mug, "price": {"doubleValue": 14.0}, "stock": {"integerValue": "39"}})
    server.put("products/desk-mat", {"name": text("Desk mat"), "price": {"integerValue": "22"}})
    server.call("DELETE", server.documents("/products/tote-bag"))
    pipeline = "collection products\nwhere price > 5\naggregate count() as n, average(price) as price, sum(stock) as stock by category\nsort n desc"
    found = '{"path":"products","isGroup":false,"where":[{"field":"category","op":"==","value":"kitchen"}],' \
        '"order":[{"field":"price","isDescending":true}],"limit":"","aggregate":"","field":""}'
    for name, address, scheme in [
        ("data", "data/products/red-mug", "light"), ("table", "data/products?view=table", "dark"),
        ("query", "query?q=" + found, "light"), ("pipeline", "query?p=" + urllib.parse.quote(pipeline), "dark"),
        ("why", f"why/{number}", "light"), ("rules", "rules", "dark"), ("tests", "rules", "light"),
        ("past", "data/products?changes=1&at=" + moment, "light"),
    ]:
        with console(browser, server, size=(1280, 760), scheme=scheme) as tab:
            tab.open("demo/(default)/" + address)
            tab.page.wait_for_timeout(900)
            if name == "rules":
                tab.role("tab", "Coverage").click()
                tab.page.wait_for_timeout(300)
            if name == "tests":
                tab.role("tab", "Tests").click()
                tab.role("button", "From requests").click()
                expect(tab.page.get_by_text("passed", exact=True).first).to_be_visible()
                tab.role("button", "Weaken the rules").click()
                expect(tab.page.get_by_text("changes are not detected")).to_be_visible()
            if name == "table":
                tab.page.get_by_label("Select notebook").click()
                tab.page.get_by_label("Select tea-pot").click(modifiers=["Shift"])
            if name == "past":
                tab.role("option").filter(has_text="red-mug").click()
            tab.page.mouse.move(0, 0)
            tab.page.wait_for_timeout(400)
            tab.page.screenshot(path=pathlib.Path(folder) / f"console-{name}.png")


SCENARIOS = [modules, first_contact, documents, live, query, pipelines, past, many_at_once, imports_of_csv, why, rules, rule_tests, rule_trial, people_and_files,
             hostile, keys, sizes, many, first_paint, pictures]


def main():
    wanted = sys.argv[3:]
    failures = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scenario in SCENARIOS:
            if wanted and scenario.__name__ not in wanted:
                continue
            began = time.monotonic()
            server = None
            try:
                if scenario in (modules, first_contact):
                    scenario(browser)
                else:
                    server = Server(HEARTH, *SHOP)
                    scenario(browser, server)
                print(f"passed: {scenario.__name__} ({time.monotonic() - began:.1f} s): {scenario.__doc__}")
            except Exception as error:
                failures += 1
                place = [frame for frame in traceback.extract_tb(error.__traceback__) if "/.ci/console/" in frame.filename and "console.py" not in frame.filename][-1]
                print(f"FAIL: {scenario.__name__}, line {place.lineno}: {place.line}\n    {str(error)[:1200]}")
            finally:
                if server:
                    server.stop()
        browser.close()
    print("console: all scenarios passed" if failures == 0 else f"console: {failures} scenarios failed")
    sys.exit(1 if failures else 0)


main()
