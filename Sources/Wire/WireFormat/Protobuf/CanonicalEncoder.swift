import CSimdjson
package import DocumentModel

/// An encoder that builds canonical field bytes from a client's input, event by event, and checks every rule for
/// values.
///
/// Both the JSON and the protobuf decoder use it, so both enforce the same rules (firestore-api.md, sections 7.5
/// and 12): field names, nesting, UTF-8, sizes, ranges, references and vectors. In the result, the keys of each map
/// ascend without repeats (of equal keys the last one is kept), each Value has one member, timestamps are truncated
/// to microseconds, and NaN has one bit pattern.
///
/// Events nest like brackets: `beginFields`, then for each field `beginEntry`, one value and `endEntry`, then
/// `endFields`. One decoder owns and reuses an encoder. Buffers keep their capacity, so the steady state allocates
/// nothing. After an error, call ``reset(_:_:)``.
package struct CanonicalEncoder {
  /// The use of the values.
  package enum Purpose: Sendable {
    /// Values to store: an array must not directly contain an array.
    case stored
    /// An operand of a query or a cursor: arrays may contain arrays.
    case operand
  }

  /// The encoded bytes so far.
  package private(set) var bytes: [UInt8] = []

  private var purpose = Purpose.stored
  private var edition = Edition.standard
  private var frames: [Frame] = []
  /// The finished entries of all open maps. Those of the innermost map are last.
  private var entries: [Entry] = []
  private var scratch: [UInt8] = []

  /// An open document, map or array.
  private struct Frame {
    enum Kind {
      case fields
      case map
      case array
    }
    let kind: Kind
    /// The offset of the Value message of this map or array, or -1 if it is not inside a Value.
    let valueStart: Int
    /// The offset of the content.
    let contentStart: Int
    /// The index in `entries` of the first entry of this map.
    let firstEntry: Int
    /// The open or latest entry: the offsets of its message and of its key, and the length of the key.
    var entryStart = 0
    var keyStart = 0
    var keyCount = 0
    /// Whether all keys so far are in strictly ascending order.
    var isSorted = true
    /// Whether a key is reserved. Such a map must represent a vector or a BSON value.
    var hasReservedKey = false
  }

  /// A finished entry: its bytes including the tag, and its key.
  private struct Entry {
    let start: Int
    let end: Int
    let keyStart: Int
    let keyCount: Int
  }

  /// Creates an encoder without buffers.
  package init(_ purpose: Purpose = .stored, _ edition: Edition = .standard) {
    self.purpose = purpose
    self.edition = edition
  }

  /// Discards all input and keeps the buffers. `edition` is that of the database that the values are for.
  package mutating func reset(_ purpose: Purpose = .stored, _ edition: Edition = .standard) {
    self.purpose = purpose
    self.edition = edition
    bytes.removeAll(keepingCapacity: true)
    frames.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
  }

  // MARK: Documents, maps, arrays

  /// Starts the fields of a document.
  package mutating func beginFields() {
    frames.append(Frame(kind: .fields, valueStart: -1, contentStart: bytes.count, firstEntry: entries.count))
  }

  /// Ends the fields of a document, and sorts them if necessary.
  package mutating func endFields() {
    guard let frame = frames.popLast() else { return }
    sortEntries(of: frame)
  }

  /// Starts a field of the innermost map or document.
  /// - Throws: ``WireError/model(_:)`` if the name is empty, too long, reserved or not valid UTF-8.
  package mutating func beginEntry(key: UnsafeRawBufferPointer) throws(WireError) {
    guard var frame = frames.popLast() else { return }
    try check(name: key, in: &frame)
    let tag = frame.kind == .fields ? EncodedMap.documentTag : EncodedMap.mapValueTag
    if frame.isSorted, let last = entries.last, entries.count > frame.firstEntry {
      frame.isSorted = bytes.withUnsafeBytes { buffer in
        EncodedMap.compare(UnsafeRawBufferPointer(rebasing: buffer[last.keyStart..<last.keyStart + last.keyCount]), key)
          == .less
      }
    }
    bytes.append(tag)
    bytes.append(0)
    frame.entryStart = bytes.count
    bytes.append(0x0A)
    ProtobufWriter.varint(UInt64(key.count), to: &bytes)
    frame.keyStart = bytes.count
    frame.keyCount = key.count
    bytes.append(raw: key)
    frames.append(frame)
  }

  /// Ends the field that ``beginEntry(key:)`` started, after its value.
  package mutating func endEntry() {
    guard let frame = frames.last else { return }
    let end = bytes.count
    ProtobufWriter.endMessage(frame.entryStart, in: &bytes)
    let shift = bytes.count - end
    entries.append(
      Entry(
        start: frame.entryStart - 2, end: bytes.count, keyStart: frame.keyStart + shift, keyCount: frame.keyCount))
  }

  /// Starts a map value.
  /// - Throws: ``WireError/model(_:)`` if it is nested too deeply.
  package mutating func beginMap() throws(WireError) {
    try checkDepth()
    let start = beginValue()
    let content = ProtobufWriter.beginMessage(EncodedValue.Member.map, to: &bytes)
    frames.append(Frame(kind: .map, valueStart: start, contentStart: content, firstEntry: entries.count))
  }

  /// Ends a map value, sorts it if necessary, and checks it if it has a reserved key.
  /// - Throws: ``WireError/model(_:)`` if it has a reserved key but is neither a valid vector nor a valid BSON
  ///   value.
  package mutating func endMap() throws(WireError) {
    guard let frame = frames.popLast() else { return }
    sortEntries(of: frame)
    if frame.hasReservedKey { try normalizeReservedMap(from: frame.contentStart) }
    ProtobufWriter.endMessage(frame.contentStart, in: &bytes)
    endValue(frame.valueStart)
  }

  /// Starts an array value.
  /// - Throws: ``WireError/model(_:)`` if it is nested too deeply, or if it is directly inside an array of values
  ///   to store.
  package mutating func beginArray() throws(WireError) {
    if purpose == .stored, frames.last?.kind == .array { throw .model(.nestedArray) }
    try checkDepth()
    let start = beginValue()
    let content = ProtobufWriter.beginMessage(EncodedValue.Member.array, to: &bytes)
    frames.append(Frame(kind: .array, valueStart: start, contentStart: content, firstEntry: entries.count))
  }

  /// Ends an array value.
  package mutating func endArray() {
    guard let frame = frames.popLast() else { return }
    ProtobufWriter.endMessage(frame.contentStart, in: &bytes)
    endValue(frame.valueStart)
  }

  /// The place of the next value, for ``withValue(from:_:)`` and ``removeValue(from:)``.
  package var mark: Int { bytes.count }

  /// Calls `body` with the complete value that was appended at a mark.
  /// - Throws: The error of `body`.
  package func withValue<R, E: Error>(
    from mark: Int, _ body: (EncodedValue) throws(E) -> R
  ) throws(E) -> R? {
    try bytes.withRawBytes { (buffer) throws(E) in
      var reader = ProtobufReader(UnsafeRawBufferPointer(rebasing: buffer[mark...]))
      guard let field = try? reader.next() else { return nil }
      return try body(EncodedValue(field.bytes))
    }
  }

  /// Removes the complete value that was appended at a mark, so that another one can take its place.
  package mutating func removeValue(from mark: Int) {
    bytes.removeLast(bytes.count - mark)
  }

  // MARK: Scalars

  /// Appends a null value.
  package mutating func null() {
    let start = beginValue()
    ProtobufWriter.int64(EncodedValue.Member.null, 0, to: &bytes)
    endValue(start)
  }

  /// Appends a boolean value.
  package mutating func boolean(_ value: Bool) {
    let start = beginValue()
    ProtobufWriter.bool(EncodedValue.Member.boolean, value, to: &bytes)
    endValue(start)
  }

  /// Appends an integer value.
  package mutating func integer(_ value: Int64) {
    let start = beginValue()
    ProtobufWriter.int64(EncodedValue.Member.integer, value, to: &bytes)
    endValue(start)
  }

  /// Appends a double value. All NaN values get the same bit pattern.
  package mutating func double(_ value: Double) {
    let start = beginValue()
    ProtobufWriter.double(EncodedValue.Member.double, value.isNaN ? .nan : value, to: &bytes)
    endValue(start)
  }

  /// Appends a timestamp value.
  package mutating func timestamp(_ value: Timestamp) {
    let start = beginValue()
    ProtobufWriter.timestamp(EncodedValue.Member.timestamp, value, to: &bytes)
    endValue(start)
  }

  /// Appends a string value.
  /// - Throws: ``WireError/model(_:)`` if it is too long or not valid UTF-8.
  package mutating func string(_ value: UnsafeRawBufferPointer) throws(WireError) {
    try checkSize(value.count)
    guard UTF8Text.isValid(value) else { throw .model(.invalidUTF8(field: propertyPath)) }
    let start = beginValue()
    ProtobufWriter.bytes(EncodedValue.Member.string, value, to: &bytes)
    endValue(start)
  }

  /// Appends a bytes value.
  /// - Throws: ``WireError/model(_:)`` if it is too long.
  package mutating func bytes(_ value: UnsafeRawBufferPointer) throws(WireError) {
    try checkSize(value.count)
    let start = beginValue()
    ProtobufWriter.bytes(EncodedValue.Member.bytes, value, to: &bytes)
    endValue(start)
  }

  /// Appends a bytes value that `fill` writes to a buffer of `maximumCount` bytes. `fill` returns the number of
  /// bytes, or `nil` if the input is invalid. In that case this function appends nothing and returns `false`.
  mutating func bytes(
    maximumCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int?
  ) throws(WireError) -> Bool {
    scratch.removeAll(keepingCapacity: true)
    scratch.append(contentsOf: repeatElement(0, count: maximumCount))
    guard let filled = scratch.withUnsafeMutableBytes(fill) else { return false }
    try checkSize(filled)
    let start = beginValue()
    ProtobufWriter.tag(EncodedValue.Member.bytes, .lengthDelimited, to: &bytes)
    ProtobufWriter.varint(UInt64(filled), to: &bytes)
    bytes.append(contentsOf: scratch[..<filled])
    endValue(start)
    return true
  }

  /// Appends a reference value.
  /// - Throws: ``WireError/model(_:)`` if it is not a full document name or not valid UTF-8.
  package mutating func reference(_ name: UnsafeRawBufferPointer) throws(WireError) {
    guard UTF8Text.isValid(name) else { throw .model(.invalidUTF8(field: propertyPath)) }
    do throws(ModelError) {
      _ = try ResourceName.document(name)
    } catch {
      throw .model(error)
    }
    let start = beginValue()
    ProtobufWriter.bytes(EncodedValue.Member.reference, name, to: &bytes)
    endValue(start)
  }

  /// Appends a geo point value.
  /// - Throws: ``WireError/model(_:)`` if a coordinate is out of range or NaN.
  package mutating func geoPoint(_ point: GeoPoint) throws(WireError) {
    guard (-90.0...90.0).contains(point.latitude) else { throw .model(.latitudeOutOfRange(point.latitude)) }
    guard (-180.0...180.0).contains(point.longitude) else { throw .model(.longitudeOutOfRange(point.longitude)) }
    let start = beginValue()
    ProtobufWriter.geoPoint(EncodedValue.Member.geoPoint, point, to: &bytes)
    endValue(start)
  }

  // MARK: Parts

  /// Starts the Value message inside the innermost array or entry.
  private mutating func beginValue() -> Int {
    guard let kind = frames.last?.kind else { return -1 }
    bytes.append(kind == .array ? 0x0A : 0x12)
    bytes.append(0)
    return bytes.count
  }

  private mutating func endValue(_ start: Int) {
    if start >= 0 { ProtobufWriter.endMessage(start, in: &bytes) }
  }

  private func check(name: UnsafeRawBufferPointer, in frame: inout Frame) throws(WireError) {
    guard !name.isEmpty else { throw .model(.emptyFieldName) }
    guard name.count <= Limits.fieldNameBytesMax else { throw .model(.fieldNameTooLong) }
    guard UTF8Text.isValid(name) else { throw .model(.invalidUTF8(field: String(decoding: name, as: UTF8.self))) }
    if name[0] == UInt8(ascii: "_"), ResourceID.isReserved(name) {
      let isTypeKey = EncodedMap.isEqual(name, "__type__") || (edition.hasBSONTypes && BSONType(key: name) != nil)
      guard frame.kind == .map, isTypeKey else {
        throw .model(.reservedFieldName(String(decoding: name, as: UTF8.self)))
      }
      frame.hasReservedKey = true
    }
  }

  private func checkDepth() throws(WireError) {
    let depth = frames.count - (frames.first?.kind == .fields ? 1 : 0)
    guard depth < Limits.nestingDepthMax else { throw .model(.tooDeep(field: propertyName)) }
  }

  private func checkSize(_ count: Int) throws(WireError) {
    guard count <= edition.valueBytesMax else {
      throw .model(.valueTooLong(field: propertyPath, bytesMax: edition.valueBytesMax))
    }
  }

  /// The name of the outermost open field, or empty outside a field.
  private var propertyName: String { frames.first { $0.kind != .array }.map(key) ?? "" }

  /// The path of the innermost open field.
  private var propertyPath: String {
    frames.filter { $0.kind != .array }.map { FieldPath.quote(key($0)) }.joined(separator: ".")
  }

  private func key(_ frame: Frame) -> String {
    String(decoding: bytes[frame.keyStart..<frame.keyStart + frame.keyCount], as: UTF8.self)
  }

  /// Sorts the entries of a map, removes repeated keys, and discards the records of its entries. The map's bytes
  /// must be the last ones.
  private mutating func sortEntries(of frame: Frame) {
    if !frame.isSorted { rearrangeEntries(of: frame) }
    entries.removeLast(entries.count - frame.firstEntry)
  }

  private mutating func rearrangeEntries(of frame: Frame) {
    scratch.removeAll(keepingCapacity: true)
    bytes.withUnsafeBytes { buffer in
      func key(_ entry: Entry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[entry.keyStart..<entry.keyStart + entry.keyCount])
      }
      entries.withUnsafeMutableBufferPointer { all in
        var own = UnsafeMutableBufferPointer(rebasing: all[frame.firstEntry...])
        own.sort { a, b in
          switch EncodedMap.compare(key(a), key(b)) {
          case .less: true
          case .greater: false
          case .equal: a.start < b.start
          }
        }
        for index in own.indices {
          // Of entries with the same key the last one is kept.
          if index + 1 < own.count, EncodedMap.compare(key(own[index]), key(own[index + 1])) == .equal { continue }
          scratch.append(contentsOf: buffer[own[index].start..<own[index].end])
        }
      }
    }
    bytes.removeLast(bytes.count - frame.contentStart)
    bytes.append(contentsOf: scratch)
  }

  /// Checks the map whose entries start at `start` and which has a reserved key, and replaces it by its stored form.
  private mutating func normalizeReservedMap(from start: Int) throws(WireError) {
    let edition = edition
    let normalized = try bytes.withRawBytes { (buffer) throws(WireError) in
      try ReservedMap.normalized(
        EncodedMap(mapValue: UnsafeRawBufferPointer(rebasing: buffer[start...])), in: edition)
    }
    guard let normalized else { return }
    bytes.removeLast(bytes.count - start)
    ValueCodec.append(normalized, tag: EncodedMap.mapValueTag, to: &bytes)
  }
}

/// The validation of UTF-8 text from outside.
enum UTF8Text {
  /// Returns whether the bytes are valid UTF-8. Cost: one pass, eight bytes at a time for ASCII.
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let base = bytes.baseAddress else { return true }
    if bytes.count > 64 { return hearth_utf8_is_valid(base, bytes.count) }
    var offset = 0
    while offset + 8 <= bytes.count {
      if bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
        return hearth_utf8_is_valid(base, bytes.count)
      }
      offset += 8
    }
    while offset < bytes.count {
      if bytes[offset] >= 0x80 { return hearth_utf8_is_valid(base, bytes.count) }
      offset += 1
    }
    return true
  }
}
