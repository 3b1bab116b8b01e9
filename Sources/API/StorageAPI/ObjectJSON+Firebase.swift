import DocumentModel
import Files
import Transport
import WireFormat

extension JSONWriter {
  /// Appends the members of an object's metadata in the form that Firebase clients read (storage-api.md, section
  /// 2).
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

  /// Appends custom metadata as an object of strings.
  mutating func append(_ metadata: CustomMetadata) {
    beginObject()
    for (name, value) in metadata.entries {
      var name = name
      name.withUTF8 { key(UnsafeRawBufferPointer($0)) }
      string(value)
    }
    endObject()
  }

  /// Appends a string member, unless the value is `nil`.
  mutating func member(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    string(value)
  }

  /// Appends a time with three digits after the second, which clients require.
  mutating func moment(_ microseconds: Int64) { string(FilesTime.text(microseconds)) }
}

/// The text form of times in the metadata of files.
enum FilesTime {
  /// Returns a time as `2020-09-18T00:31:33.328Z`.
  static func text(_ microseconds: Int64) -> String {
    var bytes: [UInt8] = []
    let milliseconds = microseconds / 1000
    Timestamp(uncheckedMicroseconds: milliseconds / 1000 * 1_000_000).appendRFC3339(to: &bytes)
    // Insert the digits before the Z of `2020-09-18T00:31:33Z`.
    let digits = String(1000 + milliseconds % 1000).utf8.dropFirst()
    bytes.insert(contentsOf: [UInt8(ascii: ".")] + digits, at: max(0, bytes.count - 1))
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The header `Content-Disposition`, with which a browser decides how to show an object.
enum ContentDisposition {
  /// The stored value. If it contains no file name, the last segment of the object's name is added as one.
  static func text(of object: StoredObject) -> String {
    let stored = object.attributes.contentDisposition ?? "inline"
    if stored.utf8.count == 0 { return stored }
    if namesFile(stored) { return stored }
    let last = object.name.name.utf8.split(separator: UInt8(ascii: "/")).last ?? object.name.name.utf8[...]
    return "\(stored); filename*=utf-8''\(percentEncoded(last))"
  }

  /// Whether the value contains `filename`, in upper or lower case. Runs for every download.
  private static func namesFile(_ disposition: String) -> Bool {
    let word = Array("filename".utf8)
    guard disposition.utf8.count >= word.count else { return false }
    let bytes = disposition.utf8.map { $0 | 0x20 }
    return (0...(bytes.count - word.count)).contains { bytes[$0...].starts(with: word) }
  }

  /// Percent-encodes all characters except those that RFC 5987 allows.
  private static func percentEncoded(_ text: Substring.UTF8View) -> String {
    let plain = Array("!#$&+-.^_`|~".utf8)
    return PercentEncoding.encode(text) { PercentEncoding.isAlphanumeric($0) || plain.contains($0) }
  }
}
