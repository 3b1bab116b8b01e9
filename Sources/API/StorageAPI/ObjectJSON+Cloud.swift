import DocumentModel
import Files
import WireFormat

extension JSONWriter {
  /// Appends an object's resource in the form of Cloud Storage's JSON API (storage-api.md, section 2). The member
  /// `commit` contains the outcome of the documents that were committed with it.
  mutating func appendCloudObject(_ object: StoredObject, origin: String, _ outcome: CommitOutcome? = nil) {
    let name = CloudStorageHandler.encoded(object.name.name)
    let path = "/storage/v1/b/\(object.name.bucket)/o/\(name)"
    beginObject()
    member("kind", "storage#object")
    member("id", "\(object.name.bucket)/\(object.name.name)/\(object.generation)")
    member("selfLink", origin + path)
    member("mediaLink", "\(origin)/download\(path)?generation=\(object.generation)&alt=media")
    member("name", object.name.name)
    member("bucket", object.name.bucket)
    key("generation")
    int64(object.generation)
    key("metageneration")
    int64(object.metageneration)
    // A composed object has the type that its metadata contain, or none.
    member("contentType", object.componentCount > 0 ? object.attributes.contentType : object.contentType)
    member("storageClass", object.attributes.storageClass ?? "STANDARD")
    key("size")
    int64(Int64(object.content.size))
    // In Google's service a composed object has no MD5, and clients expect none.
    if object.componentCount == 0 { member("md5Hash", Base64.encode(object.content.md5)) }
    member("crc32c", Base64.encode(object.content.crc32cBytes))
    member("etag", object.etag)
    key("timeCreated")
    moment(object.created)
    key("updated")
    moment(object.updated)
    key("timeStorageClassUpdated")
    moment(object.created)
    if let deleted = object.deleted {
      key("timeDeleted")
      moment(deleted)
    }
    member("contentEncoding", object.attributes.contentEncoding)
    member("contentDisposition", object.attributes.contentDisposition)
    member("contentLanguage", object.attributes.contentLanguage)
    member("cacheControl", object.attributes.cacheControl)
    member("customTime", object.attributes.customTime)
    if object.componentCount > 0 {
      key("componentCount")
      number(object.componentCount)
    }
    if !object.attributes.metadata.isEmpty {
      key("metadata")
      append(object.attributes.metadata)
    }
    if let outcome {
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
    key("timeCreated")
    moment(bucket.created)
    key("updated")
    moment(bucket.updated)
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
}
