import DocumentModel
import Testing
import TestSupport

@Suite struct MapValuePathTests {
  @Test func settingAtAPathKeepsOtherFields() throws {
    var map = MapValue([("m", .map(MapValue([("a", .integer(1)), ("b", .integer(2))]))), ("s", .string("x"))])
    let before = map
    map.set(.integer(3), at: try FieldPath("m.b"))
    map.set(.integer(4), at: try FieldPath("m.c.d"))
    map.set(.integer(5), at: try FieldPath("s.t"))
    map.remove(at: try FieldPath("m.a"))
    map.remove(at: try FieldPath("none.a"))
    #expect(
      map
        == MapValue([
          ("m", .map(MapValue([("b", .integer(3)), ("c", .map(MapValue([("d", .integer(4))])))]))),
          ("s", .map(MapValue([("t", .integer(5))]))),
        ]))
    #expect(before[try FieldPath("m.b")] == .integer(2))
  }

  @Test func pathsDoNotReachIntoVectors() throws {
    var map = MapValue([("v", .vector([1, 2]))])
    map.remove(at: try FieldPath("v.value"))
    #expect(map == MapValue([("v", .vector([1, 2]))]))
    map.set(.integer(1), at: try FieldPath("v.value"))
    #expect(map == MapValue([("v", .map(MapValue([("value", .integer(1))])))]))
  }

  @Test func wideMapsAreChangedInPlace() throws {
    var map = MapValue()
    let paths = (0..<100_000).map { FieldPath(segments: ["m", "n", "f\(100_000 + $0)"]) }
    let time = threadTime {
      for path in paths { map.set(.null, at: path) }
      for path in paths.reversed() { map.remove(at: path) }
    }
    #expect(time < .seconds(20))
    #expect(map == MapValue([("m", .map(MapValue([("n", .map(MapValue()))])))]))
  }

  static func map(_ paths: String...) throws -> MapValue {
    var map = MapValue()
    for path in paths { map.set(.string(path), at: try FieldPath(path)) }
    return map
  }

  @Test func sortsFieldsByBytesAndKeepsTheLastOfEqualNames() {
    let map = MapValue([("b", .null), ("\u{E9}", .null), ("e\u{301}", .null), ("a", .integer(1)), ("a", .integer(2))])
    #expect(map.entries.map { Array($0.key.utf8) } == ["a", "b", "e\u{301}", "\u{E9}"].map { Array($0.utf8) })
    #expect(map["a"] == .integer(2))
    #expect(map["c"] == nil)
  }

  @Test func setsAndRemovesAtPaths() throws {
    var map = try Self.map("a.b.c", "a.d", "e")
    #expect(map[try FieldPath("a.b.c")] == .string("a.b.c"))
    #expect(map[try FieldPath("e.x")] == nil)
    // A parent that is not a map is replaced.
    map.set(.null, at: try FieldPath("e.f"))
    #expect(map[try FieldPath("e.f")] == .null)
    map.remove(at: try FieldPath("a.b.x"))
    map.remove(at: try FieldPath("a.d.x"))
    #expect(map[try FieldPath("a.d")] == .string("a.d"))
    map.remove(at: try FieldPath("a.b.c"))
    #expect(map[try FieldPath("a.b")] == .map(MapValue()))
    map.remove(at: try FieldPath("a"))
    #expect(map.entries.map(\.key) == ["e"])
  }
}
