import ContentSharing
import WireFormat

/// The preconditions of a request: generations and entity tags.
package struct ObjectConditions: Equatable, Sendable {
  /// The generation that the content must have; 0 means that the object must not exist.
  package var generationMatch: Int64?
  /// The generation that the content must not have; 0 means that the object must exist.
  package var generationNotMatch: Int64?
  /// The generation that the metadata must have.
  package var metagenerationMatch: Int64?
  /// The generation that the metadata must not have.
  package var metagenerationNotMatch: Int64?
  /// The tags of which the object must have one; `*` matches any object.
  package var etagMatch: [String] = []
  /// The tags of which the object must have none; `*` matches any object.
  package var etagNotMatch: [String] = []

  /// Creates conditions that are always met.
  package init() {}

  /// Checks an object, or `nil` if it does not exist.
  /// - Throws: ``FilesError/conditionNotMet(_:)``; ``FilesError/notModified`` if a read excludes the current
  ///   object.
  package func check(_ object: StoredObject?, isRead: Bool = false) throws(FilesError) {
    let generation = object?.generation ?? 0
    if let wanted = generationMatch, wanted != generation { throw .conditionNotMet("ifGenerationMatch") }
    if let wanted = metagenerationMatch, wanted != object?.metageneration {
      throw .conditionNotMet("ifMetagenerationMatch")
    }
    if !etagMatch.isEmpty, !Self.names(etagMatch, object) { throw .conditionNotMet("If-Match") }
    if let unwanted = generationNotMatch, unwanted == generation {
      throw isRead && object != nil ? .notModified : .conditionNotMet("ifGenerationNotMatch")
    }
    if let unwanted = metagenerationNotMatch, unwanted == object?.metageneration {
      throw isRead ? .notModified : .conditionNotMet("ifMetagenerationNotMatch")
    }
    if !etagNotMatch.isEmpty, Self.names(etagNotMatch, object) {
      throw isRead ? .notModified : .conditionNotMet("If-None-Match")
    }
  }

  /// Checks the metadata conditions against a bucket.
  /// - Throws: ``FilesError/conditionNotMet(_:)``; ``FilesError/notModified`` if a read excludes the current
  ///   metadata.
  package func check(_ bucket: Bucket, isRead: Bool = false) throws(FilesError) {
    if let wanted = metagenerationMatch, wanted != bucket.metageneration {
      throw .conditionNotMet("ifMetagenerationMatch")
    }
    if let unwanted = metagenerationNotMatch, unwanted == bucket.metageneration {
      throw isRead ? .notModified : .conditionNotMet("ifMetagenerationNotMatch")
    }
  }

  private static func names(_ tags: [String], _ object: StoredObject?) -> Bool {
    guard let object else { return false }
    let etag = object.etag
    return tags.contains { $0 == "*" || $0 == etag }
  }
}

/// The checksums that a client declares for content.
package struct DeclaredChecksums: Equatable, Sendable {
  /// The CRC-32C, in base64.
  package var crc32c: String?
  /// The MD5, in base64.
  package var md5: String?

  /// The SHA-256, in base64.
  package var sha256: String?

  /// Creates an empty declaration.
  package init() {}

  /// Compares the declared checksums with the content.
  /// - Throws: ``FilesError/checksumMismatch(kind:declared:found:)`` if one differs.
  func check(_ content: ContentSummary) throws(FilesError) {
    try Self.compare("CRC32C", crc32c, Base64.encode(content.crc32cBytes))
    try Self.compare("MD5", md5, Base64.encode(content.md5))
    try Self.compare("SHA-256", sha256, Base64.encode(content.digest.bytes))
  }

  /// Returns the union of two declarations.
  /// - Throws: ``FilesError/checksumMismatch(kind:declared:found:)`` if they contradict each other.
  package func merged(with other: DeclaredChecksums) throws(FilesError) -> DeclaredChecksums {
    if let crc32c { try Self.compare("CRC32C", other.crc32c, crc32c) }
    if let md5 { try Self.compare("MD5", other.md5, md5) }
    if let sha256 { try Self.compare("SHA-256", other.sha256, sha256) }
    var sums = self
    sums.crc32c = crc32c ?? other.crc32c
    sums.md5 = md5 ?? other.md5
    sums.sha256 = sha256 ?? other.sha256
    return sums
  }

  private static func compare(_ kind: String, _ declared: String?, _ found: String) throws(FilesError) {
    guard let declared, !declared.utf8.elementsEqual(found.utf8) else { return }
    throw .checksumMismatch(kind: kind, declared: declared, found: found)
  }
}
