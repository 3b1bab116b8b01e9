import Basics
import ContentSharing
import Dispatch
import DocumentModel
import Synchronization

/// Shared content in a bucket:
///
///     hearth-files-id                                the identity, see `SharedContent.identity(claiming:)`
///     content/{sha256}/{16 digits}                   a copy of at most ``pieceBytes``
///     content/{sha256}/{16 digits}+{count}           an empty object that says that a copy has so many pieces
///     pieces/{sha256}/{16 digits}/{number}           a piece
///
/// The pieces come first, so a copy in `content` is whole.
///
/// Memory: a piece for each client, and there are at most ``clientsMax``; other calls wait. Each request is repeated a few
/// times, and fails after a minute without a byte.
final class BucketContent: SharedContent {
  /// The most clients, each with a connection of its own.
  static let clientsMax = 4
  /// The longest wait for a free client, in seconds.
  private static let waitSeconds = 60
  private static let identityName = "hearth-files-id"

  let place: String
  let bytesMax = Int.max
  private let pieceBytes: Int
  private let clients: BucketClients
  private let now: @Sendable () -> Timestamp

  /// Names a bucket. `makeClient` is called for each client, when it is first used.
  init(
    _ place: String, pieceBytes: Int = SharedContentLimits.pieceBytesMax,
    now: @escaping @Sendable () -> Timestamp = { BackupChoice.now() },
    makeClient: @escaping @Sendable () throws -> any BucketStore
  ) {
    (self.place, self.pieceBytes, self.now) = (place, pieceBytes, now)
    clients = BucketClients(countMax: Self.clientsMax, waitSeconds: Self.waitSeconds, makeClient)
  }

  func identity(claiming new: UInt64?) throws(SharedContentError) -> UInt64? {
    try call { bucket in
      if let found = try bucket.get(Self.identityName) { return try Self.identity(found, place) }
      guard let new else { return nil }
      let text = SharedCopy(of: ContentDigest(bytes: []), number: new).numberText
      _ = try bucket.putNew(Self.identityName, Array(text.utf8))
      return try bucket.get(Self.identityName).map { try Self.identity($0, place) }
    }
  }

  private static func identity(_ bytes: [UInt8], _ place: String) throws -> UInt64 {
    guard let number = SharedCopy.number(String(decoding: bytes, as: UTF8.self)) else {
      throw SharedContentError.damaged("\(place)\(identityName) has no identity")
    }
    return number
  }

  // MARK: Copies

  func publish(_ copy: SharedCopy, fromFile path: String, size: Int) throws(SharedContentError) {
    let deadline = PublicationDeadline()
    var file = try PublishedFile(path, size: size, pieceBytes: pieceBytes)
    if size <= pieceBytes {
      let content = try file.next() ?? []
      return try call { try $0.put(Self.name(of: copy), content) }
    }
    var count = 0
    while let piece = try file.next() {
      try deadline.check(place)
      let name = Self.piece(count, of: copy)
      try call { try $0.put(name, piece) }
      count += 1
    }
    try deadline.check(place)
    let name = "\(Self.name(of: copy))+\(count)"
    try call { try $0.put(name, []) }
  }

  func copies(of digest: ContentDigest) throws(SharedContentError) -> [SharedCopy] {
    try listed("content/\(digest.text)/").map(\.copy)
  }

  func fetch(
    _ copy: SharedCopy, _ take: (UnsafeRawBufferPointer) throws(SharedContentError) -> Void
  ) throws(SharedContentError) -> Bool {
    guard let found = try listed(Self.name(of: copy)).first(where: { $0.copy == copy }) else { return false }
    let names = found.pieces.map { count in (0..<count).map { Self.piece($0, of: copy) } } ?? [Self.name(of: copy)]
    for name in names {
      // The copy may be being removed.
      guard let piece = try call({ try $0.get(name) }) else { return false }
      var failure: SharedContentError?
      piece.withUnsafeBytes { bytes in
        do throws(SharedContentError) { try take(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
    }
    return true
  }

  func remove(_ copy: SharedCopy) throws(SharedContentError) {
    // Without this object, no reader takes the copy for whole.
    for found in try listed(Self.name(of: copy)) where found.copy == copy {
      try call { try $0.remove(found.name) }
    }
    try removePieces(of: copy)
  }

  private func removePieces(of copy: SharedCopy) throws(SharedContentError) {
    try call { bucket in
      var names: [String] = []
      try bucket.list("pieces/\(copy.digest.text)/\(copy.numberText)/") { names += $0.map(\.name) }
      for name in names { try bucket.remove(name) }
    }
  }

  func forEachCopy(_ take: ([SharedCopy]) throws(SharedContentError) -> Void) throws(SharedContentError) {
    try withoutActuallyEscaping(take) { (take) throws(SharedContentError) in
      try call { bucket in
        try bucket.list("content/") { page in try take(page.compactMap { Listed($0.name)?.copy }) }
      }
    }
  }

  func removeLeftovers() throws(SharedContentError) {
    let limit = now().microseconds - Int64(SharedContentLimits.leftoverSeconds) * 1_000_000
    let old = try call { bucket in
      var copies: Set<SharedCopy> = []
      try bucket.list("pieces/") { page in
        for object in page where object.stored.map({ $0.microseconds < limit }) ?? false {
          let parts = object.name.split(separator: "/")
          if parts.count == 4, copies.count < 10_000,
            let copy = SharedCopy(digestText: parts[1], numberText: parts[2])
          {
            copies.insert(copy)
          }
        }
      }
      return copies
    }
    for copy in old where try listed(Self.name(of: copy)).isEmpty { try removePieces(of: copy) }
  }

  // MARK: Names

  /// A copy in a listing.
  private struct Listed {
    let name: String
    let copy: SharedCopy
    /// The number of its pieces, or `nil` if the object is the copy.
    let pieces: Int?

    /// Reads the name of an object. Returns `nil` for a foreign one.
    init?(_ name: String) {
      let parts = name.split(separator: "/")
      guard parts.count == 3, parts[0] == "content" else { return nil }
      let ends = parts[2].split(separator: "+", maxSplits: 1)
      guard let copy = SharedCopy(digestText: parts[1], numberText: ends[0]) else { return nil }
      (self.name, self.copy) = (name, copy)
      if ends.count == 2 {
        guard let count = Int(ends[1]), (1...1_000_000).contains(count) else { return nil }
        pieces = count
      } else {
        pieces = nil
      }
    }
  }

  private func listed(_ prefix: String) throws(SharedContentError) -> [Listed] {
    try call { bucket in
      var found: [Listed] = []
      try bucket.list(prefix) { page in found += page.compactMap { Listed($0.name) } }
      return found
    }
  }

  private static func name(of copy: SharedCopy) -> String { "content/\(copy.digest.text)/\(copy.numberText)" }

  private static func piece(_ number: Int, of copy: SharedCopy) -> String {
    "pieces/\(copy.digest.text)/\(copy.numberText)/\(number)"
  }

  // MARK: Calls

  private func call<R: Sendable>(_ body: (any BucketStore) throws -> R) throws(SharedContentError) -> R {
    do { return try clients.use(body) } catch let error as SharedContentError { throw error } catch {
      let failure = CommandFailure(error)
      if failure.httpStatus == 507 { throw .full(failure.message) }
      // Without a status, there was no response.
      if failure.httpStatus == nil || failure.isTemporary { throw .unavailable(failure.message) }
      throw .refused(failure.message)
    }
  }
}

/// A limited number of clients of a bucket.
private final class BucketClients: Sendable {
  /// A client that one thread at a time uses, made with its first use.
  private final class Slot: Sendable {
    let client = Mutex<(any BucketStore)?>(nil)
  }

  private let free: DispatchSemaphore
  private let waitSeconds: Int
  private let makeClient: @Sendable () throws -> any BucketStore
  private let idle: Mutex<[Slot]>

  init(countMax: Int, waitSeconds: Int, _ makeClient: @escaping @Sendable () throws -> any BucketStore) {
    free = DispatchSemaphore(value: countMax)
    idle = Mutex((0..<countMax).map { _ in Slot() })
    (self.waitSeconds, self.makeClient) = (waitSeconds, makeClient)
  }

  /// Runs `body` with a client that no other thread uses meanwhile.
  func use<R: Sendable>(_ body: (any BucketStore) throws -> R) throws -> R {
    guard free.wait(timeout: .now() + .seconds(waitSeconds)) == .success,
      let slot = idle.withLock({ $0.popLast() })
    else { throw SharedContentError.unavailable("all connections to the shared files are busy") }
    defer {
      idle.withLock { $0.append(slot) }
      free.signal()
    }
    return try slot.client.withLock { client throws in
      let used = try client ?? makeClient()
      client = used
      return try body(used)
    }
  }
}
