import DocumentModel
import Files
import Transport
import WireFormat

/// Buckets, as Cloud Storage's clients ask for them.
struct CloudBuckets: Sendable {
  let call: FilesCall

  init(_ call: FilesCall) { self.call = call }

  /// What a client says of a bucket.
  private struct Change: Sendable {
    var name: String?
    var storageClass: String?
    var location: String?
    var labels: [(name: String, value: String?)] = []

    init(_ body: UnsafeRawBufferPointer) throws(FilesError) {
      guard body.contains(where: { $0 > 0x20 }) else { return }
      var change = Self()
      do throws(WireError) {
        try JSONDocument().withParsed(body, isPadded: true) { (root) throws(WireError) in change.read(root) }
      } catch { throw .invalid(error.description) }
      self = change
    }

    private init() {}

    private mutating func read(_ root: JSONValue) {
      guard case .object(var members) = root.kind else { return }
      while let (member, value) = members.next() {
        switch (member, value.kind) {
        case ("name", .string(let text)): name = String(decoding: text, as: UTF8.self)
        case ("storageClass", .string(let text)): storageClass = String(decoding: text, as: UTF8.self)
        case ("location", .string(let text)): location = String(decoding: text, as: UTF8.self)
        case ("labels", .object(var entries)):
          while let (name, value) = entries.next() {
            if case .string(let text) = value.kind {
              labels.append((name.text, String(decoding: text, as: UTF8.self)))
            } else {
              labels.append((name.text, nil))
            }
          }
        default: break
        }
      }
    }

    func apply(to bucket: inout Bucket) {
      if let storageClass { bucket.storageClass = storageClass }
      if let location { bucket.location = location.uppercased() }
      for (name, value) in labels { bucket.labels[name] = value }
    }
  }

  /// Answers a request for a bucket, or with `nil` for all of them.
  func handle(_ name: String?, _ request: borrowing HTTPRequest) throws(FilesError) {
    guard let name else {
      switch request.method {
      case .get: return try list()
      case .post: return try make(Change(request.body))
      default: return call.failUnknown()
      }
    }
    let condition = try CloudFiles(call).number("ifMetagenerationMatch")
    switch request.method {
    case .get, .head:
      guard let bucket = try call.store.bucket(name) else { throw .noSuchBucket(name) }
      if let condition, condition != bucket.metageneration { throw .conditionNotMet("ifMetagenerationMatch") }
      send(bucket)
    case .patch, .put:
      let change = try Change(request.body)
      call.work { () throws(FilesError) in
        try call.store.updateBucket(name, metagenerationMatch: condition) { (bucket) throws(FilesError) in
          change.apply(to: &bucket)
        }
      } then: {
        send($0)
      }
    case .delete:
      call.work { () throws(FilesError) in
        try call.store.deleteBucket(name, metagenerationMatch: condition)
      } then: {
        call.sendEmpty(204)
      }
    case .post, .options, .other: call.failUnknown()
    }
  }

  private func make(_ change: Change) throws(FilesError) {
    guard let name = change.name else { throw .invalid("Required parameter: name") }
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
