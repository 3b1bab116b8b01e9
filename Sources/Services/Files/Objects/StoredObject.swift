import Basics
package import ContentSharing
import WireFormat

/// The attributes of an object that clients set and can change later.
package struct ObjectAttributes: Equatable, Sendable {
  /// The media type, or `nil` for `application/octet-stream`.
  package var contentType: String?
  /// The content coding, such as `gzip`.
  package var contentEncoding: String?
  /// The `Content-Disposition` of responses.
  package var contentDisposition: String?
  /// The language of the content.
  package var contentLanguage: String?
  /// The `Cache-Control` of responses.
  package var cacheControl: String?
  /// A time that the client chose, as it wrote it.
  package var customTime: String?
  /// The storage class. Clients choose it, and it has no effect.
  package var storageClass: String?
  package var metadata = CustomMetadata()

  /// The most bytes of an object's custom metadata.
  package static let metadataBytesMax = 8 << 10
  /// The most bytes of each other text, because responses repeat them as header fields.
  package static let textBytesMax = 1 << 10

  /// Creates empty attributes.
  package init() {}

  /// Checks the size limits and the characters.
  /// - Throws: ``FilesError/invalid(_:)`` if a text is not valid.
  package func check() throws(FilesError) {
    guard metadata.byteCount <= Self.metadataBytesMax else {
      throw .invalid("Custom metadata may have at most \(Self.metadataBytesMax) bytes in total.")
    }
    for text in [
      contentType, contentEncoding, contentDisposition, contentLanguage, cacheControl, customTime, storageClass,
    ] {
      guard let text else { continue }
      guard text.utf8.count <= Self.textBytesMax, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw .invalid("A metadata text is longer than \(Self.textBytesMax) bytes or contains control characters.")
      }
    }
  }
}

/// The checksums and the length of content.
package struct ContentSummary: Equatable, Sendable {
  /// The length, in bytes.
  package var size: Int
  package var crc32c: UInt32
  /// The MD5, 16 bytes. Used only for comparison, never for trust.
  package var md5: [UInt8]
  /// The SHA-256, 32 bytes: the name under which the content is stored.
  package var digest: ContentDigest

  package init(size: Int, crc32c: UInt32, md5: [UInt8], digest: ContentDigest) {
    self.size = size
    self.crc32c = crc32c
    self.md5 = md5
    self.digest = digest
  }

  /// The CRC-32C as four big-endian bytes, of which JSON contains the base64.
  package var crc32cBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: crc32c >> (24 - 8 * UInt32($0))) } }
}

/// A stored object: everything but its bytes.
package struct StoredObject: Equatable, Sendable {
  package var name: ObjectName
  /// A number that is new for each content, taken from a clock in microseconds.
  package var generation: Int64
  /// 1 on creation, incremented by each change of the metadata.
  package var metageneration: Int64 = 1
  /// The creation time, in microseconds since 1970.
  package var created: Int64
  /// The time of the last change, in microseconds since 1970.
  package var updated: Int64
  /// The time when the object became a version by being replaced or deleted, in microseconds since 1970; `nil` for
  /// the current object.
  package var deleted: Int64?
  package var content: ContentSummary
  /// The number of objects that it was composed of, or 0.
  package var componentCount = 0
  package var attributes: ObjectAttributes

  package init(
    name: ObjectName, generation: Int64, created: Int64, updated: Int64, content: ContentSummary,
    componentCount: Int = 0, attributes: ObjectAttributes
  ) {
    self.name = name
    self.generation = generation
    self.created = created
    self.updated = updated
    self.content = content
    self.componentCount = componentCount
    self.attributes = attributes
  }

  /// The media type.
  package var contentType: String { attributes.contentType ?? "application/octet-stream" }

  /// The entity tag, without quotes: base 32 of the generation and the metageneration.
  package var etag: String {
    var text: [UInt8] = []
    Base32.append(UInt64(bitPattern: generation), to: &text)
    text.append(UInt8(ascii: "/"))
    Base32.append(UInt64(bitPattern: metageneration), to: &text)
    return String(decoding: text, as: UTF8.self)
  }
}
