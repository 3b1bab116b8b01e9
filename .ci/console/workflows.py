"""Scenarios of longer work: rule tests, the past, edits of many documents, pipelines."""

import ast
import json
import os
import pathlib
import subprocess

from playwright.sync_api import expect

from console import DATA, console, text
from modules import pipeline_examples

# A Python with google-cloud-firestore, or nothing.
PYTHON = os.environ.get("CONSOLE_PYTHON", "")

ALL_ALLOWED = "service cloud.firestore { match /databases/{database}/documents { match /{path=**} { allow read, write; } } }"


def decoded(value):
    """A value of the API as the Python client has it, for the types in the examples."""
    kind, inner = next(iter(value.items()))
    match kind:
        case "integerValue": return int(inner)
        case "doubleValue": return float(inner)
        case "arrayValue": return [decoded(each) for each in inner.get("values", [])]
        case "mapValue": return {name: decoded(each) for name, each in inner.get("fields", {}).items()}
        case _: return inner


def run_python(server, code):
    """The rows that a program of the console prints: `(id, fields)`."""
    environment = {**os.environ, "FIRESTORE_EMULATOR_HOST": server.url.removeprefix("http://")}
    run = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert run.returncode == 0, run.stderr[-800:] + code
    rows = [line.split(" ", 1) for line in run.stdout.splitlines()]
    return [(None if name == "None" else name, ast.literal_eval(fields)) for name, fields in rows]


def rule_tests(browser, server):
    """Tests of requests and of a file, their results, their coverage, and what no test detects."""
    ann = server.token("ann")
    for path in ["/orders/1001", "/orders/1002", "/customers/ann"]:
        try:
            server.call("GET", server.documents(path), token=ann)
        except OSError:
            pass
    with console(browser, server) as tab:
        # The browser reports the test file that the scenario breaks.
        tab.expected = ["400"]
        tab.open("demo/(default)/rules")
        tab.role("tab", "Tests").click()
        tab.role("button", "From requests").click()
        expect(tab.role("status").filter(has_text="3 passed")).to_be_visible()
        expect(tab.page.locator(".cover-none").first).to_be_visible()
        tab.role("button", "Weaken the rules").click()
        expect(tab.page.get_by_text("changes are not detected")).to_be_visible()
        tests = tab.page.get_by_label("Test file", exact=True)
        recorded = tests.input_value()
        tests.fill(recorded.replace('"expect": "deny"', '"expect": "allow"'))
        expect(tab.role("status").filter(has_text="1 of 3 failed")).to_be_visible()
        expect(tab.page.locator(".cases pre")).to_contain_text('resource.data.customer → "ben"')
        tab.check_accessibility("rule tests")
        # The tests run by the draft, which is not in force.
        editor = tab.page.get_by_label("Rules", exact=True)
        original = editor.input_value()
        editor.fill(original.replace("allow read: if isUser(resource.data.customer)", "allow read: if true"))
        expect(tab.role("status").filter(has_text="3 passed")).to_be_visible()
        editor.fill(original)
        tests.fill('{"fixture": "/etc/passwd", "cases": []}')
        expect(tab.page.get_by_text("names a file, which cannot be read here")).to_be_visible()
        tests.fill(recorded)
        expect(tab.role("status").filter(has_text="3 passed")).to_be_visible()


def rule_trial(browser, server):
    """One request, tried by the draft of the rules over the documents of the database, without writing anything."""
    with console(browser, server, size=(1280, 760)) as tab:
        # The browser reports the requests that cannot be read.
        tab.expected = ["400"]
        tab.open("demo/(default)/rules")
        tab.role("tab", "Try").click()
        decision = tab.role("region", "The decision")
        tab.page.get_by_label("Path", exact=True).fill("orders/1001")
        tab.page.get_by_label("User id, or nothing for nobody").fill("ben")
        tab.role("button", "Try it").click()
        expect(decision).to_contain_text("denied")
        expect(decision).to_contain_text("resource.data.customer")
        tab.page.get_by_label("User id, or nothing for nobody").fill("ann")
        tab.page.keyboard.press("Enter")
        expect(decision).to_contain_text("allowed")
        tab.check_accessibility("one request")
        if os.environ.get("CONSOLE_IMAGES"):
            tab.page.screenshot(path=pathlib.Path(os.environ["CONSOLE_IMAGES"]) / "console-try.png")
        # The draft decides, and the stored rules stay.
        editor = tab.page.get_by_label("Rules", exact=True)
        original = editor.input_value()
        editor.fill(original.replace("allow read: if isUser(resource.data.customer)", "allow read: if false"))
        expect(decision).to_contain_text("the rules have changed since")
        tab.role("button", "Try it").click()
        expect(decision).to_contain_text("denied")
        editor.fill(original)
        # A write, which is not made.
        tab.page.get_by_label("Method").select_option("create")
        tab.page.get_by_label("Path", exact=True).fill("products/red-mug/reviews/ann")
        tab.page.get_by_label("Fields, as JSON").fill('{"stars": 9, "text": "Nice"')
        tab.role("button", "Try it").click()
        expect(tab.page.get_by_text("The fields are not valid JSON.")).to_be_visible()
        tab.page.get_by_label("Fields, as JSON").fill('{"stars": 9007199254740993, "text": "Nice"}')
        tab.role("button", "Try it").click()
        expect(decision).to_contain_text("denied")
        expect(decision).to_contain_text("9007199254740993")
        tab.page.get_by_label("Path", exact=True).fill("products")
        tab.role("button", "Try it").click()
        expect(tab.page.get_by_text("is not a document")).to_be_visible()
        tab.page.get_by_label("Method").select_option("list")
        tab.page.get_by_label("Query, as JSON, or nothing").fill('{"limit": 5}')
        tab.role("button", "Try it").click()
        expect(decision).to_contain_text("list")
        assert server.call("GET", "/hearth/v1/requests")["requests"] == []
        tab.page.reload()
        tab.role("tab", "Try").click()
        expect(tab.page.get_by_label("Path", exact=True)).to_have_value("products")


def past(browser, server):
    """The database as of a moment, what has changed since, and a restore."""
    moment = server.call("GET", server.documents("/products/red-mug"))["updateTime"]
    server.put("products/red-mug", {"name": text("Blue mug")})
    server.put("products/new", {"name": text("New")})
    server.call("DELETE", server.documents("/products/notebook"))
    with console(browser, server) as tab:
        # The browser reports the moment before the history.
        tab.expected = ["400"]
        tab.open(DATA + "products/red-mug")
        expect(tab.page.get_by_label("Value of name")).to_have_value("Blue mug")
        tab.page.locator("h1").first.evaluate("(element) => document.activeElement.blur()")
        tab.page.keyboard.press("t")
        expect(tab.page.get_by_label("Moment in the history")).to_be_visible()
        expect(tab.page.get_by_text("history since")).to_be_visible()
        tab.page.keyboard.press("t")
        expect(tab.page.get_by_label("Moment in the history")).to_have_count(0)
        tab.go(DATA + "products/red-mug?at=" + moment)
        expect(tab.page.get_by_label("Value of name")).to_have_value("Red mug")
        expect(tab.page.get_by_label("Value of name")).not_to_be_editable()
        expect(tab.role("button", "Delete name")).to_have_count(0)
        expect(tab.role("option", "notebook")).to_be_visible()
        expect(tab.role("option").filter(has_text="new")).to_have_count(0)
        tab.check_accessibility("the past")
        # The moment stays while the place changes, and queries see it too.
        tab.role("link", "orders", exact=True).click()
        tab.page.wait_for_url("**/orders?at=*")
        tab.go("demo/(default)/query?q=%7B%22path%22%3A%22products%22%7D")
        expect(tab.page.locator("tbody tr").filter(has_text="notebook")).to_be_visible()
        tab.go(DATA + "products")
        tab.role("button", "Changes since then").click()
        expect(tab.role("heading", "1 created, 1 changed, 1 deleted")).to_be_visible()
        tab.role("option").filter(has_text="red-mug").click()
        expect(tab.page.locator(".difference tr").filter(has_text="name")).to_contain_text("Blue mug")
        tab.check_accessibility("changes")
        tab.role("button", "Restore", exact=True).click()
        expect(tab.role("heading", "1 created, 1 deleted")).to_be_visible()
        assert server.fields("products/red-mug")["price"] == {"doubleValue": 12.5}
        tab.role("button", "Restore all 2").click()
        tab.role("button", "Restore 2 documents").click()
        expect(tab.role("heading", "Nothing has changed here since then")).to_be_visible()
        assert server.fields("products/notebook")["name"] == text("Notebook")
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Restored 2 documents")).to_be_visible()
        assert server.fields("products/new")["name"] == text("New")
        tab.role("button", "Back to now").click()
        expect(tab.role("option").filter(has_text="new")).to_be_visible()
        assert "at=" not in tab.page.url
        tab.go(DATA + "products?at=2020-01-01T00:00:00Z")
        expect(tab.role("alert").first).to_be_visible()


def many_at_once(browser, server):
    """Cells edited in the table, and several documents at once, with undo."""
    with console(browser, server) as tab:
        # The browser reports a condition that fails because the table was read before the last commit.
        tab.expected = ["400"]
        tab.open(DATA + "products?view=table")
        tab.page.get_by_label("Select red-mug").click()
        tab.page.get_by_label("Select water-bottle").click(modifiers=["Shift"])
        expect(tab.role("status").filter(has_text="4 selected")).to_be_visible()
        tab.check_accessibility("selected documents")
        tab.role("button", "Edit field…").click()
        tab.page.get_by_label("Field", exact=True).fill("stock")
        tab.page.get_by_label("What to do").select_option("increment")
        tab.page.get_by_label("Number", exact=True).fill("many")
        tab.role("button", "Change 4 documents").click()
        expect(tab.page.get_by_text("Write a number, such as 1 or -0.5.")).to_be_visible()
        tab.page.get_by_label("Number", exact=True).fill("5")
        tab.role("button", "Change 4 documents").click()
        expect(tab.page.get_by_text("Changed stock of 4 documents")).to_be_visible()
        assert server.fields("products/red-mug")["stock"] == {"integerValue": "45"}
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Changed stock of 4 documents")).to_be_visible()
        assert server.fields("products/red-mug")["stock"] == {"integerValue": "40"}
        tab.role("button", "Select all 8").click()
        expect(tab.role("status").filter(has_text="8 selected")).to_be_visible()
        with tab.page.expect_download() as download:
            tab.role("button", "Export").click()
        assert len(pathlib.Path(download.value.path()).read_text().splitlines()) == 8
        tab.role("button", "Delete…").click()
        tab.role("button", "Delete 8 documents").click()
        expect(tab.page.get_by_text("Deleted 8 documents")).to_be_visible()
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Deleted 8 documents")).to_be_visible()
        assert server.fields("products/tea-pot")["name"] == text("Tea pot")
        # A cell, with the keyboard: the type stays, and what is not valid is refused.
        tab.role("gridcell", "red-mug", exact=True).click()
        tab.page.wait_for_url("**/red-mug?view=table")
        tab.page.get_by_label("Documents of products", exact=True).last.focus()
        for key in ["ArrowRight", "F2"]:
            tab.page.keyboard.press(key)
        cell = tab.page.get_by_label("name of red-mug")
        cell.fill("Green mug")
        tab.page.keyboard.press("Enter")
        expect(tab.page.get_by_text("Changed name of red-mug")).to_be_visible()
        assert server.fields("products/red-mug")["name"] == text("Green mug")
        tab.role("row").filter(has_text="red-mug").get_by_role("gridcell", name="40").dblclick()
        cell = tab.page.get_by_label("stock of red-mug")
        cell.fill("x")
        tab.page.keyboard.press("Enter")
        expect(tab.page.get_by_text("stock: write a whole number")).to_be_visible()
        tab.page.keyboard.press("Escape")
        expect(cell).to_have_count(0)
        tab.page.keyboard.press("Control+z")
        expect(tab.page.get_by_text("Undone: Changed name of red-mug")).to_be_visible()
        # An import shows first what it would replace.
        tree = '{"$collections": ["products"], "products": {"red-mug": {"name": "Imported"}, "zebra": {"name": "New"}}}'
        tab.page.locator("input[type=file]").first.set_input_files([
            {"name": "tree.json", "mimeType": "application/json", "buffer": tree.encode()},
            {"name": "bad.json", "mimeType": "application/json", "buffer": b"{"}])
        expect(tab.page.get_by_text("1 document would be created, 1 document exists already.")).to_be_visible()
        expect(tab.page.get_by_text("the file is not valid JSON")).to_be_visible()
        tab.check_accessibility("an import")
        tab.page.get_by_label("Documents that exist").select_option("merge")
        tab.role("button", "Import 2 documents").click()
        expect(tab.page.get_by_text("Imported 2 documents from 2 files")).to_be_visible()
        assert server.fields("products/red-mug")["name"] == text("Imported")
        assert server.fields("products/red-mug")["stock"] == {"integerValue": "40"}
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Imported 2 documents")).to_be_visible()
        assert server.fields("products/red-mug")["name"] == text("Red mug")


def pipelines(browser, server):
    """The editor of pipelines, with its results, its plan and its code."""
    with console(browser, server) as tab:
        # The browser reports the function that does not exist.
        tab.expected = ["400"]
        tab.open("demo/(default)/query")
        tab.role("tab", "Pipeline").click()
        area = tab.page.get_by_label("Pipeline", exact=True)
        area.fill("collection products\nwhere price > 5 && category != \"x\"\n"
                  "aggregate count() as n, average(price) as price by category\nsort n desc")
        tab.page.keyboard.press("Control+Enter")
        rows = tab.page.locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("kitchen")
        expect(rows.first).to_contain_text("4")
        tab.role("tab", "Plan").click()
        expect(tab.page.locator("pre.code")).to_contain_text("aggregate (records returned: 3)")
        tab.check_accessibility("pipeline")
        tab.role("tab", "Code").click()
        expect(tab.page.locator("pre.code")).to_contain_text(":executePipeline")
        tab.role("tab", "JavaScript").click()
        expect(tab.page.locator("pre.code")).to_contain_text('.where(and(greaterThan(field("price"), 5)')
        tab.role("tab", "Swift").click()
        expect(tab.page.locator("pre.code")).to_contain_text(".aggregate(")
        tab.role("tab", "Python").click()
        expect(tab.page.locator("pre.code")).to_contain_text("And(Field.of(\"price\").greater_than(5)")
        # The program that is shown finds what the server finds. The Python client is no administrator.
        server.call("PUT", "/emulator/v1/projects/demo:securityRules", {"rules": {"files": [{"name": "all.rules", "content": ALL_ALLOWED}]}})
        for example in pipeline_examples() if PYTHON else []:
            # The columns of times have another form in Python.
            example["text"] = example["text"].replace("remove_fields tags", "remove_fields added, tags")
            area.fill(example["text"])
            tab.role("tab", "Stages").click()
            stages = json.loads(tab.page.locator("pre.code").inner_text())
            tab.role("tab", "Python").click()
            parts = server.call("POST", server.documents(":executePipeline"), {"structuredPipeline": {"pipeline": {"stages": stages}}})
            expected = [(each["name"].split("/")[-1] if "name" in each else None, {name: decoded(value) for name, value in each["fields"].items()})
                        for part in parts for each in part.get("results", [])]
            assert expected and run_python(server, tab.page.locator("pre.code").inner_text()) == expected, example["text"]
        if not PYTHON:
            print("    Skipped: the code in Python was not run, because google-cloud-firestore is missing.")
        area.fill("collection products\nwhere price > 5 && category != \"x\"\n"
                  "aggregate count() as n, average(price) as price by category\nsort n desc")
        tab.role("tab", "Results").click()
        tab.page.reload()
        expect(rows).to_have_count(3)
        tab.role("button", "Recent").click()
        expect(tab.role("menuitem").first).to_contain_text("collection products | where price > 5")
        tab.check_accessibility("recent queries")
        tab.page.keyboard.press("Escape")
        for pipeline, count in [
            ("collection products\nunnest tags as tag\naggregate count() as n by tag", 6),
            ("documents products/red-mug, products/tea-pot\nremove_fields tags", 2), ("collection products\nsample 3", 3),
            ("collection_group reviews\nselect stars * 2 as twice", None),
            ('[{"name": "collection", "args": [{"referenceValue": "/orders"}]}]', 7),
        ]:
            area.fill(pipeline)
            tab.role("button", "Run").click()
            expect(rows).to_have_count(count) if count else expect(rows.first).to_be_visible()
        area.fill("collection products\nwhere price >")
        expect(tab.page.get_by_text("line 2: an expression is missing at the end")).to_be_visible()
        area.fill("collection products\nwhere sqare(price) > 2")
        tab.role("button", "Run").click()
        expect(tab.page.get_by_text("unknown function 'sqare'")).to_be_visible()
        area.fill('[{"name": "collection", "args": [{"referenceValue": "/orders"}]}, {"name": "delete"}]')
        tab.role("button", "Run").click()
        expect(tab.role("heading", "This pipeline writes")).to_be_visible()
        tab.role("button", "Cancel").click()
        assert server.fields("orders/1001")


# CSV files, and whether the types of their columns are found. The console and `hearth import` must store the same documents.
CSV = [
    ("id,name,count:int,price:double,seen:timestamp,tags:json,on:bool,place:geo,blob:bytes,link:ref,any:number\n"
     'lamp,"Lamp, small",12,30,2025-03-27,"[""home"", {""$double"": 1}]",TRUE,"45.46, 9.19",aGk=,products/red-mug,1e2\n'
     'sofa,Sofa,,499.5,,,,,,,-7\n\n"quoted","",9007199254740993,NaN,2025-03-27T14:30:00.5+02:00,null,false,,,,\n', False),
    ("_id;n;d;ok;at;code;text\r\na;1;1.5;true;2025-01-31;007;\"x\ny\"\r\nb;-2;2;False;2024-02-29T10:00:00Z;1;z\r\nc;;;;;;\r\n", True),
    ("\ufeff__path__,age,when\npeople/ann,37,2025-02-30\npeople/ann/pets/rex,4,\n", True),
    ("__id__|a:b|n: int\nx|1|2\ny|\"\"|3\n", False),
    ("id,amount,big\nx,1,12345678901234567890\ny,2.5,1\n", True),
]
# Files that both refuse, with the line of the mistake.
WRONG_CSV = [
    ("id,n:int\na,1\nb,1.5\n", 3), ("id,id\n", 1), ("id,\n", 1), ("id,a\nx\n", 2), ('id,a\nx,"1\n', 2), ('id,a\nx,"1"2\n', 2), ("id,a\nx,1\nx,2\n", 3),
    ("id,t:timestamp\nx,yesterday\n", 2), ("id,b:bool\nx,yes\n", 2), ("id,j:json\nx,{\n", 2), ("a,b;c\n1;2,3\n", 1), ("id,r:ref\nx,products\n", 2), ("", 1),
    ("id,g:geo\nx,45\n", 2), ("id,n:int\nx,01\n", 2), ("id,n:int\nx,9223372036854775808\n", 2),
]


def csv_files(browser, server, hearth, folder):
    """CSV files by the rules of `hearth import`: the same documents, the same mistakes, a preview, and undo."""
    def stored(database):
        return {each["name"].split("/documents/")[1]: json.loads(json.dumps(each.get("fields", {})).replace(f"/databases/{database}/", "/databases/_/"))
                for part in server.call("POST", server.documents(":runQuery", database), {"structuredQuery": {"from": [{"allDescendants": True}]}})
                if (each := part.get("document"))}

    def imported(name, database, is_inferred):
        return subprocess.run([hearth, "import", name, "--server", server.url, "--project", "demo", "--database", database,
                               *(["--types", "infer"] if is_inferred else []), *([] if "__path__" in pathlib.Path(name).read_text() else ["--collection", "rows"])],
                              capture_output=True, text=True)

    with console(browser, server, size=(1280, 760)) as tab:
        for number, (content, is_inferred) in enumerate(CSV):
            path = folder / "rows.csv"
            path.write_bytes(content.encode())
            run = imported(path, f"cli{number}", is_inferred)
            assert run.returncode == 0, run.stderr
            expected = stored(f"cli{number}")
            assert expected
            tab.go(f"demo/page{number}/data") if number else tab.open(f"demo/page{number}/data")
            expect(tab.role("heading", "This database is empty")).to_be_visible()
            # A dropped file.
            tab.page.evaluate("""(bytes) => {
                const data = new DataTransfer();
                data.items.add(new File([new Uint8Array(bytes)], "rows.csv"));
                document.querySelector("main.screen > .fill").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
            }""", list(content.encode()))
            if is_inferred:
                tab.page.get_by_label("Find the types of columns").check()
            expect(tab.role("region", "The first rows").get_by_role("row")).to_have_count(len(expected) + 1)
            if number == 0:
                tab.check_accessibility("the preview of CSV")
                expect(tab.role("region", "The first rows")).to_contain_text("rows/lamp")
                if os.environ.get("CONSOLE_IMAGES"):
                    tab.page.screenshot(path=pathlib.Path(os.environ["CONSOLE_IMAGES"]) / "console-csv.png")
            tab.role("button", f"Continue with {len(expected)} document").click()
            expect(tab.role("option")).to_have_count(len([each for each in expected if each.count("/") == 1]))
            expect(tab.page.get_by_text(f"Imported {len(expected)} document")).to_be_visible()
            assert stored(f"page{number}") == expected, (content, stored(f"page{number}"), expected)
        tab.role("button", "Undo").click()
        expect(tab.page.get_by_text("Undone: Imported")).to_be_visible()
        assert stored(f"page{len(CSV) - 1}") == {}
        # Random IDs, and another collection.
        for content, place in WRONG_CSV:
            path = folder / "wrong.csv"
            path.write_text(content)
            run = imported(path, "wrong", False)
            assert run.returncode != 0 and f"wrong.csv:{place}:" in run.stderr, (content, run.stderr)
            tab.page.locator("input[type=file]").first.set_input_files(path)
            dialog = tab.page.locator("dialog[open]")
            expect(dialog.get_by_text(f"line {place}: ")).to_be_visible()
            expect(dialog.locator("button.primary")).to_be_disabled()
            message = dialog.get_by_text(f"line {place}: ").inner_text().split(": ", 1)[1].split(";")[0].split(" and ")[0]
            # A browser describes mistakes in JSON in its own words.
            assert message in run.stderr or "not valid JSON" in message, (message, run.stderr)
            tab.page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
        assert stored("wrong") == {}
        tab.page.locator("input[type=file]").first.set_input_files({"name": "people.csv", "mimeType": "text/csv", "buffer": b"id,name\nx,Ann\ny,Ben\n"})
        tab.page.get_by_label("IDs of the documents").select_option("")
        tab.page.get_by_label("Collection", exact=True).fill("a/b")
        expect(tab.page.get_by_text("Name a collection, such as products.")).to_be_visible()
        tab.page.get_by_label("Collection", exact=True).fill("guests")
        tab.role("button", "Continue with 2 documents").click()
        expect(tab.page.get_by_text("Imported 2 documents from people.csv")).to_be_visible()
        found = stored(f"page{len(CSV) - 1}")
        assert {path.split("/")[0] for path in found} == {"guests"} and all(len(path.split("/")[1]) == 20 for path in found), found
