import DocumentModel
import Glibc

/// The changes that a restore makes, in a temporary file without a name.
///
/// The file keeps the content of the past, so that a restore can end even if that past leaves the history meanwhile.
final class RestorePlan {
  /// A change, and the state that the document had when it was planned.
  struct Change {
    var change: ServerClient.Change
    var condition: ServerClient.Condition
    /// The size of the content, in bytes.
    var bytes: Int
  }

  /// The numbers of documents, for the question and the summary.
  struct Counts: Equatable {
    var created = 0
    var changed = 0
    var deleted = 0
    var unchanged = 0
    /// Documents that did not exist at the moment, and stay.
    var kept = 0

    /// The number of changes.
    var changes: Int { created + changed + deleted }
  }

  private(set) var counts = Counts()
  private let file: UnsafeMutablePointer<FILE>

  /// Creates an empty plan in `TMPDIR` or `/tmp`.
  /// - Throws: ``CommandFailure`` if the file cannot be created.
  init() throws {
    var template = Array("\(DatabaseChoice.environment("TMPDIR") ?? "/tmp")/hearth-restore-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw Self.failure("cannot be created") }
    unlink(template)
    guard let file = fdopen(descriptor, "w+") else {
      close(descriptor)
      throw Self.failure("cannot be created")
    }
    self.file = file
  }

  deinit { fclose(file) }

  /// Compares the past of a subtree with the present, and plans the changes that make them equal. `place` returns the
  /// name of a document of the past in the present. `show` receives the number of compared documents.
  /// - Throws: the errors of the subtrees; ``CommandFailure`` if the file cannot be written.
  func compare(
    _ past: inout some Subtree, with present: inout some Subtree, deletesNewer: Bool,
    place: (DocumentKey) -> DocumentKey, _ show: (Int) -> Void
  ) throws {
    var (old, new) = (try past.next(), try present.next())
    var compared = 0
    while old != nil || new != nil {
      compared += 1
      show(compared)
      let key = old.map { place($0.key) }
      if let document = old, let key, new.map({ key < $0.key }) ?? true {
        counts.created += 1
        try append(key, document.fields, .missing)
        old = try past.next()
      } else if let document = old, let key, let current = new, key == current.key {
        if document.fields.bytes == current.fields.bytes {
          counts.unchanged += 1
        } else {
          counts.changed += 1
          try append(key, document.fields, Self.condition(current))
        }
        (old, new) = (try past.next(), try present.next())
      } else if let current = new {
        if deletesNewer {
          counts.deleted += 1
          try append(current.key, nil, Self.condition(current))
        } else {
          counts.kept += 1
        }
        new = try present.next()
      }
    }
    guard fflush(file) == 0 else { throw Self.failure("cannot be written") }
  }

  private static func condition(_ document: ServerClient.Found) -> ServerClient.Condition {
    document.updateTime.map { .updated($0) } ?? .missing
  }

  // MARK: The file

  private func append(_ key: DocumentKey, _ fields: EncodedFields?, _ condition: ServerClient.Condition) throws {
    var time = Int64.min
    if case .updated(let timestamp) = condition { time = timestamp.microseconds }
    try write(number: Int64(key.path.bytes.count))
    try write(number: fields.map { Int64($0.bytes.count) } ?? -1)
    try write(number: time)
    try write(key.path.bytes)
    if let fields { try write(fields.bytes) }
  }

  private func write(number: Int64) throws { try write(withUnsafeBytes(of: number.littleEndian) { Array($0) }) }

  private func write(_ bytes: [UInt8]) throws {
    guard fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw Self.failure("cannot be written") }
  }

  /// Passes the changes to `body` in batches of at most 500 documents and about 2 MiB.
  /// - Throws: ``CommandFailure`` if the file cannot be read, or the error of `body`.
  func forEachBatch(_ body: ([Change]) throws -> Void) throws {
    rewind(file)
    var batch: [Change] = []
    var bytes = 0
    for _ in 0..<counts.changes {
      let change = try read()
      if !batch.isEmpty, batch.count == ServerImport.documentsMax || bytes + change.bytes > ServerImport.bytesMax {
        try body(batch)
        batch.removeAll(keepingCapacity: true)
        bytes = 0
      }
      batch.append(change)
      bytes += change.bytes
    }
    if !batch.isEmpty { try body(batch) }
  }

  private func read() throws -> Change {
    let (pathBytes, fieldsBytes, time) = (Int(try number()), Int(try number()), try number())
    let key = DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: try bytes(pathBytes)))
    let condition: ServerClient.Condition =
      time == Int64.min ? .missing : .updated(Timestamp(uncheckedMicroseconds: time))
    let change: ServerClient.Change =
      fieldsBytes < 0 ? .delete(key) : .set(key, EncodedFields(canonical: try bytes(fieldsBytes)))
    return Change(change: change, condition: condition, bytes: pathBytes + max(0, fieldsBytes))
  }

  private func number() throws -> Int64 {
    try bytes(8).withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(as: Int64.self)) }
  }

  private func bytes(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard fread(&bytes, 1, count, file) == count else { throw Self.failure("cannot be read") }
    return bytes
  }

  private static func failure(_ what: String) -> CommandFailure {
    .failed("a temporary file in TMPDIR or /tmp \(what): \(String(cString: strerror(errno)))")
  }
}
