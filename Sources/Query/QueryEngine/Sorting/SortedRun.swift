package import Basics

/// Writes entries that are already in order to the temporary file, as one batch for ``SortedEntries``.
///
/// An entry has the form of ``SortBatch``. Memory: one buffer of 64 KiB, and one entry.
package struct SortedRun {
  private static let writtenBytes = 64 << 10

  private let scratch: Scratch
  private let start: Int
  private var buffer: [UInt8] = []

  /// Begins a batch at the end of the file. Nothing else may be appended to the file before ``finish()``.
  package init(_ scratch: Scratch) {
    self.scratch = scratch
    start = scratch.fileEnd
    buffer.reserveCapacity(Self.writtenBytes)
  }

  /// Adds an entry, whose key must not precede that of the entry before. `record` writes the rest of the entry.
  /// - Throws: ``ScratchError`` if the file would be too long, or cannot be written.
  package mutating func add(_ key: [UInt8], _ record: (inout [UInt8]) -> Void) throws(ScratchError) {
    let head = buffer.count
    withUnsafeBytes(of: (UInt32(key.count), UInt32(0))) { buffer.append(contentsOf: $0) }
    buffer.append(contentsOf: key)
    let content = buffer.count
    record(&buffer)
    let count = UInt32(buffer.count - content)
    buffer.withUnsafeMutableBytes { $0.storeBytes(of: count, toByteOffset: head + 4, as: UInt32.self) }
    if buffer.count >= Self.writtenBytes { try write() }
  }

  /// Writes the rest, and returns the range of the batch in the file.
  /// - Throws: ``ScratchError`` if the file would be too long, or cannot be written.
  package consuming func finish() throws(ScratchError) -> Range<Int> {
    try write()
    return start..<scratch.fileEnd
  }

  private mutating func write() throws(ScratchError) {
    guard !buffer.isEmpty else { return }
    let result = buffer.withUnsafeBytes { bytes in
      Result { () throws(ScratchError) in try scratch.append(bytes) }
    }
    _ = try result.get()
    buffer.removeAll(keepingCapacity: true)
  }
}
