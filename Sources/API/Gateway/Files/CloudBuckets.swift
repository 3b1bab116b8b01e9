import DocumentModel
import Files
import Transport
import WireFormat

/// Handles requests for buckets in Cloud Storage's JSON API.
struct CloudBuckets: Sendable {
  let call: StorageRequest

  init(_ call: StorageRequest) { self.call = call }

  /// Handles a request for one bucket, or for all buckets if `name` is `nil`.
  ///
  /// - Throws: ``FilesError`` if the request is malformed, or the bucket does not exist or does not meet the
  ///   conditions.
  func handle(_ name: String?, _ request: borrowing HTTPRequest) throws(FilesError) {
    guard let name else {
      switch request.method {
      case .get: return try list()
      case .post: return try make(BucketChange(request.body))
      default: return call.failUnknown()
      }
    }
    let conditions = try ObjectConditions(call.parameters)
    switch request.method {
    case .get, .head:
      guard let bucket = try call.store.bucket(name) else { throw .noSuchBucket(name) }
      try conditions.check(bucket, isRead: true)
      send(bucket)
    case .patch, .put:
      let change = try BucketChange(request.body)
      let replaces = request.method == .put
      call.work { () throws(FilesError) in
        try call.store.updateBucket(name, conditions: conditions) { (bucket) throws(FilesError) in
          if replaces { BucketChange.clear(&bucket) }
          change.apply(to: &bucket)
        }
      } then: {
        send($0)
      }
    case .delete:
      call.work { () throws(FilesError) in
        try call.store.deleteBucket(name, conditions: conditions)
      } then: {
        call.sendEmpty(204)
      }
    case .post, .options, .other: call.failUnknown()
    }
  }

  private func make(_ change: BucketChange) throws(FilesError) {
    guard let name = change.name else { throw .invalid("Required parameter: name") }
    guard call.parameters.value("enableObjectRetention")?.lowercased() != "true" else {
      throw .invalid("This server does not support objectRetention for buckets. Remove the parameter.")
    }
    call.work { () throws(FilesError) in
      try call.store.makeBucket(name) { change.apply(to: &$0) }
    } then: {
      send($0)
    }
  }

  private func list() throws(FilesError) {
    let count = max(1, min(1000, Int(call.parameters.value("maxResults") ?? "") ?? 1000))
    let buckets = try call.store.buckets(
      prefix: call.parameters.value("prefix") ?? "", from: call.parameters.value("pageToken") ?? "", max: count + 1)
    call.send { json in
      json.member("kind", "storage#buckets")
      if buckets.count > count { json.member("nextPageToken", buckets[count].name) }
      json.key("items")
      json.beginArray()
      for bucket in buckets.prefix(count) { json.append(bucket, origin: call.origin) }
      json.endArray()
    }
  }

  private func send(_ bucket: Bucket) {
    var json = JSONWriter(.compact)
    json.append(bucket, origin: call.origin)
    call.sendBody(json.finish(), type: "application/json; charset=UTF-8", status: 200, { _ in })
  }
}
