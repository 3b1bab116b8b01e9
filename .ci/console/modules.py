"""Tests of the scripts that need no page and no server."""

import pathlib
import re
import textwrap

from sources import FILES

SWIFT = pathlib.Path(__file__).resolve().parents[2] / "Tests/HearthClientTests/ConsolePipelineTests.swift"


def pipeline_examples():
    """Pipelines of the editor with their code in Swift, which a test of Swift runs."""
    found = re.findall(r"    // pipeline:\n(.*?)    // code:\n(.*?)    // end\n", SWIFT.read_text(), re.DOTALL)
    assert len(found) > 5, "no examples"
    return [{"text": "\n".join(line[7:] for line in text.splitlines()), "swift": textwrap.dedent(code).rstrip()} for text, code in found]


def modules(browser):
    """The modules without a page, loaded one by one as they are written: values, nodes, queries, places in lists."""
    page = browser.new_page()

    def serve(route):
        name = route.request.url.split("console.test/")[1]
        if name.endswith(".js"):
            route.fulfill(body=(FILES / name).read_text(), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><html data-project=demo><body id=app></body></html>", content_type="text/html")
    page.route("http://console.test/**", serve)
    page.goto("http://console.test/")
    failures = page.evaluate(r"""async (examples) => {
        const failures = [];
        const equal = (what, found, expected) => {
            if (JSON.stringify(found) !== JSON.stringify(expected)) failures.push(`${what}: ${JSON.stringify(found)}`);
        };
        const fails = (what, work) => {
            try { failures.push(`${what}: ${JSON.stringify(work())}`); } catch (error) { if (!error.message) failures.push(what); }
        };
        const values = await import("/api/values.js");
        const nodes = await import("/model/nodes.js");
        const base = "projects/p/databases/d/documents/";
        const samples = {
            a: { integerValue: "9223372036854775807" }, b: { doubleValue: 1 }, c: { doubleValue: "-Infinity" }, d: { nullValue: null },
            e: { timestampValue: "2025-03-27T14:30:00.123456Z" }, f: { referenceValue: base + "users/ann" }, g: { bytesValue: "aGk=" },
            h: { geoPointValue: { latitude: 45.5, longitude: -9 } }, i: { arrayValue: { values: [{ stringValue: "x: 12, \"13\"" }] } },
            j: { mapValue: { fields: { " ": { integerValue: "0" }, $odd: { booleanValue: true } } } }, k: values.vectorValue([1, 0.5]),
            l: { doubleValue: 0.1 }, m: { arrayValue: { values: [] } }, n: { mapValue: { fields: {} } },
        };
        equal("notation", values.parseNotation(values.mapNotation(samples), base), samples);
        equal("nodes", nodes.fieldsOf(nodes.nodesOf(samples), "projects/p/databases/d"), samples);
        for (const text of ["9223372036854775808", "1.5", "", "abc"]) fails(`integer ${text}`, () => values.integerValue(text));
        equal("integer", values.integerValue(" -0042 "), { integerValue: "-42" });
        for (const text of ["2025-13-01T00:00:00Z", "yesterday", "2025-01-01T25:00:00Z"]) fails(`time ${text}`, () => values.timestampValue(text));
        equal("day", values.timestampValue("2025-01-31"), { timestampValue: "2025-01-31T00:00:00Z" });
        for (const text of ["[1]", "null", "{", '{"a": {"$what": 1}}']) fails(`document ${text}`, () => values.parseNotation(text, base));
        const hidden = { a: { mapValue: { fields: { "\u0000number": { stringValue: "7" } } } }, b: { doubleValue: "-0.0" } };
        equal("no text is taken for a number", values.parseNotation(values.mapNotation(hidden), base).a, hidden.a);
        equal("negative zero", values.parseNotation(values.mapNotation({ b: { doubleValue: -0 } }), base).b, hidden.b);
        equal("missing field", values.fieldOf({ fields: {} }, "constructor") ?? null, null);
        equal("visible", values.visible("a\u202eb\u0000"), "a⟨U+202E⟩b⟨U+0000⟩");
        equal("field path", nodes.fieldPath("a`b\\c"), "`a\\`b\\\\c`");
        const query = await import("/model/query.js");
        const shell = await import("/model/shell.js");
        equal("word", shell.shellWord("a/b"), "a/b");
        equal("quotes", shell.shellWord("f'; echo x; '"), "'f'\\''; echo x; '\\'''");
        equal("lines", shell.quotedForShell("a\nb"), "'a\nb'");
        equal("control characters", shell.quotedForShell("it's\u001b[2J\\"), "$'it\\'s\\u001b[2J\\\\'");
        equal("option", shell.shellWord("--help"), "'--help'");
        equal("address", shell.urlPath("a'b/c d"), "a'b/c%20d");
        equal("strange link", query.queryFrom('{"where":5,"order":[7],"limit":{},"aggregate":"x; y","path":["a"]}'), query.emptyQuery());
        equal("link", query.queryFrom('{"path":"a","where":[{"field":"n","op":"what","value":1}]}'),
            { ...query.emptyQuery("a"), where: [{ field: "n", op: "==", value: "1" }] });
        equal("limit", query.codeOf({ ...query.emptyQuery("a"), limit: "1; rm x" }, "hearth", { root: "r" }), "hearth query a --limit '1; rm x'");
        const one = { ...query.emptyQuery("a/b/c"), where: [{ field: "x.y-z", op: "==", value: "null" }] };
        equal("is null", query.structuredQuery(one, "r").where, { unaryFilter: { field: { fieldPath: "x.`y-z`" }, op: "IS_NULL" } });
        equal("parent", query.queryParent(one), "a/b");
        equal("no index", query.neededIndex({ ...one, order: [] }), null);
        equal("index", query.neededIndex({ ...one, order: [{ field: "n", isDescending: true }] }).fields,
            [{ fieldPath: "x.`y-z`", order: "ASCENDING" }, { fieldPath: "n", order: "DESCENDING" }]);
        equal("date", query.conditionValue("2025-01-31", "r"), { timestampValue: "2025-01-31T00:00:00Z" });
        equal("word", query.conditionValue("Ann", "r"), { stringValue: "Ann" });
        const pipeline = await import("/model/pipeline.js");
        const stages = (text) => pipeline.pipelineStages(text, "projects/p/databases/d");
        const field = (name) => ({ fieldReferenceValue: name });
        const call = (name, ...args) => ({ functionValue: { name, args } });
        const int = (number) => ({ integerValue: String(number) });
        equal("pipeline", stages("collection a/b/c\n# all\n| where x.y > 1 + 2 * 3 && !(z == 'q') && w in_is\n".replace(" && w in_is", "")), [
            { name: "collection", args: [{ referenceValue: "/a/b/c" }] },
            { name: "where", args: [call("and", call("greater_than", field("x.y"), call("add", int(1), call("multiply", int(2), int(3)))),
                call("not", call("equal", field("z"), { stringValue: "q" })))] }]);
        equal("aggregate", stages("database\naggregate count() as n, sum(x) as s by k, upper(l) as m\nsort n desc, k\nlimit 5").slice(1), [
            { name: "aggregate", args: [{ mapValue: { fields: { n: call("count"), s: call("sum", field("x")) } } },
                { mapValue: { fields: { k: field("k"), m: call("upper", field("l")) } } }] },
            { name: "sort", args: [{ mapValue: { fields: { direction: { stringValue: "descending" }, expression: field("n") } } },
                { mapValue: { fields: { direction: { stringValue: "ascending" }, expression: field("k") } } }] },
            { name: "limit", args: [int(5)] }]);
        equal("left to right", stages("where a - b - c == -1.5")[0].args[0], call("equal",
            call("subtract", call("subtract", field("a"), field("b")), field("c")), { doubleValue: -1.5 }));
        for (const text of ["", "where", "where a >", "where (a", "where a b", "fetch x", "limit x", "aggregate count()", "select a, a", "where 'a", "[{}]", "[",
            "unnest tags", "where a &&& b"]) fails(`pipeline ${text}`, () => stages(text));
        const code = await import("/model/pipeline-code.js");
        for (const { text, swift } of examples) equal(`Swift of ${text}`, code.pipelineSwift(stages(text)), swift);
        const python = (text, database = "(default)") => code.pipelinePython(stages(text), { project: "p", database, host: "h" });
        equal("Python", python("collection c\nwhere a == 1.0 && b != null\nsample 50%", "d").split("\n").slice(1), [
            "from google.cloud import firestore", "from google.cloud.firestore_v1.pipeline_expressions import And, Field",
            "from google.cloud.firestore_v1.pipeline_types import SampleOptions", "", 'db = firestore.Client(project="p", database="d")', "pipeline = (",
            "    db.pipeline()", '    .collection("c")', '    .where(And(Field.of("a").equal(1.0), Field.of("b").not_equal(None)))',
            "    .sample(SampleOptions.percentage(0.5))", ")", "for row in pipeline.stream():", "    print(row.id, row.data())"]);
        const nested = '[{"name": "where", "args": [{"functionValue": {"name": "scalar", "args": [{"pipelineValue": {"stages": []}}]}}]}]';
        fails("nested in Python", () => python(nested));
        fails("nested in Swift", () => code.pipelineSwift(stages(nested)));
        equal("script", code.pipelineScript(stages("collection c\nwhere a == 1\nselect a, b * 2 as d")).split("db.pipeline()")[1].split(");\nfor")[0].replace(/\s+/g, ""),
            '.collection("c").where(equal(field("a"),1)).select("a",multiply(field("b"),2).as("d"))');
        const list = await import("/parts/virtual-list.js");
        for (const rank of [0, 1, 499_999, 999_970]) {
            const found = list.rankAt(list.positionOf(rank, 1e6, 30, 900), 1e6, 30, 900);
            if (Math.abs(found - rank) > 0.01) failures.push(`rank ${rank}: ${found}`);
        }
        const { parseAddress, formatAddress, go } = await import("/core/address.js");
        const place = parseAddress("#/demo/(default)/data/a%2Fb/%25?q=1%202&view=table", "x");
        equal("address", place.path, ["a/b", "%"]);
        equal("address again", parseAddress(formatAddress(place), "x"), place);
        location.hash = "#/p/d/server";
        go({ screen: "query" }, { replace: true });
        equal("a step of the user is not undone", location.hash, "#/p/d/server");
        await new Promise((resolve) => setTimeout(resolve, 50));
        go({ screen: "query", parameters: { q: "é <1>" } }, { replace: true });
        go({ screen: "query", parameters: { q: "2" } }, { replace: true });
        equal("a screen completes its address", location.hash, "#/p/d/query?q=2");
        const rules = await import("/parts/rules-text.js");
        equal("colors keep the text", rules.highlight("// é\nmatch /a/{b} { allow read: if 'x' == 1; }").map((part) => part[1]).join(""),
            "// é\nmatch /a/{b} { allow read: if 'x' == 1; }");
        equal("places in bytes", rules.byteIndex("é😀x")(6), 3);
        return failures;
    }""", pipeline_examples())
    page.close()
    assert not failures, "\n".join(failures)
