import DocumentModel
import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The formatting of documents as tables.
@Suite struct TextTableTests {
  private static let database = DatabaseID(project: "demo").unsafelyUnwrapped

  private static func table(
    _ rows: [(String, [(String, Value)])], width: Int? = nil, chosen: [String] = [], nameTitle: String? = "id"
  ) -> String {
    // The descriptor is not a terminal, so the text has no colors.
    var table = TextTable(
      of: database, nameTitle: nameTitle, chosen: chosen.map { field($0) }, on: Terminal(descriptor: -1),
      columnsMax: width)
    var text = ""
    for (name, fields) in rows { text += table.add(TextTable.Row(name: name, fields: MapValue(fields)), byteCount: 1) }
    return text + table.flush()
  }

  @Test func columnsAreAligned() {
    let text = Self.table([
      ("ann", [("name", "Ann"), ("age", 37), ("score", 1.5)]), ("bo", [("age", 9), ("name", "佐藤 遥"), ("ok", true)]),
      ("c", [("name", .null), ("score", 2.0)]),
    ])
    #expect(
      text == """
        id   age  name     ok    score
        ann   37  Ann              1.5
        bo     9  佐藤 遥  true
        c         null               2

        """)
  }

  @Test func fieldsOfSmallMapsBecomeColumns() {
    let text = Self.table([
      ("a", [("m", map(("y", 1), ("x", map(("z", 2))))), ("n", map(("k", 1)))]),
      ("b", [("m", .null), ("n", 7)]), ("c", [("m", map(("y", 3))), ("v", .vector([1, 2]))]),
    ])
    #expect(
      text == """
        id  m.x.z  m.y  n         v
        a       2    1  {"k": 1}
        b               7
        c            3            {"$vector": [1, 2]}

        """)
    let many = (0..<9).map { ("k\($0)", Value.integer($0)) }
    #expect(Self.table([("a", [("m", .map(MapValue(many)))])]).hasPrefix("id  m\n"))
  }

  @Test func valuesAreReadable() {
    let time = Timestamp(rfc3339: "2025-03-27T14:30:00Z".utf8).unsafelyUnwrapped
    let cells: [(Value, String)] = [
      (.null, "null"), (true, "true"), (-5, "-5"), (30.0, "30"), (0.1, "0.1"), (.double(.nan), "NaN"),
      (.double(-.infinity), "-Infinity"), (.timestamp(time), "2025-03-27T14:30:00Z"), ("plain text", "plain text"),
      ("", "\"\""), ("12", "\"12\""), ("true", "\"true\""), ("2025-03-01", "\"2025-03-01\""), (" x", "\" x\""),
      ("a\u{1B}[31m\nb\u{202E}", #"a\u{1b}[31m\nb\u{202e}"#), (.bytes([1, 2]), "<2 bytes>"),
      (.reference("\(Self.database.documentsRoot)/users/ann"), "users/ann"),
      (.geoPoint(GeoPoint(latitude: 45.5, longitude: 9)), "45.5, 9"), (.array([1, "x", map()]), #"[1, "x", {}]"#),
      (map(("a", 1)), #"{"a": 1}"#),
      (.string(String(repeating: "x", count: 100)), String(repeating: "x", count: 79) + "…"),
    ]
    for (value, text) in cells { #expect(TableCell(value, in: Self.database).text == text) }
  }

  @Test func tablesFitTheTerminal() {
    let rows: [(String, [(String, Value)])] = [
      ("a", [("long", .string(String(repeating: "y", count: 60))), ("n", 1), ("other", "some text here")])
    ]
    let narrow = Self.table(rows, width: 40)
    #expect(
      narrow == """
        id  long               n  other
        a   yyyyyyyyyyyyyyyy…  1  some text here

        """)
    #expect(narrow.split(separator: "\n").allSatisfy { TextWidth.of(String($0)) <= 40 })
    let least = Self.table(rows, width: 20)
    #expect(
      least == """
        a
          long   yyyyyyyyyy…
          n      1
          other  some text…

        """)
    #expect(least.split(separator: "\n").allSatisfy { TextWidth.of(String($0)) <= 20 })
    #expect(Self.table(rows).contains(String(repeating: "y", count: 60)))
  }

  @Test func recordsShowOnlyFieldsThatExist() {
    let fields = (0..<6).map { ("field\($0)", Value.string("value \($0)")) }
    let text = Self.table([("one", Array(fields[..<2])), ("two", Array(fields[2...]))], width: 30)
    #expect(
      text == """
        one
          field0  value 0
          field1  value 1

        two
          field2  value 2
          field3  value 3
          field4  value 4
          field5  value 5

        """)
  }

  @Test(arguments: [
    ("abc", 3), ("é", 1), ("e\u{301}", 1), ("佐藤", 4), ("👩‍👩‍👧", 2), ("🇮🇹", 2), ("❤️", 2), ("✅", 2), ("a\u{200B}b", 2),
    ("", 0),
  ])
  func widthsAreThoseOfGraphemes(text: String, width: Int) { #expect(TextWidth.of(text) == width) }

  @Test func selectedFieldsKeepTheirOrder() {
    let rows: [(String, [(String, Value)])] = [("a", [("b", 1), ("id", 2), ("m", map(("x", 3)))])]
    #expect(Self.table(rows, chosen: ["m", "b"]) == "__name__  m.x  b  id\na           3  1   2\n")
    #expect(Self.table([("", [("sum(a.b)", 3)])], chosen: ["`sum(a.b)`"], nameTitle: nil) == "sum(a.b)\n       3\n")
    #expect(Self.table([]) == "")
  }

  @Test func longResultsKeepTheirColumns() {
    var rows: [(String, [(String, Value)])] = (0..<450).map { ("d\($0)", [("n", .integer($0))]) }
    let lines = Self.table(rows).split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 452)
    #expect(lines[0] == "id      n")
    #expect(lines[450] == "d449  449")
    // A new field starts a new table.
    rows[300].1.append(("x", "new"))
    let parts = Self.table(rows).components(separatedBy: "\n\n")
    #expect(parts.count == 2)
    #expect(parts[1].hasPrefix("id      n  x\nd200  200\n"))
  }
}
