import DocumentModel
import Files
import Transport
import WireFormat

extension JSONWriter {
  /// Appends the members of an object's metadata as Firebase's clients read them (storage-api.md, section 2).
  mutating func appendFirebaseMetadata(_ object: StoredObject) {
    member("name", object.name.name)
    member("bucket", object.name.bucket)
    key("generation")
    int64(object.generation)
    key("metageneration")
    int64(object.metageneration)
    member("contentType", object.contentType)
    key("timeCreated")
    moment(object.created)
    key("updated")
    moment(object.updated)
    member("storageClass", object.attributes.storageClass ?? "STANDARD")
    key("size")
    int64(Int64(object.content.size))
    member("md5Hash", Base64.encode(object.content.md5))
    member("contentEncoding", object.attributes.contentEncoding ?? "identity")
    member("contentDisposition", ContentDisposition.text(of: object))
    member("contentLanguage", object.attributes.contentLanguage)
    member("cacheControl", object.attributes.cacheControl)
    member("crc32c", Base64.encode(object.content.crc32cBytes))
    member("etag", object.etag)
    let tokens = object.attributes.metadata.downloadTokens
    if !tokens.isEmpty { member("downloadTokens", tokens.joined(separator: ",")) }
    var custom = object.attributes.metadata
    custom.downloadTokens = []
    if !custom.isEmpty {
      key("metadata")
      append(custom)
    }
  }

  /// Appends an object of texts.
  mutating func append(_ metadata: CustomMetadata) {
    beginObject()
    for (name, value) in metadata.entries {
      var name = name
      name.withUTF8 { key(UnsafeRawBufferPointer($0)) }
      string(value)
    }
    endObject()
  }

  /// Appends a member that is a text, unless there is none.
  mutating func member(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    string(value)
  }

  /// Appends a moment with three digits behind the second, which clients insist on.
  mutating func moment(_ microseconds: Int64) { string(FilesTime.text(microseconds)) }
}

/// How moments are written about files.
enum FilesTime {
  /// `2020-09-18T00:31:33.328Z`
  static func text(_ microseconds: Int64) -> String {
    var bytes: [UInt8] = []
    let milliseconds = microseconds / 1000
    Timestamp(uncheckedMicroseconds: milliseconds / 1000 * 1_000_000).appendRFC3339(to: &bytes)
    // `2020-09-18T00:31:33Z`: the digits go before the Z.
    let digits = String(1000 + milliseconds % 1000).utf8.dropFirst()
    bytes.insert(contentsOf: [UInt8(ascii: ".")] + digits, at: max(0, bytes.count - 1))
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// How a browser is told to show an object.
enum ContentDisposition {
  /// What is stored, with the object's last name as that of the file where none is named.
  static func text(of object: StoredObject) -> String {
    let stored = object.attributes.contentDisposition ?? "inline"
    if stored.utf8.count == 0 { return stored }
    if namesFile(stored) { return stored }
    let last = object.name.name.utf8.split(separator: UInt8(ascii: "/")).last ?? object.name.name.utf8[...]
    return "\(stored); filename*=utf-8''\(percentEncoded(last))"
  }

  /// Whether `filename` stands in it, in letters of either case. Every download asks.
  private static func namesFile(_ disposition: String) -> Bool {
    let word = Array("filename".utf8)
    guard disposition.utf8.count >= word.count else { return false }
    let bytes = disposition.utf8.map { $0 | 0x20 }
    return (0...(bytes.count - word.count)).contains { bytes[$0...].starts(with: word) }
  }

  /// Text with all but RFC 5987's plain characters as `%` and two digits.
  private static func percentEncoded(_ text: Substring.UTF8View) -> String {
    let plain = Array("!#$&+-.^_`|~".utf8)
    return PercentEncoding.encode(text) { PercentEncoding.isAlphanumeric($0) || plain.contains($0) }
  }
}
