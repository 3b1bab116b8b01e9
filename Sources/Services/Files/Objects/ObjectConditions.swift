import WireFormat

/// What a request asks of an object before it acts: generations and tags.
package struct ObjectConditions: Equatable, Sendable {
  /// The content must be of this generation; 0 stands for no object.
  package var generationMatch: Int64?
  /// The content must not be of this generation; 0 stands for no object.
  package var generationNotMatch: Int64?
  /// The metadata must be of this generation.
  package var metagenerationMatch: Int64?
  /// The metadata must not be of this generation.
  package var metagenerationNotMatch: Int64?
  /// One of these tags must be the object's; `*` is that of any object.
  package var etagMatch: [String] = []
  /// None of these tags may be the object's; `*` is that of any object.
  package var etagNotMatch: [String] = []

  /// Asks for nothing.
  package init() {}

  /// Checks an object, or that there is none.
  /// - Throws: ``FilesError/conditionNotMet(_:)``; ``FilesError/notModified`` where a read wants another object.
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

  /// Checks a bucket: those on its metadata.
  /// - Throws: ``FilesError/conditionNotMet(_:)``; ``FilesError/notModified`` where a read wants another.
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

/// The checksums that a client says content has.
package struct DeclaredChecksums: Equatable, Sendable {
  /// CRC-32C, in base64.
  package var crc32c: String?
  /// MD5, in base64.
  package var md5: String?

  /// SHA-256, in base64.
  package var sha256: String?

  /// Declares nothing.
  package init() {}

  /// Compares content with what was declared.
  /// - Throws: ``FilesError/checksumMismatch(kind:declared:found:)``.
  func check(_ content: ContentSummary) throws(FilesError) {
    try Self.compare("CRC32C", crc32c, Base64.encode(content.crc32cBytes))
    try Self.compare("MD5", md5, Base64.encode(content.md5))
    try Self.compare("SHA-256", sha256, Base64.encode(content.digest.bytes))
  }

  /// These and those of another, which must agree where both say something.
  /// - Throws: ``FilesError/checksumMismatch(kind:declared:found:)``.
  package func and(_ other: DeclaredChecksums) throws(FilesError) -> DeclaredChecksums {
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
