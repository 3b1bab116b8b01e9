import DocumentModel
import Testing
import TestSupport
import WireFormat

@testable import DocumentStore

/// Large writes in one request must not take quadratic time.
@Suite struct LargeWriteTests {
  static let key = DocumentKey(ResourcePath(uncheckedBytes: Array("c/d".utf8)))
  static let now = Timestamp(uncheckedMicroseconds: 1_700_000_000_000_000)

  /// Appends elements in the simplest way: compares each operand with each element.
  static func appended(_ operands: [Value], to stored: [Value]) -> [Value] {
    var elements = stored
    for operand in operands where !elements.contains(where: { Value.compare($0, operand) == .equal }) {
      elements.append(operand)
    }
    return elements
  }

  static func removed(_ operands: [Value], from stored: [Value]) -> [Value] {
    stored.filter { element in !operands.contains { Value.compare($0, element) == .equal } }
  }

  static func apply(_ kind: FieldTransform.Kind, _ path: FieldPath, to map: inout MapValue) {
    _ = FieldTransformation.apply(FieldTransform(path, kind), to: &map, requestTime: now)
  }

  static let pool: [Value] = [
    .null, .boolean(true), .integer(1), .double(1), .integer(2), .double(.nan), .double(-0.0), .integer(0),
    .string("a"), .string("b"), .map(MapValue([("a", .integer(1))])), .map(MapValue([("a", .double(1))])),
    .vector([1, 2]), .integer(.max), .double(0x1p63),
  ]

  @Test(arguments: 0..<50) func arrayTransformsMatchASimpleImplementation(seed: UInt64) throws {
    var generator = SplitMix(seed: seed)
    func values() -> [Value] {
      (0..<Int(generator.next() % 12)).compactMap { _ in Self.pool.randomElement(using: &generator) }
    }
    let stored = values()
    let operands = values()
    let path = try FieldPath("x")
    var map = MapValue([("x", .array(stored))])
    Self.apply(.appendMissingElements(operands), path, to: &map)
    #expect(map[path] == .array(Self.appended(operands, to: stored)), "seed \(seed)")
    map = MapValue([("x", .array(stored))])
    Self.apply(.removeAllFromArray(operands), path, to: &map)
    #expect(map[path] == .array(Self.removed(operands, from: stored)), "seed \(seed)")
  }

  @Test func arrayTransformsOfManyElementsAreFast() throws {
    let path = try FieldPath("x")
    let operands = (0..<100_000).map { Value.integer($0) }
    var map = MapValue()
    let appending = threadTime { Self.apply(.appendMissingElements(operands), path, to: &map) }
    #expect(map[path] == .array(operands))
    let removing = threadTime { Self.apply(.removeAllFromArray(operands), path, to: &map) }
    #expect(map[path] == .array([]))
    #expect(appending + removing < .seconds(20))
  }

  @Test func oneDocumentCanBeChangedManyTimes() throws {
    let key = try #require(Self.key)
    let wide = EncodedFields(MapValue((0..<20_000).map { ("f\(100_000 + $0)", .integer($0)) }))
    let path = try FieldPath("n")
    var document = StagedDocument(key, base: .init(create: 1, update: 2, fields: wide))
    let write = Write(
      .update(.none, mask: FieldMask([])), key: key, transforms: [FieldTransform(path, .increment(.integer(1)))],
      precondition: .exists(true))
    let time = try threadTime {
      for count in 1...5000 {
        let results = try document.apply(write, requestTime: Self.now)
        #expect(results == [.integer(Int64(count))])
      }
    }
    #expect(time < .seconds(20))
    document.encode()
    #expect(document.isChanged && document.keptCreateVersion == 1)
    #expect(try document.fields?.decoded()[path] == .integer(5000))
  }

  @Test func writesOfOneDocumentSeeEachOther() throws {
    let key = try #require(Self.key)
    func fields(_ value: Int64) -> EncodedFields { EncodedFields(MapValue([("a", .integer(value))])) }
    let mask = FieldMask([try FieldPath("b")])
    let update = Write(.update(EncodedFields(MapValue([("b", .integer(7))])), mask: mask), key: key)
    var document = StagedDocument(key, base: nil)
    _ = try document.apply(update, requestTime: Self.now)
    _ = try document.apply(Write(.verify, key: key, precondition: .exists(true)), requestTime: Self.now)
    _ = try document.apply(Write(.delete, key: key), requestTime: Self.now)
    _ = try document.apply(Write(.update(fields(1), mask: nil), key: key), requestTime: Self.now)
    _ = try document.apply(update, requestTime: Self.now)
    document.encode()
    #expect(document.fields == EncodedFields(MapValue([("a", .integer(1)), ("b", .integer(7))])))
    #expect(document.keptCreateVersion == nil)

    var same = StagedDocument(key, base: .init(create: 1, update: 2, fields: fields(1)))
    _ = try same.apply(Write(.update(fields(9), mask: mask), key: key), requestTime: Self.now)
    same.encode()
    #expect(!same.isChanged && same.keptCreateVersion == 1)
    _ = try same.apply(update, requestTime: Self.now)
    _ = try same.apply(Write(.delete, key: key), requestTime: Self.now)
    same.encode()
    #expect(same.isChanged && same.fields == nil)
  }

  @Test func requestBytesIncludeTransformOperands() throws {
    let key = try #require(Self.key)
    let operands = (0..<1000).map { _ in Value.string(String(repeating: "x", count: 1000)) }
    let write = Write(
      .update(.none, mask: FieldMask([])), key: key,
      transforms: [FieldTransform(try FieldPath("x"), .appendMissingElements(operands))])
    #expect(CommitRequest([write]).bytes > 1_000_000)
  }
}
