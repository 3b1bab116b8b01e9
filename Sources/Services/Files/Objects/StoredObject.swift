import WireFormat

/// What a client may say of an object and change later.
package struct ObjectAttributes: Equatable, Sendable {
  /// The media type; `application/octet-stream` where nobody said one.
  package var contentType: String?
  /// The coding of the content, such as `gzip`.
  package var contentEncoding: String?
  /// How a browser is to show it.
  package var contentDisposition: String?
  /// The language of the content.
  package var contentLanguage: String?
  /// How long caches may keep it.
  package var cacheControl: String?
  /// A moment that the client chose, as it wrote it.
  package var customTime: String?
  /// The class of storage, a word that clients choose and nothing depends on.
  package var storageClass: String?
  /// Texts by name.
  package var metadata = CustomMetadata()

  /// Custom metadata of one object may take this much.
  package static let metadataBytesMax = 8 << 10
  /// Each of the other texts may take this much: they come back as header fields.
  package static let textBytesMax = 1 << 10

  /// Says nothing.
  package init() {}

  /// Checks the bounds.
  /// - Throws: ``FilesError/invalid(_:)``.
  package func check() throws(FilesError) {
    guard metadata.byteCount <= Self.metadataBytesMax else {
      throw .invalid("Custom metadata may have \(Self.metadataBytesMax) bytes in all.")
    }
    for text in [
      contentType, contentEncoding, contentDisposition, contentLanguage, cacheControl, customTime, storageClass,
    ] {
      guard let text else { continue }
      guard text.utf8.count <= Self.textBytesMax, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw .invalid("A text of the metadata is longer than \(Self.textBytesMax) bytes or holds control characters.")
      }
    }
  }
}

/// The checksums of content, and its length.
package struct ContentSummary: Equatable, Sendable {
  /// Bytes.
  package var size: Int
  /// CRC-32C.
  package var crc32c: UInt32
  /// MD5, 16 bytes; they are compared, and nothing is trusted because of them.
  package var md5: [UInt8]
  /// SHA-256, 32 bytes: the name under which the content is kept.
  package var digest: ContentDigest

  /// Puts the facts together.
  package init(size: Int, crc32c: UInt32, md5: [UInt8], digest: ContentDigest) {
    self.size = size
    self.crc32c = crc32c
    self.md5 = md5
    self.digest = digest
  }

  /// The CRC-32C as it stands in JSON: base64 of four bytes, the highest first.
  package var crc32cBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: crc32c >> (24 - 8 * UInt32($0))) } }
}

/// The SHA-256 of content.
package struct ContentDigest: Hashable, Sendable {
  /// 32 bytes.
  package let bytes: [UInt8]

  /// Wraps 32 bytes.
  package init(bytes: [UInt8]) { self.bytes = bytes }

  /// 64 hexadecimal digits in lower case.
  package var text: String { Hexadecimal.text(bytes) }

  /// Reads 64 hexadecimal digits in lower case.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == 64, let bytes = Hexadecimal.bytes(text) else { return nil }
    self.bytes = bytes
  }
}

/// An object as it is stored: everything but its bytes.
package struct StoredObject: Equatable, Sendable {
  /// Where it is.
  package var name: ObjectName
  /// A number that is new for each content, on a clock of microseconds.
  package var generation: Int64
  /// 1 on creation, one more for each change of the metadata.
  package var metageneration: Int64 = 1
  /// When it was created, in microseconds since 1970.
  package var created: Int64
  /// When it was last changed, in microseconds since 1970.
  package var updated: Int64
  /// When it was replaced or deleted, in microseconds since 1970, where its bucket keeps versions; `nil` while it is the
  /// object of its name.
  package var deleted: Int64?
  /// What it holds.
  package var content: ContentSummary
  /// How many objects it was composed of; 0 where it was not.
  package var componentCount = 0
  /// What clients said of it.
  package var attributes: ObjectAttributes

  /// Puts the facts together.
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

  /// The entity tag: base 32 of what changes with content and metadata, quoted by nobody.
  package var etag: String {
    var text: [UInt8] = []
    Base32.append(UInt64(bitPattern: generation), to: &text)
    text.append(UInt8(ascii: "/"))
    Base32.append(UInt64(bitPattern: metageneration), to: &text)
    return String(decoding: text, as: UTF8.self)
  }
}
