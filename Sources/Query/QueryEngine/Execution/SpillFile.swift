import Glibc
import KeyValue

/// An unlinked temporary file to which sorted batches are appended.
final class SpillFile {
  private let file: UnsafeMutablePointer<FILE>
  private var count = 0

  init() throws(StorageError) {
    guard let file = tmpfile() else { throw .system(operation: "tmpfile", path: Self.path, code: errno) }
    self.file = file
  }

  deinit { fclose(file) }

  static let path = "temporary directory"

  /// Appends a batch to the file.
  func append(_ batch: SortBatch) throws(StorageError) -> SpilledBatch {
    var bytes: [UInt8] = []
    for index in 0..<batch.count {
      let (key, path) = (batch.key(index), batch.path(index))
      for size in [key.count, path.count] {
        withUnsafeBytes(of: UInt32(size).littleEndian) { bytes.append(contentsOf: $0) }
      }
      bytes.append(contentsOf: key)
      bytes.append(contentsOf: path)
    }
    var written = 0
    while written < bytes.count {
      let step = bytes.withUnsafeBytes {
        pwrite(fileno(file), $0.baseAddress.map { $0 + written }, bytes.count - written, off_t(count + written))
      }
      guard step > 0 else { throw .diskFull(path: Self.path) }
      written += step
    }
    defer { count += bytes.count }
    return SpilledBatch(self, count..<count + bytes.count)
  }

  /// Reads a range of the file and appends it to `bytes`.
  fileprivate func read(_ range: Range<Int>, into bytes: inout [UInt8]) throws(StorageError) {
    let start = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: range.count))
    var done = 0
    while done < range.count {
      let step = bytes.withUnsafeMutableBytes {
        pread(
          fileno(file), $0.baseAddress.map { $0 + start + done }, range.count - done, off_t(range.lowerBound + done))
      }
      guard step > 0 else { throw .corruption(path: "temporary file", detail: "a sorted batch ends early") }
      done += step
    }
  }
}

/// A sorted batch in a spill file, read in order through a small buffer.
struct SpilledBatch {
  private static let windowBytes = 8 << 10

  private let file: SpillFile
  private var rest: Range<Int>
  private var window: [UInt8] = []
  private var taken = 0

  fileprivate init(_ file: SpillFile, _ range: Range<Int>) {
    self.file = file
    rest = range
  }

  mutating func next() throws(StorageError) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
    if taken == window.count, rest.isEmpty { return nil }
    try fill(8)
    let (key, path) = (size(at: taken), size(at: taken + 4))
    try fill(8 + key + path)
    let start = taken + 8
    taken = start + key + path
    return (window[start..<start + key], window[start + key..<taken])
  }

  /// Reads from the file until the window holds `count` unread bytes.
  private mutating func fill(_ count: Int) throws(StorageError) {
    guard window.count - taken < count else { return }
    window.removeFirst(taken)
    taken = 0
    let wanted = max(count - window.count, Self.windowBytes)
    let piece = rest.lowerBound..<min(rest.upperBound, rest.lowerBound + wanted)
    try file.read(piece, into: &window)
    rest = piece.upperBound..<rest.upperBound
    guard window.count >= count else {
      throw .corruption(path: "temporary file", detail: "a sorted batch ends early")
    }
  }

  private func size(at index: Int) -> Int {
    window.withUnsafeBytes { Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: index, as: UInt32.self))) }
  }
}
