import DatabaseService
import Files
import FileService
import GatewayCore
import Transport
import WireFormat

/// Handles requests for buckets in Cloud Storage's JSON API.
struct CloudBuckets: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

  /// Responds with a bucket.
  ///
  /// - Throws: ``FilesError`` if the request is malformed, or the bucket does not exist or does not meet the
  ///   conditions.
  func get(_ name: String) throws(FilesError) {
    send(try service.getBucket(name, conditions: try ObjectConditions(storageRequest.parameters), as: caller))
  }

  /// Changes the metadata of a bucket. A `PUT` replaces them.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func change(_ name: String, _ request: borrowing HTTPRequest) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    let change = try BucketChange(request.body)
    let replaces = request.method == .put
    storageRequest.work { () throws(FilesError) in
      let now = try service.now()
      return try service.patchBucket(name, conditions: conditions, as: caller) { bucket in
        if replaces { BucketChange.clear(&bucket) }
        change.apply(to: &bucket, now: now)
      }
    } then: {
      send($0)
    }
  }

  /// Deletes a bucket.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func delete(_ name: String) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    storageRequest.work { () throws(FilesError) in
      try service.deleteBucket(name, conditions: conditions, as: caller)
    } then: {
      storageRequest.sendEmpty(204)
    }
  }

  /// Creates a bucket.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func make(_ change: BucketChange) throws(FilesError) {
    guard let name = change.name else { throw .invalid("Required parameter: name") }
    guard storageRequest.parameters.value("enableObjectRetention")?.lowercased() != "true" else {
      throw .invalid("This server does not support objectRetention for buckets. Remove the parameter.")
    }
    storageRequest.work { () throws(FilesError) in
      let now = try service.now()
      return try service.insertBucket(name, as: caller) { change.apply(to: &$0, now: now) }
    } then: {
      send($0)
    }
  }

  /// Lists buckets.
  ///
  /// - Throws: ``FilesError`` if the read fails.
  func list() throws(FilesError) {
    let count = max(1, min(1000, Int(storageRequest.parameters.value("maxResults") ?? "") ?? 1000))
    let buckets = try service.listBuckets(
      prefix: storageRequest.parameters.value("prefix") ?? "", from: storageRequest.parameters.value("pageToken") ?? "",
      max: count + 1, as: caller)
    storageRequest.send { json in
      json.member("kind", "storage#buckets")
      if buckets.count > count { json.member("nextPageToken", buckets[count].name) }
      json.key("items")
      json.beginArray()
      for bucket in buckets.prefix(count) { json.append(bucket, origin: storageRequest.origin) }
      json.endArray()
    }
  }

  private func send(_ bucket: Bucket) {
    var json = JSONWriter(.compact)
    json.append(bucket, origin: storageRequest.origin)
    storageRequest.sendJSON(json.finish(), .compact)
  }
}
