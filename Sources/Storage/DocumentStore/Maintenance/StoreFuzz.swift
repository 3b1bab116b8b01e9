import DocumentModel
import KeyEncoding
import WireFormat

/// Fuzzing entry points for stored bytes. Each accepts any bytes, must not trap, and checks invariants.
package enum StoreFuzz {
  /// Decodes bytes as a stored row under a key. Then encodes them as the fields of a row and damages one bit.
  package static func storedRow(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    let split = min(Int(first), rest.count)
    let key = UnsafeRawBufferPointer(rebasing: rest[..<split])
    let body = UnsafeRawBufferPointer(rebasing: rest[split...])
    if let document = try? SnapshotReader.decode(row: body, key: key) {
      precondition(document.fields.count == body.count - StoredDocument.headerBytes, "the fields follow the header")
    }
    var row: [UInt8] = []
    StoredDocument.encode(key: key, create: 1, update: Int64(first), fields: body, into: &row)
    row.withUnsafeBytes { row in
      let read = try? SnapshotReader.decode(row: row, key: key)
      precondition(read?.updateVersion == Int64(first), "an encoded row is readable")
      precondition(read?.fields.elementsEqual(body) == true, "the fields are unchanged")
    }
    row[(Int(first) &* 31 &+ bytes.count) % row.count] ^= 1 << (first & 7)
    let damaged = row.withUnsafeBytes { try? SnapshotReader.decode(row: $0, key: key) }
    precondition(damaged == nil, "a damaged row is detected")
  }

  /// Decodes bytes as the codes in storage keys, and encodes them as IDs and fields.
  package static func orderedCode(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty, OrderedCode.skipValue(&rest) != nil {}
    rest = bytes
    while !rest.isEmpty, OrderedCode.takeNumber(&rest) != nil {}
    rest = bytes
    var id: [UInt8] = []
    while !rest.isEmpty, OrderedCode.take(segment: &rest, into: &id) { id.removeAll() }
    id.removeAll()
    _ = OrderedCode.decode(lastID: bytes, into: &id)
    ids(Array(bytes.prefix(bytes.count / 2)), Array(bytes.dropFirst(bytes.count / 2)))
    values(bytes)
  }

  /// Checks that IDs round-trip through their codes, and that different IDs have different codes.
  private static func ids(_ a: [UInt8], _ b: [UInt8]) {
    guard !a.isEmpty, !b.isEmpty else { return }
    var codes: [[UInt8]] = []
    for id in [a, b] {
      var code: [UInt8] = []
      OrderedCode.append(segment: id, to: &code)
      var read: [UInt8] = []
      let isRead = code.withUnsafeBytes { code in
        var rest = code
        return OrderedCode.take(segment: &rest, into: &read) && rest.isEmpty
      }
      precondition(isRead && read == id, "a segment round-trips through its code")
      code.removeAll()
      read.removeAll()
      OrderedCode.append(lastID: id, to: &code)
      let isLastRead = code.withUnsafeBytes { OrderedCode.decode(lastID: $0, into: &read) }
      precondition(isLastRead && read == id, "an ID round-trips through its code")
      codes.append(code)
    }
    precondition((codes[0] == codes[1]) == (a == b), "different IDs have different codes")
  }

  /// Checks that the code of every value marks its own end.
  private static func values(_ bytes: UnsafeRawBufferPointer) {
    guard let fields = try? EncodedFields.canonical(fromClient: bytes) else { return }
    let isRead: Void? = try? fields.withMap { (map) throws(WireError) in
      var entries = map.makeIterator()
      while let (_, value) = try entries.next() {
        var code: [UInt8] = []
        try OrderedCode.append(value, to: &code)
        code.withUnsafeBytes { code in
          var rest = code
          precondition(OrderedCode.skipValue(&rest) != nil && rest.isEmpty, "a value's code marks its own end")
        }
      }
    }
    precondition(isRead != nil, "canonical fields are readable")
  }
}
