import DocumentModel
import FixtureTree
import Testing
import TestSupport
import WireFormat

@testable import FirebaseExport

/// Documents as entities: the bytes of the official emulator, and entities that only managed exports contain.
@Suite struct EntityTests {
  private static func database(_ project: String = "demo-x") throws -> DatabaseID {
    try #require(DatabaseID(project: project))
  }

  private static func encode(_ path: String, _ fields: MapValue, _ project: String = "demo-x") throws -> [UInt8] {
    let key = try #require(DocumentKey(try ResourcePath(path)))
    var out: [UInt8] = []
    try EntityEncoder(database: try database(project)).append(key, EncodedFields(fields), to: &out)
    return out
  }

  private static func decode(
    _ record: [UInt8], for project: String = "demo-x"
  ) throws -> (document: FixtureDocument, references: ReferenceCounts) {
    var decoder = EntityDecoder(database: try database(project))
    let document = try record.withUnsafeBytes { bytes in try Result { try decoder.document(bytes) }.get() }
    return (document, decoder.takeReferences())
  }

  private static func message(_ record: [UInt8]) throws -> String {
    let error = try #require(throws: RecordError.self) { try decode(record) }
    return "\(error.path): \(error.field): \(error.message)"
  }

  /// Records of the official emulator (June 2025) for `vals/v`, without the key and the entity group.
  static let records: [(name: String, Value, properties: String)] = [
    ("n", .null, "7a071a016e20002a00"),
    ("b", .boolean(true), "7a091a016220002a021001"),
    ("i", .integer(-1), "7a121a016920002a0b08ffffffffffffffffff01"),
    ("d", .double(1.5), "7a101a016420002a0921000000000000f83f"),
    ("s", .string("h\u{E9}"), "7a0c1a017320002a051a0368c3a9"),
    ("y", .bytes([0, 1]), "7a0d080e1a017920002a041a020001"),
    ("t", .timestamp(.earliest), "7a1408071a017420002a0b088080d1869080d091ff01"),
    (
      "g", .geoPoint(GeoPoint(latitude: 1, longitude: 2)),
      "7a1d08091a016720002a142b31000000000000f03f3900000000000000402c"
    ),
    (
      "r", .reference("projects/demo-x/databases/(default)/documents/users/ann"),
      "7a241a017220002a1d636a0a6465767e64656d6f2d78737a0575736572738a0103616e6e7464"
    ),
    ("a", .array([.integer(1), .string("x")]), "7a091a016120012a0208017a0a1a016120012a031a0178"),
    ("e", .array([]), "720908181a016520002a00"),
    ("m", .map([:]), "7a1408131a016d20002a0b1a096a046a007200820100"),
    ("v", .vector([1, 2.5]), "7a12081f1a017620012a0921000000000000f03f7a12081f1a017620012a09210000000000000440"),
  ]

  @Test(arguments: records.indices)
  func entitiesAreThoseOfTheEmulator(index: Int) throws {
    let (name, value, properties) = Self.records[index]
    let key = "6a196a0a6465767e64656d6f2d78720b0b120476616c732201760c"
    let record = try Self.encode("vals/v", MapValue([(name, value)]))
    #expect(Hex.text(record) == "\(key)\(properties)82010b0b120476616c732201760c")
    let fields = MapValue([(name, value)])
    #expect(try Self.decode(record).document.fields == EncodedFields(fields))
  }

  @Test func numericIDsAndSubcollectionsAreRead() throws {
    for path in ["users/__id42__", "a/b/c/__id-7__", "users/12345", "u/\u{FC} c\u{F6}d\u{E9}", "missing/p/posts/p2"] {
      #expect(try Self.decode(try Self.encode(path, [:])).document.key.path.text == path)
    }
    #expect(Hex.text(try Self.encode("users/__id42__", [:])).contains("120575736572731" + "82a0c"))
  }

  @Test(arguments: TestSeeds.of("HEARTH_EXPORT_SEED", otherwise: [1, 2, 3]))
  func randomDocumentsAreUnchanged(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    for _ in 0..<300 {
      let fields = random.mapValue()
      guard let stored = try? Self.checked(EncodedFields(fields)) else { continue }
      let found = try Self.decode(try Self.encode("c/d", try stored.decoded())).document.fields
      #expect(found == stored, "seed \(seed): \(fields)")
    }
  }

  /// Returns the fields as a write stores them.
  private static func checked(_ fields: EncodedFields) throws -> EncodedFields {
    var encoder = CanonicalEncoder()
    try fields.bytes.withUnsafeBytes { bytes in try Result { try encoder.appendFields(fromClient: bytes) }.get() }
    return EncodedFields(canonical: encoder.bytes)
  }

  @Test func referencesToTheExportedDatabaseAreRewritten() throws {
    let record = try Self.encode(
      "c/d",
      [
        "own": .reference("projects/demo-x/databases/(default)/documents/users/ann"),
        "other": .reference("projects/else/databases/(default)/documents/users/ann"),
        "second": .reference("projects/demo-x/databases/second/documents/a/b"),
      ])
    let same = try Self.decode(record)
    #expect(same.references == ReferenceCounts(rewritten: 0, foreign: 2))
    let (document, references) = try Self.decode(record, for: "my-app")
    #expect(references == ReferenceCounts(rewritten: 1, foreign: 2))
    let fields = try document.fields.decoded()
    #expect(fields["own"] == .reference("projects/my-app/databases/(default)/documents/users/ann"))
    #expect(fields["other"] == .reference("projects/else/databases/(default)/documents/users/ann"))
    #expect(fields["second"] == .reference("projects/demo-x/databases/second/documents/a/b"))
  }

  /// An entity with a key in `s~my-app`, and properties that a test gives.
  private static func entity(_ append: (inout [UInt8]) -> Void) -> [UInt8] {
    var out: [UInt8] = []
    ProtobufWriter.message(EntitySchema.key, to: &out) { key in
      ProtobufWriter.string(EntitySchema.Reference.app, "s~my-app", to: &key)
      ProtobufWriter.bytes(EntitySchema.Reference.path, [0x0B, 0x12, 1, 0x63, 0x22, 1, 0x64, 0x0C], to: &key)
    }
    append(&out)
    return out
  }

  private static func property(
    _ number: Int, _ name: String, meaning: Int64 = 0, isMultiple: Bool = false, to out: inout [UInt8],
    _ value: (inout [UInt8]) -> Void
  ) {
    ProtobufWriter.message(number, to: &out) { property in
      if meaning != 0 { ProtobufWriter.int64(EntitySchema.Property.meaning, meaning, to: &property) }
      ProtobufWriter.string(EntitySchema.Property.name, name, to: &property)
      ProtobufWriter.bool(EntitySchema.Property.multiple, isMultiple, to: &property)
      ProtobufWriter.message(EntitySchema.Property.value, to: &property, value)
    }
  }

  @Test func indexedAndOtherPropertiesAreOneDocument() throws {
    // The elements of an array need not be adjacent, and long texts have a meaning of their own.
    let record = Self.entity { out in
      Self.property(14, "list", isMultiple: true, to: &out) { ProtobufWriter.int64(1, 1, to: &$0) }
      Self.property(14, "n", to: &out) { ProtobufWriter.int64(1, 5, to: &$0) }
      Self.property(14, "list", isMultiple: true, to: &out) { ProtobufWriter.int64(1, 2, to: &$0) }
      Self.property(15, "long", meaning: 15, to: &out) { ProtobufWriter.string(3, "text", to: &$0) }
      Self.property(15, "list", isMultiple: true, to: &out) { ProtobufWriter.int64(1, 3, to: &$0) }
    }
    let document = try Self.decode(record).document
    #expect(document.key.path.text == "c/d")
    #expect(
      try document.fields.decoded() == [
        "list": .array([.integer(1), .integer(2), .integer(3)]), "long": .string("text"), "n": .integer(5),
      ])
  }

  @Test func entitiesThatAreNoDocumentsAreRefused() throws {
    let cases: [(record: [UInt8], text: String)] = [
      ([], "the record is not an entity: it has no key"),
      ([0xFF], "truncated varint"),
      (try Self.encode("a/b", [:]).dropLast(5), "field longer than its message"),
      (
        Self.entity { Self.property(15, "u", to: &$0) { $0 += [0x43, 0x44] } },
        "c/d: u: the value is a user of Datastore, which Firestore does not have"
      ),
      (
        Self.entity { Self.property(15, "x", meaning: 32, to: &$0) { ProtobufWriter.int64(1, 1, to: &$0) } },
        "type of the enterprise edition (meaning 32)"
      ),
      (
        Self.entity { Self.property(15, "t", meaning: 7, to: &$0) { ProtobufWriter.int64(1, .max, to: &$0) } },
        "c/d: t: "
      ),
      (
        Self.entity { out in
          for _ in 0..<2 { Self.property(15, "a", to: &out) { ProtobufWriter.int64(1, 1, to: &$0) } }
        }, "c/d: a: the field occurs twice"
      ),
      (
        Self.entity { Self.property(15, "__x__", to: &$0) { ProtobufWriter.int64(1, 1, to: &$0) } },
        "c/d: __x__: "
      ),
      (
        Self.entity { Self.property(15, "m", meaning: 19, to: &$0) { ProtobufWriter.bytes(3, [0xFF], to: &$0) } },
        "c/d: m: truncated varint"
      ),
      (
        Self.entity { Self.property(15, "s", to: &$0) { ProtobufWriter.bytes(3, [0xFF], to: &$0) } }, "c/d: s: "
      ),
    ]
    for (record, text) in cases {
      let message = try Self.message(Array(record))
      #expect(message.contains(text), "\(message)")
    }
  }

  @Test func mapsNestedTooDeeplyAreRefused() throws {
    var inner: [UInt8] = []
    for _ in 0..<30 {
      var outer: [UInt8] = []
      Self.property(15, "m", meaning: 19, to: &outer) { ProtobufWriter.bytes(3, inner, to: &$0) }
      inner = outer
    }
    let message = try Self.message(Self.entity { $0 += inner })
    #expect(message.contains("c/d: m.m.m"), "\(message)")
  }
}

/// Bytes as hexadecimal text.
enum Hex {
  static func text(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
