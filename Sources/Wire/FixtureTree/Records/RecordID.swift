/// The rules for the IDs of records: objects in arrays, lines without paths, and rows of CSV.
///
/// - `--id NAME` names the member with the ID. Otherwise it is `__id__`, `_id` or `id`, the first of these that the
///   first record has. Then every record must have it.
/// - If the first record has no such member, no record may have one, and every document gets a random ID.
/// - The member is also stored as a field, except `__id__`, whose name is reserved.
enum RecordID {
  /// The members that are IDs without an option, in this order.
  static let names: [StaticString] = ["__id__", "_id", "id"]
  /// The index in ``names`` of the name that cannot be a field.
  static let reserved = 0
  /// The name space of IDs in a ``KeyTable``.
  static let space: UInt64 = 3

  /// The remedies in errors about IDs.
  static let remedy = "name another one with --id, or give --generate-ids"

  /// Returns the index in ``names`` of a name, or `nil`.
  @inline(__always)
  static func index(of name: UnsafeRawBufferPointer) -> Int? {
    guard name.count == 2 || name.count == 3 || name.count == 6 else { return nil }
    return names.firstIndex { DocumentBuilder.isEqual(name, $0) }
  }
}

/// A generator of document IDs like those of Firestore's clients: 20 random letters and digits.
struct RandomDocumentID {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  private static let count = 20

  private var generator = SystemRandomNumberGenerator()

  /// Returns a new ID.
  mutating func next() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Self.count) { space, filled in
      var bits: UInt64 = 0
      var bitCount = 0
      while filled < Self.count {
        if bitCount < 6 {
          bits = generator.next()
          bitCount = 60
        }
        let index = Int(bits & 63)
        bits >>= 6
        bitCount -= 6
        guard index < Self.letters.count else { continue }
        space[filled] = Self.letters[index]
        filled += 1
      }
    }
  }
}

extension DocumentBuilder {
  /// Completes the path of a record whose collection is the current path.
  /// - Throws: ``FixtureTreeError`` if the ID is not valid or an earlier record has it.
  mutating func enterRecord(_ id: [UInt8], line: Int) throws(FixtureTreeError) {
    guard !id.isEmpty else { throw failure("the ID is empty; \(RecordID.remedy)") }
    try id.withUnsafeBytesTyped { (bytes) throws(FixtureTreeError) in
      try enter(bytes)
      if let earlier = keys.insert(bytes, space: RecordID.space, line: line) {
        throw failure(
          "two records have the ID \(FixtureTreeError.quote(bytes)), the first on line \(earlier); \(RecordID.remedy)")
      }
    }
  }
}
