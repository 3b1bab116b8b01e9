package import DocumentModel
import Glibc

/// A view of the fields of a document or a map value, read directly from their bytes.
///
/// The bytes are a sequence of map entries in canonical form: keys ascend by their UTF-8 bytes without repeats, and
/// each entry has exactly a key and a value. A view is valid as long as the bytes are. Nothing here allocates.
package struct EncodedMap {
  /// The bytes of the entries.
  package let bytes: UnsafeRawBufferPointer
  /// The tag before each entry: that of field 1 of MapValue or of field 2 of Document.
  let entryTag: UInt8

  static let mapValueTag: UInt8 = 0x0A
  static let documentTag: UInt8 = 0x12

  /// Creates a view of a MapValue message.
  package init(mapValue bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    entryTag = Self.mapValueTag
  }

  /// Creates a view of stored fields, which are the `fields` entries of a Document message.
  package init(documentFields bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    entryTag = Self.documentTag
  }

  /// Whether the map has no fields.
  package var isEmpty: Bool { bytes.isEmpty }

  /// A field: its name in UTF-8 and its value.
  package typealias Entry = (key: UnsafeRawBufferPointer, value: EncodedValue)

  /// Returns an iterator at the first field.
  package func makeIterator() -> Iterator {
    Iterator(reader: ProtobufReader(bytes), entryTag: entryTag)
  }

  /// An iterator over the fields in key order.
  package struct Iterator {
    fileprivate var reader: ProtobufReader
    fileprivate let entryTag: UInt8

    /// The end of the latest entry, in bytes from the start of the map.
    package var position: Int { reader.position }

    /// Returns the next field, or `nil` at the end.
    /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
    @inline(__always)
    package mutating func next() throws(WireError) -> Entry? {
      if let entry = reader.shortMapEntry(entryTag) {
        return (entry.key, EncodedValue(entry.value))
      }
      return try nextOfAnyLength()
    }

    private mutating func nextOfAnyLength() throws(WireError) -> Entry? {
      if reader.isAtEnd { return nil }
      guard reader.skip(entryTag) else { throw .malformedProtobuf("map is not in canonical form") }
      var entry = ProtobufReader(try reader.lengthDelimited())
      guard entry.skip(0x0A) else { throw .malformedProtobuf("map entry without a key") }
      let key = try entry.lengthDelimited()
      guard entry.skip(0x12) else { throw .malformedProtobuf("map entry without a value") }
      let value = EncodedValue(try entry.lengthDelimited())
      guard entry.isAtEnd else { throw .malformedProtobuf("map entry is not in canonical form") }
      return (key, value)
    }
  }

  /// Returns the value of a field, or `nil` if it is missing. Cost: one pass over the preceding fields, without
  /// their content.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package func value(for key: UnsafeRawBufferPointer) throws(WireError) -> EncodedValue? {
    var iterator = makeIterator()
    while let entry = try iterator.next() {
      switch EncodedMap.compare(entry.key, key) {
      case .less: continue
      case .equal: return entry.value
      case .greater: return nil
      }
    }
    return nil
  }

  /// Returns the value of a field, or `nil` if it is missing.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package func value(for key: String) throws(WireError) -> EncodedValue? {
    try key.withRawUTF8 { (utf8) throws(WireError) in try value(for: utf8) }
  }

  /// Returns the value at a path through nested maps, or `nil` if a step is missing or not a map.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package func value(at path: FieldPath) throws(WireError) -> EncodedValue? {
    var current = self
    for index in path.segments.indices {
      guard let value = try current.value(for: path.segments[index]) else { return nil }
      if index == path.segments.count - 1 { return value }
      guard let inner = try value.fields else { return nil }
      current = inner
    }
    return nil
  }

  /// The components if this map represents a vector: exactly `__type__` = `__vector__` and an array `value`.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var vectorComponents: EncodedArray? {
    get throws(WireError) {
      // This check rejects most maps: the first entry of a vector is 25 bytes long, and its key has 8 bytes.
      guard bytes.count > 4, bytes[1] == 25, bytes[2] == 0x0A, bytes[3] == 8 else { return nil }
      var iterator = makeIterator()
      guard let type = try iterator.next(), Self.isEqual(type.key, "__type__"),
        case .string(let name) = try type.value.content, Self.isEqual(name, "__vector__"),
        let value = try iterator.next(), Self.isEqual(value.key, "value"),
        case .array(let components) = try value.value.content, try iterator.next() == nil
      else { return nil }
      return components
    }
  }

  /// Whether this map represents a vector.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var isVector: Bool {
    get throws(WireError) { try vectorComponents != nil }
  }

  /// The type and content if this map represents a BSON value, which is a map with one reserved key.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var bson: (type: BSONType, content: EncodedValue)? {
    get throws(WireError) {
      // This check rejects most maps: the field names of users do not begin with two underscores.
      guard bytes.count > 8 else { return nil }
      var start = 2
      while start < 6, bytes[start - 1] >= 0x80 { start += 1 }
      guard start + 3 < bytes.count, bytes[start] == 0x0A, bytes[start + 2] == UInt8(ascii: "_"),
        bytes[start + 3] == UInt8(ascii: "_")
      else { return nil }
      var iterator = makeIterator()
      guard let entry = try iterator.next(), let type = BSONType(key: entry.key), try iterator.next() == nil
      else { return nil }
      return (type, entry.value)
    }
  }

  /// Whether this map represents a vector or a BSON value. Field paths do not lead into such a map.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not in canonical form.
  package var isOpaque: Bool {
    get throws(WireError) {
      if try isVector { return true }
      return try bson != nil
    }
  }

  /// Compares UTF-8 bytes. A prefix sorts first.
  @inline(__always)
  package static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Ordering {
    let common = min(a.count, b.count)
    if common > 0, a[0] != b[0] { return a[0] < b[0] ? .less : .greater }
    if common > 0, let left = a.baseAddress, let right = b.baseAddress {
      let order = memcmp(left, right, common)
      if order != 0 { return order < 0 ? .less : .greater }
    }
    return a.count == b.count ? .equal : (a.count < b.count ? .less : .greater)
  }

  @inline(__always)
  static func isEqual(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
    bytes.count == text.utf8CodeUnitCount
      && (bytes.isEmpty || bytes.baseAddress.map { memcmp($0, text.utf8Start, bytes.count) == 0 } ?? false)
  }
}

extension String {
  /// Calls `body` with the UTF-8 bytes. Cost: none for native strings, the only kind in this project.
  func withRawUTF8<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    var copy = self
    // `withUTF8` rethrows untyped errors, so the outcome is returned as a value.
    let outcome: Result<R, E> = copy.withUTF8 { utf8 in
      do throws(E) {
        return .success(try body(UnsafeRawBufferPointer(utf8)))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }
}
