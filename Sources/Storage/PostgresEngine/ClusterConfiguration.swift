import Digests

/// The configuration that was deployed to a cluster: security rules, index files and storage rules, as texts.
///
/// Its stored form, with numbers in big-endian order:
///
///     the line `hearth configuration 1`, ended by a line feed
///     for each part, sorted by kind and database:
///       kind            1 byte: 1 rules, 2 indexes, 3 storage rules
///       database        2 bytes of length, then the name in UTF-8; empty if the part belongs to no database
///       text            4 bytes of length, then the text in UTF-8
///     SHA-256 of all bytes before   32 bytes
package struct ClusterConfiguration: Equatable, Sendable {
  /// The kinds of texts.
  package enum Kind: UInt8, CaseIterable, Comparable, Sendable {
    /// Security rules of a database, or of all databases that have none of their own.
    case rules = 1
    /// The index file of a database.
    case indexes = 2
    /// The rules for files.
    case storageRules = 3

    package static func < (a: Kind, b: Kind) -> Bool { a.rawValue < b.rawValue }
  }

  /// A text, its kind, and its database.
  package struct Part: Equatable, Sendable {
    package let kind: Kind
    /// The database that the text is for, or an empty text.
    package let database: String
    package let text: [UInt8]

    package init(_ kind: Kind, database: String = "", text: [UInt8]) {
      self.kind = kind
      self.database = database
      self.text = text
    }
  }

  /// The greatest size of the stored form, 8 MiB.
  package static let bytesMax = 8 << 20
  private static let header = Array("hearth configuration 1\n".utf8)
  private static let digestBytes = 32

  /// The parts, sorted, at most one for each kind and database.
  package private(set) var parts: [Part] = []

  package init() {}

  /// Returns the text of a part, or `nil` if the configuration has no such part.
  package func text(_ kind: Kind, database: String = "") -> [UInt8]? {
    parts.first { $0.kind == kind && $0.database.utf8.elementsEqual(database.utf8) }?.text
  }

  /// Adds a part, in place of the one for the same kind and database.
  package mutating func set(_ part: Part) {
    parts.removeAll { $0.kind == part.kind && $0.database.utf8.elementsEqual(part.database.utf8) }
    let place = parts.firstIndex { Self.precedes(part, $0) } ?? parts.endIndex
    parts.insert(part, at: place)
  }

  private static func precedes(_ a: Part, _ b: Part) -> Bool {
    a.kind == b.kind ? a.database.utf8.lexicographicallyPrecedes(b.database.utf8) : a.kind < b.kind
  }

  // MARK: The stored form

  /// Returns the stored form, or `nil` if it would be longer than ``bytesMax``, or libcrypto failed.
  package func encoded() -> [UInt8]? {
    let size = parts.reduce(Self.header.count + Self.digestBytes) { $0 + 7 + $1.database.utf8.count + $1.text.count }
    guard size <= Self.bytesMax, parts.allSatisfy({ $0.database.utf8.count <= 0xFFFF }) else { return nil }
    var bytes = Self.header
    bytes.reserveCapacity(size)
    for part in parts {
      bytes.append(part.kind.rawValue)
      Self.append(part.database.utf8.count, size: 2, to: &bytes)
      bytes += part.database.utf8
      Self.append(part.text.count, size: 4, to: &bytes)
      bytes += part.text
    }
    guard let digest = bytes.withUnsafeBytes({ MessageDigest.compute(.sha256, $0) }) else { return nil }
    return bytes + digest
  }

  /// Decodes the stored form. Returns `nil` if the bytes are damaged, or another version wrote them.
  package init?(encoded bytes: [UInt8]) {
    guard bytes.count <= Self.bytesMax, bytes.count >= Self.header.count + Self.digestBytes,
      bytes.starts(with: Self.header)
    else { return nil }
    let end = bytes.count - Self.digestBytes
    let digest = bytes[..<end].withUnsafeBytes { MessageDigest.compute(.sha256, $0) }
    guard digest == Array(bytes[end...]) else { return nil }
    var rest = bytes[Self.header.count..<end]
    while !rest.isEmpty {
      guard let kind = Kind(rawValue: rest.removeFirst()), let name = Self.take(&rest, size: 2),
        let text = Self.take(&rest, size: 4), let database = String(validating: name, as: UTF8.self)
      else { return nil }
      let part = Part(kind, database: database, text: Array(text))
      if let last = parts.last, !Self.precedes(last, part) { return nil }
      parts.append(part)
    }
  }

  private static func append(_ number: Int, size: Int, to bytes: inout [UInt8]) {
    for place in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * place))) }
  }

  /// Removes a length of `size` bytes and as many bytes as it says, and returns these.
  private static func take(_ rest: inout ArraySlice<UInt8>, size: Int) -> ArraySlice<UInt8>? {
    guard rest.count >= size else { return nil }
    let length = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
    rest.removeFirst(size)
    guard rest.count >= length else { return nil }
    defer { rest.removeFirst(length) }
    return rest.prefix(length)
  }
}
