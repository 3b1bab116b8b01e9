import GatewayCore
import DocumentModel
import Files
import Transport
import WireFormat

/// Handles requests for buckets in Cloud Storage's JSON API.
struct CloudBuckets: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  /// Handles a request for one bucket, or for all buckets if `name` is `nil`.
  ///
  /// - Throws: ``FilesError`` if the request is malformed, or the bucket does not exist or does not meet the
  ///   conditions.
  func handle(_ name: String?, _ request: borrowing HTTPRequest) throws(FilesError) {
    guard let name else {
      switch request.method {
      case .get: return try list()
      case .post: return try make(BucketChange(request.body))
      default: return storageRequest.failUnknown()
      }
    }
    let conditions = try ObjectConditions(storageRequest.parameters)
    switch request.method {
    case .get, .head:
      guard let bucket = try storageRequest.store.bucket(name) else { throw .noSuchBucket(name) }
      try conditions.check(bucket, isRead: true)
      send(bucket)
    case .patch, .put:
      let change = try BucketChange(request.body)
      let replaces = request.method == .put
      storageRequest.work { () throws(FilesError) in
        try storageRequest.store.updateBucket(name, conditions: conditions) { (bucket) throws(FilesError) in
          if replaces { BucketChange.clear(&bucket) }
          change.apply(to: &bucket)
        }
      } then: {
        send($0)
      }
    case .delete:
      storageRequest.work { () throws(FilesError) in
        try storageRequest.store.deleteBucket(name, conditions: conditions)
      } then: {
        storageRequest.sendEmpty(204)
      }
    case .post, .options, .other: storageRequest.failUnknown()
    }
  }

  private func make(_ change: BucketChange) throws(FilesError) {
    guard let name = change.name else { throw .invalid("Required parameter: name") }
    guard storageRequest.parameters.value("enableObjectRetention")?.lowercased() != "true" else {
      throw .invalid("This server does not support objectRetention for buckets. Remove the parameter.")
    }
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.makeBucket(name) { change.apply(to: &$0) }
    } then: {
      send($0)
    }
  }

  private func list() throws(FilesError) {
    let count = max(1, min(1000, Int(storageRequest.parameters.value("maxResults") ?? "") ?? 1000))
    let buckets = try storageRequest.store.buckets(
      prefix: storageRequest.parameters.value("prefix") ?? "", from: storageRequest.parameters.value("pageToken") ?? "",
      max: count + 1)
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
    storageRequest.sendBody(json.finish(), type: "application/json; charset=UTF-8", status: 200, { _ in })
  }
}
