/// The row with the version of the last commit, for code that reads the effect of a transaction as bytes.
package enum LastVersionRow {
  /// Its key.
  package static let key: [UInt8] = {
    var key = StorageKey()
    key.begin(.lastVersion)
    return key.bytes
  }()

  /// Returns the version in a value of the row, which is the time of the commit in microseconds since 1970, or `nil` if
  /// the value has another form.
  package static func version(_ value: UnsafeRawBufferPointer) -> Int64? {
    guard value.count == 8 else { return nil }
    return Int64(littleEndian: value.loadUnaligned(as: Int64.self))
  }
}
