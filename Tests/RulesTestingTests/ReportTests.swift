import Foundation
import RulesEngine
import RulesTesting
import Testing

/// The reports of the toy suite.
@Suite struct ReportTests {
  private static let cases = """
    {"it": "shows <rooms> & more", "as": "ann", "get": "rooms/r1", "expect": "allow"},
    {"it": "hides rooms", "as": "eve", "get": "rooms/r1", "expect": "deny"},
    {"it": "is wrong", "as": "eve", "delete": "rooms/r1", "expect": "allow"}
    """

  @Test func writesJUnit() throws {
    let run = try Toy.run(Self.cases).run
    #expect(
      SuiteRun.junit([run], seconds: 0.0123) == """
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="3" failures="1" time="0.012">
          <testsuite name="toy.tests.json" tests="3" failures="1">
            <testcase classname="toy.tests.json" name="shows &lt;rooms&gt; &amp; more" file="toy.tests.json" line="6"/>
            <testcase classname="toy.tests.json" name="hides rooms" file="toy.tests.json" line="7"/>
            <testcase classname="toy.tests.json" name="is wrong" file="toy.tests.json" line="8">
              <failure message="expected allow, got deny">expected allow, got deny
        denied: delete rooms/r1
          toy.tests.json:9: allow delete: false</failure>
            </testcase>
          </testsuite>
        </testsuites>

        """)
  }

  @Test func writesLcov() throws {
    #expect(
      try Toy.run(Self.cases).coverage.lcov == """
        TN:
        SF:toy.rules
        FN:16,owns
        FNDA:2,owns
        FNF:1
        FNH:1
        BRDA:5,0,0,1
        BRDA:5,0,1,1
        BRDA:6,1,0,-
        BRDA:6,1,1,-
        BRDA:7,2,0,-
        BRDA:7,2,1,-
        BRDA:9,3,0,0
        BRDA:9,3,1,1
        BRDA:12,4,0,-
        BRDA:12,4,1,-
        BRDA:13,5,0,-
        BRDA:13,5,1,-
        BRF:12
        BRH:3
        DA:5,2
        DA:6,0
        DA:7,0
        DA:8,0
        DA:9,1
        DA:12,0
        DA:13,0
        DA:16,2
        LF:8
        LH:3
        end_of_record

        """)
  }

  @Test func writesHTML() throws {
    let page = Coverage.html([try Toy.run(Self.cases).coverage])
    for part in [
      "<h2>toy.rules</h2>\n<p>3 of 8 lines with conditions evaluated</p>",
      #"<tr class="hit"><td>5</td><td>2</td><td><pre>      allow read: if <span class="seen" title="true × 1&#10;false × 1">"#
        + #"owns(<span class="seen" title="{&quot;at&quot;: {&quot;x&quot;: 1, &quot;y&quot;: 2}, &quot;owner&quot;: "#
        + #"&quot;ann&quot;, &quot;size&quot;: 1} × 2">"#,
      #"<tr class="missed"><td>8</td><td>0</td>"#,
      #"<tr class="none"><td>3</td><td></td><td><pre>  match /databases/{database}/documents {</pre></td></tr>"#,
    ] {
      #expect(page.contains(part), "\(part) is not in \(page)")
    }
    #expect(page.components(separatedBy: "<span").count == page.components(separatedBy: "</span>").count)
  }

  @Test func formatsValues() {
    for (typed, text) in [
      (#"{"nullValue":null}"#, "null"), (#"{"intValue":"5"}"#, "5"), (#"{"floatValue":1.5}"#, "1.5"),
      (#"{"stringValue":"a\"b"}"#, #""a\"b""#), (#"{"timestampValue":"2025-01-01T00:00:00Z"}"#, "2025-01-01T00:00:00Z"),
      (#"{"listValue":{"values":[{"intValue":"1"},{"boolValue":true}]}}"#, "[1, true]"), (#"{"listValue":{}}"#, "[]"),
      (#"{"setValue":{"values":[{"intValue":"1"}]}}"#, "set [1]"), (#"{"mapValue":{}}"#, "{}"),
      (#"{"latlngValue":{"latitude":1.5}}"#, "latlng(1.5, 0)"),
      (#"{"pathValue":{"segments":[{"simple":"a"},{"capture":{"variableName":"v","boundValue":"b"}}]}}"#, "/a/b"),
      (#"{"mapDiffValue":{"keyStatuses":{"a":"ADDED"}}}"#, #"{"a": added}"#),
      (#"{"undefined":{"causeMessage":"Null value error."}}"#, "error: Null value error."),
    ] {
      #expect(ValueDisplay.text(typed) == text)
    }
  }
}
