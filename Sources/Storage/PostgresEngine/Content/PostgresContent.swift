import Basics
package import ContentSharing
import Synchronization

/// Shared content in PostgreSQL, in parts of 1 MiB.
///
///     hearth_blob(digest, copy, part, added, body)     the parts, and the time in seconds at which each was added
///     hearth_blob_whole(digest, copy, parts, bytes)    the copies that are whole
///     hearth_blob_place(id, identity)                  one row
///
/// The row of `hearth_blob_whole` comes last, on the condition that PostgreSQL has all parts. So neither a killed
/// publication nor a failover of PostgreSQL leaves a copy that looks whole. Each statement is a transaction of its own, and
/// the commit of the last one makes all of them durable, also on a synchronous standby.
///
/// Memory: some three parts for each call, and there are at most ``connectionsMax`` calls at once; others wait.
package final class PostgresContent: SharedContent {
  /// The size of a part, in bytes.
  static let partBytes = 1 << 20
  /// The most connections to PostgreSQL.
  package static let connectionsMax = 4
  /// The default of ``bytesMax``: 256 MiB. A table of large files is slow to back up and to restore.
  package static let standardBytesMax = 256 << 20
  /// The longest wait for the answer to a statement, in milliseconds.
  private static let milliseconds = 30_000
  private static let pageRows = 1000

  package let bytesMax: Int
  private let connections: ContentConnections
  private let hasTables = Mutex(false)

  /// Creates the place without a connection. The first call makes the tables if they do not exist.
  /// - Throws: ``PostgresFailure/notAURL``.
  package init(_ url: String, bytesMax: Int = standardBytesMax) throws(PostgresFailure) {
    self.bytesMax = bytesMax
    connections = try ContentConnections(url, count: Self.connectionsMax)
  }

  /// The text that names the place, as ``SharedContent/place``.
  package var place: String { "PostgreSQL" }

  /// As ``SharedContent/identity(claiming:)``.
  /// - Throws: ``SharedContentError``.
  package func identity(claiming new: UInt64?) throws(SharedContentError) -> UInt64? {
    try call { (connection) throws(PostgresFailure) in
      if let new { _ = try perform(Self.addIdentity, [.bits(new)], connection) }
      return try perform(Self.identity, [], connection).bits(0, 0)
    }
  }

  // MARK: Copies

  /// As ``SharedContent/publish(_:fromFile:size:)``.
  /// - Throws: ``SharedContentError``.
  package func publish(_ copy: SharedCopy, fromFile path: String, size: Int) throws(SharedContentError) {
    guard size <= bytesMax else { throw .tooLarge(bytesMax: bytesMax) }
    let deadline = PublicationDeadline()
    var file = try PublishedFile(path, size: size, pieceBytes: Self.partBytes)
    var parts: Int64 = 0
    while let piece = try file.next() {
      try deadline.check(place)
      let part = parts
      try call { (connection) throws(PostgresFailure) in
        _ = try perform(Self.addPart, name(of: copy) + [.integer(part), .bytes(piece)], connection)
      }
      parts += 1
    }
    try deadline.check(place)
    let isWhole = try call { (connection) throws(PostgresFailure) in
      try perform(
        Self.finish, name(of: copy) + [.integer(parts), .integer(Int64(size))], connection
      ).changedRows == 1
    }
    guard isWhole else { throw .unavailable("PostgreSQL lost parts of a file while it was stored") }
  }

  /// As ``SharedContent/copies(of:)``.
  /// - Throws: ``SharedContentError``.
  package func copies(of digest: ContentDigest) throws(SharedContentError) -> [SharedCopy] {
    try call { (connection) throws(PostgresFailure) in
      let result = try perform(Self.copies, [.bytes(digest.bytes)], connection)
      return (0..<result.rows).compactMap { row in result.bits(row, 0).map { SharedCopy(of: digest, number: $0) } }
    }
  }

  /// As ``SharedContent/fetch(_:_:)``.
  /// - Throws: ``SharedContentError``.
  package func fetch(
    _ copy: SharedCopy, _ take: (UnsafeRawBufferPointer) throws(SharedContentError) -> Void
  ) throws(SharedContentError) -> Bool {
    let parts = try call { (connection) throws(PostgresFailure) in
      try perform(Self.parts, name(of: copy), connection).integer(0, 0)
    }
    guard let parts else { return false }
    for part in 0..<max(0, parts) {
      let piece = try call { (connection) throws(PostgresFailure) in
        try perform(Self.part, name(of: copy) + [.integer(part)], connection).bytes(0, 0)
      }
      // The copy is being removed.
      guard let piece else { return false }
      var failure: SharedContentError?
      piece.withUnsafeBytes { bytes in
        do throws(SharedContentError) { try take(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
    }
    return true
  }

  /// As ``SharedContent/remove(_:)``.
  /// - Throws: ``SharedContentError``.
  package func remove(_ copy: SharedCopy) throws(SharedContentError) {
    // Without this row, no reader takes the copy for whole.
    try call { (connection) throws(PostgresFailure) in
      _ = try perform(Self.removeWhole, name(of: copy), connection)
      _ = try perform(Self.removeParts, name(of: copy), connection)
    }
  }

  /// As ``SharedContent/forEachCopy(_:)``.
  /// - Throws: ``SharedContentError``.
  package func forEachCopy(_ take: ([SharedCopy]) throws(SharedContentError) -> Void) throws(SharedContentError) {
    var last = SharedCopy(of: ContentDigest(bytes: []), number: 1 << 63)
    while true {
      let page = try page(Self.page, after: last)
      try take(page)
      guard page.count == Self.pageRows, let end = page.last else { return }
      last = end
    }
  }

  /// As ``SharedContent/removeLeftovers()``.
  /// - Throws: ``SharedContentError``.
  package func removeLeftovers() throws(SharedContentError) {
    while true {
      let found = try call { (connection) throws(PostgresFailure) in
        try copies(in: try perform(Self.leftovers, [.integer(Int64(SharedContentLimits.leftoverSeconds))], connection))
      }
      for copy in found { try remove(copy) }
      if found.count < Self.pageRows { return }
    }
  }

  private func page(
    _ statement: PostgresStatement, after last: SharedCopy
  ) throws(SharedContentError) -> [SharedCopy] {
    try call { (connection) throws(PostgresFailure) in
      try copies(in: try perform(statement, name(of: last), connection))
    }
  }

  private func copies(in result: PostgresResult) throws(PostgresFailure) -> [SharedCopy] {
    var copies: [SharedCopy] = []
    for row in 0..<result.rows {
      guard let digest = result.bytes(row, 0), let number = result.bits(row, 1) else { throw .unexpectedAnswer }
      copies.append(SharedCopy(of: ContentDigest(bytes: digest), number: number))
    }
    return copies
  }

  private func name(of copy: SharedCopy) -> [PostgresValue] { [.bytes(copy.digest.bytes), .bits(copy.number)] }

  // MARK: Calls

  /// Runs statements on a connection of its own, and makes the tables before if necessary.
  private func call<R: Sendable>(
    _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(SharedContentError) -> R {
    do throws(PostgresFailure) {
      return try connections.use { (connection) throws(PostgresFailure) in
        try requireTables(connection)
        return try body(connection)
      }
    } catch { throw Self.error(error) }
  }

  /// Two nodes may make the tables at the same time. One of them fails then, and finds them at its next attempt.
  private func requireTables(_ connection: PostgresConnection) throws(PostgresFailure) {
    if hasTables.withLock({ $0 }) { return }
    for attempt in 0..<Self.attemptsMax {
      do throws(PostgresFailure) {
        // This table is made last.
        _ = try perform(Self.identity, [], connection)
        break
      } catch { guard error.isMissingTable else { throw error } }
      do throws(PostgresFailure) {
        for statement in Self.tables { try connection.perform(statement, milliseconds: Self.milliseconds) }
      } catch {
        guard case .refused(let state, _) = error, Self.racing.contains(state), attempt + 1 < Self.attemptsMax else {
          throw error
        }
      }
    }
    hasTables.withLock { $0 = true }
  }

  private static let attemptsMax = 5
  /// The states of a table that another connection made meanwhile.
  private static let racing: Set<String> = ["23505", "42P07", "42710", "XX000", "40001", "40P01"]

  private func perform(
    _ statement: PostgresStatement, _ values: [PostgresValue], _ connection: PostgresConnection
  ) throws(PostgresFailure) -> PostgresResult {
    try connection.repeating { (connection) throws(PostgresFailure) in
      try connection.perform(statement, values, milliseconds: Self.milliseconds)
    }
  }

  private static func error(_ failure: PostgresFailure) -> SharedContentError {
    switch failure {
    case .refused(let state, _) where state.hasPrefix("53"): .full("\(failure)")
    case _ where failure.isConflict: .unavailable("\(failure)")
    case .refused, .notAURL: .refused("\(failure)")
    default: .unavailable("\(failure)")
    }
  }
}
