import DocumentModel
import FixtureTree
import TestSupport
import WireFormat

/// Random documents in nested collections, with names that are hard to escape.
extension SplitMix {
  static let names = [
    "a", "b", "users", "habits", "metrics", "$ref", "$", "$$", "$fields", "$missing", "$collections", "a.b",
    "with space",
    " ", "\"quoted\"", "back\\slash", "tab\t", "new\nline", "\u{0}", "\u{1F}", "\u{E9}", "e\u{301}", "読書", "📚👩‍👩‍👧",
    "`tick`", "*", "__id7__", "__id-3__", "__id", "value", "12", "7", "\u{2028}", "\u{7F}", "{\"x\": 1}", "projects",
    "2025-04-29T16:30:12", String(repeating: "long", count: 40), "...", "__datatype__", "path", "%2F",
  ]

  mutating func fixtureID() -> String {
    let id = pick(Self.names)
    return ResourceID.isReserved(id.utf8) && ResourceID.number(id.utf8) == nil ? "d" : id
  }

  /// Returns a collection ID or a field name.
  mutating func name() -> String {
    let name = pick(Self.names)
    return ResourceID.isReserved(name.utf8) ? "c" : name
  }

  static let references = [
    "projects/demo/databases/(default)/documents/users/u1", "projects/demo/databases/other/documents/users/u1",
    "projects/demo/databases/(default)/documents/projects/p/databases/d/documents/x",
    "projects/demo/databases/(default)/documents/$a/\u{E9}/b c/\"d\"", "projects/p/databases/d/documents/c/__id7__",
  ]

  /// Returns any valid value. The keys of its maps are ``names``.
  mutating func fixtureValue(depth: Int, inArray: Bool = false) -> Value {
    switch Int.random(in: 0...(depth >= 4 ? 5 : 9), using: &self) {
    case 0: .string(chance(oneIn: 3) ? pick(Self.names) + pick(Self.names) : pick(Self.names))
    case 1: .reference(pick(Self.references))
    case 2: .vector((0..<Int.random(in: 1...40, using: &self)).map { _ in pick([0, -0.0, 1, 0.5, .infinity, 1e300]) })
    case 6 where !inArray, 7 where !inArray:
      .array((0..<Int.random(in: 0...6, using: &self)).map { _ in fixtureValue(depth: depth + 1, inArray: true) })
    case 8, 9: .map(fixtureMap(depth: depth + 1))
    default: value(depth: 3, inArray: inArray)
    }
  }

  mutating func fixtureMap(depth: Int) -> MapValue {
    MapValue((0..<pick([0, 1, 2, 5])).map { _ in (name(), fixtureValue(depth: depth)) })
  }

  /// Returns documents in name order. Some parents are missing, and fields often share a name with a subcollection.
  mutating func tree() -> [FixtureDocument] {
    var byKey: [DocumentKey: FixtureDocument] = [:]
    for _ in 0..<Int.random(in: 0...30, using: &self) {
      var path = ResourcePath.root
      for _ in 0..<pick([1, 1, 2, 2, 3, 4]) {
        path = path.appending(name()).appending(fixtureID())
      }
      guard let key = DocumentKey(path) else { continue }
      byKey[key] = FixtureDocument(key: key, fields: EncodedFields(fixtureMap(depth: 0)), line: 0)
    }
    return byKey.values.sorted { $0.key < $1.key }
  }
}
