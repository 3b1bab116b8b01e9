import Digests
import DocumentModel
import Glibc

/// A file with the documents of one part of an export, in name order. A part survives an interruption at any byte: its
/// documents are in blocks with a checksum, and the last block, which is empty, marks a complete part.
///
/// Form: a head of 8 bytes, then blocks of a length and a CRC-32C (four bytes each, the lowest first) and that many
/// bytes. A block contains documents: the length of the path, the path, the length of the fields, the fields in
/// canonical form.
enum DocumentPart {
  fileprivate static let head = Array("hearthp1".utf8)
  /// The largest block, in bytes. A larger length is damage.
  fileprivate static let blockBytesMax = 64 << 20

  fileprivate static func failure(_ path: String, _ what: String) -> CommandFailure {
    .failed("\(path) \(what): \(String(cString: strerror(errno)))")
  }

  fileprivate static func append(_ number: Int, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(number).littleEndian) { bytes += $0 }
  }

  fileprivate static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// The documents that a file contains so far.
  struct Contents {
    var documents = 0
    var last: DocumentKey?
    /// Whether the part is complete.
    var isComplete = false
    /// The length of the valid blocks.
    fileprivate var bytes = 0
  }

  /// Reads a part and passes its documents to `body`, up to the first damaged or missing block. A missing file is an
  /// empty part. Memory: one block.
  /// - Throws: ``CommandFailure`` if the file cannot be read, or the error of `body`.
  static func read(_ path: String, _ body: (DocumentKey, EncodedFields) throws -> Void) throws -> Contents {
    var contents = Contents()
    guard let file = fopen(path, "re") else {
      if errno == ENOENT { return contents }
      throw failure(path, "cannot be read")
    }
    defer { fclose(file) }
    func take(_ count: Int) -> [UInt8]? {
      var bytes = [UInt8](repeating: 0, count: count)
      return fread(&bytes, 1, count, file) == count ? bytes : nil
    }
    guard take(head.count) == head else { return contents }
    contents.bytes = head.count
    while let frame = take(8) {
      let count = number(frame[...])
      if count == 0 {
        contents.isComplete = true
        return contents
      }
      guard count <= blockBytesMax, let block = take(count),
        block.withUnsafeBytes({ Crc32c.extend(0, $0) }) == UInt32(number(frame[4...]))
      else { return contents }
      var rest = block[...]
      func field() throws -> ArraySlice<UInt8> {
        let count = rest.count >= 4 ? number(rest) : Int.max
        guard count <= rest.count - 4 else { throw CommandFailure.data("\(path) is damaged; remove it") }
        defer { rest = rest.dropFirst(4 + count) }
        return rest.dropFirst(4).prefix(count)
      }
      while !rest.isEmpty {
        let key = DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: Array(try field())))
        let fields = EncodedFields(canonical: Array(try field()))
        try body(key, fields)
        contents.documents += 1
        contents.last = key
      }
      contents.bytes += 8 + count
    }
    return contents
  }

  /// Adds documents to a part.
  final class Writer {
    private let path: String
    private let descriptor: Int32
    private var block: [UInt8] = []
    /// The last document, also if it is not in the file yet.
    private(set) var last: DocumentKey?

    /// The size at which a block is written, in bytes.
    private static let blockBytes = 1 << 20

    /// Opens the file after its valid blocks, and removes the rest.
    /// - Throws: ``CommandFailure`` if the file cannot be written.
    init(_ path: String, after contents: Contents) throws {
      self.path = path
      last = contents.last
      descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard descriptor >= 0, ftruncate(descriptor, contents.bytes) == 0, lseek(descriptor, 0, SEEK_END) >= 0 else {
        throw failure(path, "cannot be written")
      }
      if contents.bytes == 0 { try write(head) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Adds a document, whose name must follow that of the last one.
    /// - Throws: ``CommandFailure`` if the file cannot be written.
    func append(_ key: DocumentKey, _ fields: EncodedFields) throws {
      DocumentPart.append(key.path.text.utf8.count, to: &block)
      block += key.path.text.utf8
      DocumentPart.append(fields.bytes.count, to: &block)
      block += fields.bytes
      last = key
      if block.count >= Self.blockBytes { try flush() }
    }

    /// Writes the documents that are not in the file yet.
    /// - Throws: ``CommandFailure`` if the file cannot be written.
    func flush() throws {
      guard !block.isEmpty else { return }
      var frame: [UInt8] = []
      DocumentPart.append(block.count, to: &frame)
      DocumentPart.append(Int(block.withUnsafeBytes { Crc32c.extend(0, $0) }), to: &frame)
      try write(frame + block)
      block.removeAll(keepingCapacity: true)
    }

    /// Marks the part as complete, after all documents are on the disk.
    /// - Throws: ``CommandFailure`` if the file cannot be written.
    func finish() throws {
      try flush()
      guard fsync(descriptor) == 0 else { throw failure(path, "cannot be synced") }
      try write([UInt8](repeating: 0, count: 8))
    }

    private func write(_ bytes: [UInt8]) throws {
      do throws(Terminal.WriteFailure) { try Terminal(descriptor: descriptor).writeAll(bytes) } catch {
        errno = error.code
        throw failure(path, "cannot be written")
      }
    }
  }
}
