import DocumentModel

extension EncodedMap {
  /// Appends the map's entries to `out` with one field set to a double, at its position among the sorted keys.
  ///
  /// Cost: one pass over the entries before the field, and one copy.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the map is damaged. `out` is then unchanged.
  package func append(setting name: String, to number: Double, out: inout [UInt8]) throws(WireError) {
    try name.withRawUTF8 { (key) throws(WireError) in try append(setting: key, to: number, &out) }
  }

  private func append(
    setting key: UnsafeRawBufferPointer, to number: Double, _ out: inout [UInt8]
  ) throws(WireError) {
    var iterator = makeIterator()
    // The end of the entries before the field, and the start of those after it.
    var head = 0
    var tail = bytes.count
    while let entry = try iterator.next() {
      let order = Self.compare(entry.key, key)
      if order == .less {
        head = iterator.position
        continue
      }
      tail = order == .equal ? iterator.position : head
      break
    }
    out.append(raw: UnsafeRawBufferPointer(rebasing: bytes[..<head]))
    out.append(entryTag)
    out.append(0)
    let start = out.count
    ProtobufWriter.bytes(1, key, to: &out)
    let value = ProtobufWriter.beginMessage(2, to: &out)
    ProtobufWriter.double(EncodedValue.Member.double, number, to: &out)
    ProtobufWriter.endMessage(value, in: &out)
    ProtobufWriter.endMessage(start, in: &out)
    out.append(raw: UnsafeRawBufferPointer(rebasing: bytes[tail...]))
  }
}
