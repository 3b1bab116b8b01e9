import DocumentModel
import Files
import FileService
import WireFormat

/// The metadata of objects and buckets (storage-api.md, section 2). Both APIs have the same members for the most part,
/// in different orders, so they share groups of members.
extension JSONWriter {
  /// Appends an object in the form that Firebase clients read.
  mutating func appendFirebaseObject(_ object: StoredObject) {
    beginObject()
    appendIdentity(object)
    member("contentType", object.contentType)
    appendTimes(created: object.created, updated: object.updated)
    appendSize(object)
    member("md5Hash", Base64.encode(object.content.md5))
    appendHeaders(
      object, encoding: object.attributes.contentEncoding ?? "identity",
      disposition: ContentDisposition.text(of: object))
    appendChecksum(object)
    var custom = object.attributes.metadata
    if !custom.downloadTokens.isEmpty { member("downloadTokens", custom.downloadTokens.joined(separator: ",")) }
    custom.downloadTokens = []
    appendCustom(custom)
    endObject()
  }

  /// Appends an object's resource in the form of Cloud Storage's JSON API. The member `commit` contains the outcome of
  /// the documents that were committed with it.
  mutating func appendCloudObject(_ object: StoredObject, origin: String, _ outcome: CommitOutcome? = nil) {
    let path = "/storage/v1/b/\(object.name.bucket)/o/\(CloudStorageHandler.encoded(object.name.name))"
    beginObject()
    member("kind", "storage#object")
    member("id", "\(object.name.bucket)/\(object.name.name)/\(object.generation)")
    member("selfLink", origin + path)
    member("mediaLink", "\(origin)/download\(path)?generation=\(object.generation)&alt=media")
    appendIdentity(object)
    // A composed object has the type that its metadata contain, or none.
    member("contentType", object.componentCount > 0 ? object.attributes.contentType : object.contentType)
    appendSize(object)
    // In Google's service a composed object has no MD5, and clients expect none.
    if object.componentCount == 0 { member("md5Hash", Base64.encode(object.content.md5)) }
    appendChecksum(object)
    appendTimes(created: object.created, updated: object.updated)
    key("timeStorageClassUpdated")
    moment(object.created)
    if let deleted = object.deleted {
      key("timeDeleted")
      moment(deleted)
    }
    let attributes = object.attributes
    appendHeaders(object, encoding: attributes.contentEncoding, disposition: attributes.contentDisposition)
    member("customTime", attributes.customTime)
    if object.componentCount > 0 {
      key("componentCount")
      number(object.componentCount)
    }
    appendCustom(attributes.metadata)
    if let outcome { append(outcome) }
    endObject()
  }

  private mutating func appendIdentity(_ object: StoredObject) {
    member("name", object.name.name)
    member("bucket", object.name.bucket)
    key("generation")
    int64(object.generation)
    key("metageneration")
    int64(object.metageneration)
  }

  private mutating func appendTimes(created: Int64, updated: Int64) {
    key("timeCreated")
    moment(created)
    key("updated")
    moment(updated)
  }

  private mutating func appendSize(_ object: StoredObject) {
    member("storageClass", object.attributes.storageClass ?? "STANDARD")
    key("size")
    int64(Int64(object.content.size))
  }

  private mutating func appendHeaders(_ object: StoredObject, encoding: String?, disposition: String?) {
    member("contentEncoding", encoding)
    member("contentDisposition", disposition)
    member("contentLanguage", object.attributes.contentLanguage)
    member("cacheControl", object.attributes.cacheControl)
  }

  private mutating func appendChecksum(_ object: StoredObject) {
    member("crc32c", Base64.encode(object.content.crc32cBytes))
    member("etag", object.etag)
  }

  private mutating func appendCustom(_ metadata: CustomMetadata) {
    guard !metadata.isEmpty else { return }
    key("metadata")
    append(metadata)
  }

  private mutating func append(_ outcome: CommitOutcome) {
    key("commit")
    beginObject()
    key("writeResults")
    beginArray()
    for result in outcome.results {
      // Fails only for a damaged stored value. Then the remaining results are omitted.
      if (try? DocumentJSON.append(result, to: &self)) == nil { break }
    }
    endArray()
    key("commitTime")
    timestamp(outcome.version)
    endObject()
  }

  /// Appends a bucket's resource.
  mutating func append(_ bucket: Bucket, origin: String) {
    beginObject()
    member("kind", "storage#bucket")
    member("id", bucket.name)
    member("selfLink", "\(origin)/storage/v1/b/\(bucket.name)")
    member("name", bucket.name)
    member("projectNumber", "1")
    key("metageneration")
    int64(bucket.metageneration)
    member("location", bucket.location)
    member("locationType", "multi-region")
    member("storageClass", bucket.storageClass)
    member("etag", "CA\(bucket.metageneration)=")
    appendTimes(created: bucket.created, updated: bucket.updated)
    if !bucket.labels.isEmpty {
      key("labels")
      append(bucket.labels)
    }
    if bucket.keepsVersions {
      key("versioning")
      beginObject()
      key("enabled")
      bool(true)
      endObject()
    }
    for (name, value) in bucket.settings.entries {
      var name = name
      name.withUTF8 { key(UnsafeRawBufferPointer($0)) }
      self.value(value)
    }
    endObject()
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
