import GatewayCore
import DatabaseService
import DocumentModel
import Files
import RulesEngine
import Transport
import WireFormat

/// Handles a request of the storage API that Firebase clients use (storage-api.md, sections 3 to 8).
struct FirebaseStorageHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  /// The bucket and object that a path after `/v0/b/` names.
  struct Target {
    let bucket: String
    /// The object's name, from the path or the parameter `name`; `nil` if neither contains one.
    let name: String?

    /// Parses a path. Returns `nil` if it is neither a bucket's nor an object's.
    ///
    /// - Throws: ``FilesError/invalid(_:)`` if the percent-encoding is malformed.
    init?(_ path: UnsafeRawBufferPointer, _ parameters: QueryParameters) throws(FilesError) {
      guard let slash = path.firstIndex(of: UInt8(ascii: "/")) else { return nil }
      let rest = UnsafeRawBufferPointer(rebasing: path[slash...])
      guard rest.elementsEqual("/o".utf8) || rest.dropping("/o/") != nil else { return nil }
      bucket = try Self.decode(UnsafeRawBufferPointer(rebasing: path[..<slash]))
      // Some clients do not encode slashes. Nothing follows a name, so the rest of the path is the name.
      let named = try rest.dropping("/o/").map { (bytes) throws(FilesError) in try Self.decode(bytes) }
      name = named.flatMap { $0.isEmpty ? nil : $0 } ?? parameters.value("name")
    }

    static func decode(_ bytes: UnsafeRawBufferPointer) throws(FilesError) -> String {
      var decoded: [UInt8] = []
      guard PercentEncoding.decode(bytes, into: &decoded), let text = String(validating: decoded, as: UTF8.self) else {
        throw .invalid("Malformed percent-encoding in the path of the URL.")
      }
      return text
    }

    func object() throws(FilesError) -> ObjectName {
      guard let name else { throw .invalid("The request names no object.") }
      return try ObjectName(checking: bucket, name)
    }
  }

  /// Handles a request that carries no content of an object (its body may be metadata).
  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) {
    do throws(FilesError) {
      guard let target = try Target(path, storageRequest.parameters) else { return storageRequest.failUnknown() }
      switch request.method {
      case .get, .head:
        if target.name == nil { try list(target) } else { try get(target.object(), request) }
      case .delete where storageRequest.parameters.value("uploadId") != nil:
        try CloudResumableUpload(storageRequest).handle([], request)
      case .delete: try delete(target.object())
      case .patch: try patch(target.object(), request.body)
      case .post, .put:
        if Self.isPatch(request) { return try patch(target.object(), request.body) }
        if let command = request.header("x-goog-upload-command") {
          return try FirebaseResumableUpload(storageRequest).handle(Self.commands(command), target, request)
        }
        if let token = storageRequest.parameters.value("deleteToken") { return try deleteToken(token, target.object()) }
        if storageRequest.parameters.value("createToken") != nil { return try createToken(target.object()) }
        if request.method == .post, storageRequest.parameters.value("uploadType") == "resumable" {
          return try CloudResumableUpload(storageRequest).start(target.bucket, named: target.name, request)
        }
        storageRequest.failUnknown()
      case .options, .other: storageRequest.failUnknown()
      }
    } catch { storageRequest.fail(error) }
  }

  // MARK: - Reads

  private func get(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    let isContent = storageRequest.parameters.value("alt") == "media"
    var found: (object: StoredObject, descriptor: Int32)?
    if isContent { found = try storageRequest.store.open(name) }
    let object: StoredObject?
    if isContent { object = found?.object } else { object = try storageRequest.store.object(name) }
    do throws(FilesError) {
      let token = storageRequest.parameters.value("token")
      let tokens = object?.attributes.metadata.downloadTokens ?? []
      let hasToken = isContent && tokens.contains { $0 == token }
      // Evaluate rules before the check for existence: a caller without access learns nothing about the object.
      if !hasToken { try require(.get, name, before: object, after: nil) }
      guard object != nil else { throw .noSuchObject(name) }
    } catch {
      if let found { ObjectDownload.close(found) }
      throw error
    }
    if let found { return ObjectDownload(storageRequest, request).send(found, conditions) }
    guard let object else { return }
    try conditions.check(object, isRead: true)
    if object.attributes.metadata.downloadTokens.isEmpty { return addTokenIfMissing(object, conditions) }
    send(object)
  }

  private func list(_ target: Target) throws(FilesError) {
    guard ObjectName.isBucket(target.bucket) else { throw .invalidBucket(target.bucket) }
    var listing = ObjectListing(bucket: target.bucket)
    listing.prefix = storageRequest.parameters.value("prefix") ?? ""
    guard listing.prefix.isEmpty || listing.prefix.utf8.last == UInt8(ascii: "/") else {
      throw .invalid("The prefix parameter is required to be empty or ends with a single / character.")
    }
    listing.delimiter = storageRequest.parameters.value("delimiter") ?? ""
    listing.pageToken = storageRequest.parameters.value("pageToken")
    listing.skipsEmptyParts = true
    if let text = storageRequest.parameters.value("maxResults"), !text.isEmpty {
      guard let count = Int(text), count >= 0 else { throw .invalid("Invalid maxResults.") }
      listing.countMax = count == 0 ? 1000 : min(count, 1000)
    }
    let listedPrefix = ObjectName(bucket: target.bucket, name: String(Substring(listing.prefix.utf8.dropLast())))
    try require(.list, listedPrefix, before: nil, after: nil)
    storageRequest.work { [listing] () throws(FilesError) in
      try storageRequest.store.list(listing)
    } then: {
      send($0)
    }
  }

  private func send(_ page: ObjectPage) {
    storageRequest.send { json in
      json.key("prefixes")
      json.beginArray()
      for prefix in page.prefixes { json.string(prefix) }
      json.endArray()
      json.key("items")
      json.beginArray()
      for object in page.objects {
        json.beginObject()
        json.member("name", object.name.name)
        json.member("bucket", object.name.bucket)
        json.endObject()
      }
      json.endArray()
      json.member("nextPageToken", page.nextPageToken)
    }
  }

  // MARK: - Changes

  private func patch(_ name: ObjectName, _ body: UnsafeRawBufferPointer) throws(FilesError) {
    let change = try AttributesReader(body)
    let conditions = try ObjectConditions(storageRequest.parameters)
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.update(
        name, conditions: conditions,
        check: { (before, after) throws(FilesError) in try require(.update, name, before: before, after: after) }
      ) { (attributes) throws(FilesError) in change.apply(to: &attributes, keepsTokens: true) }
    } then: {
      send($0)
    }
  }

  private func delete(_ name: ObjectName) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.delete(name, conditions: conditions) { (before, after) throws(FilesError) in
        try require(.delete, name, before: before, after: after)
      }
    } then: {
      storageRequest.sendEmpty(204)
    }
  }

  /// Adds a download token to an object without one when its metadata are read. If another object has replaced it
  /// meanwhile, rules and conditions apply to that one as if the client had requested it.
  private func addTokenIfMissing(_ object: StoredObject, _ conditions: ObjectConditions) {
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.addDownloadToken(to: object) { (other) throws(FilesError) in
        try require(.get, object.name, before: other, after: nil)
        if let other { try conditions.check(other, isRead: true) }
      }
    } then: {
      send($0)
    }
  }

  private func createToken(_ name: ObjectName) throws(FilesError) {
    guard storageRequest.isAdmin else { throw .denied("Missing admin credentials.") }
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.update(name) { (attributes) throws(FilesError) in
        attributes.metadata.downloadTokens.append(DownloadToken.make())
      }
    } then: {
      send($0)
    }
  }

  private func deleteToken(_ token: String, _ name: ObjectName) throws(FilesError) {
    guard storageRequest.isAdmin else { throw .denied("Missing admin credentials.") }
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.update(name) { (attributes) throws(FilesError) in
        var tokens = attributes.metadata.downloadTokens
        tokens.removeAll { $0 == token }
        attributes.metadata.downloadTokens = tokens.isEmpty ? [DownloadToken.make()] : tokens
      }
    } then: {
      send($0)
    }
  }

  // MARK: - Helpers

  /// Responds with an object's metadata.
  func send(_ object: StoredObject, headers: @escaping (inout HeaderWriter) -> Void = { _ in }) {
    storageRequest.send(headers: headers) { $0.appendFirebaseMetadata(object) }
  }

  /// Authorizes the caller for one operation.
  ///
  /// - Throws: ``FilesError/denied(_:)`` if the rules do not allow it.
  func require(
    _ method: RulesMethod, _ name: ObjectName, before: StoredObject?, after: StoredObject?
  ) throws(FilesError) {
    _ = try storageRequest.authorizer.grant(method, name, as: storageRequest.caller, before: before, after: after)
  }

  private static func isPatch(_ request: borrowing HTTPRequest) -> Bool {
    request.header("x-http-method-override").map { $0.elementsEqual("PATCH".utf8) } ?? false
  }

  /// The commands in the header of a resumable upload's request, such as `upload, finalize`.
  static func commands(_ header: UnsafeRawBufferPointer) -> [String] {
    String(decoding: header, as: UTF8.self).lowercased().split(separator: ",").map { word in
      String(word.drop { $0 == " " }.prefix { $0 != " " })
    }
  }
}

extension ObjectConditions {
  /// Reads the conditions in the URL's query parameters.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if a value is not a number.
  init(_ parameters: QueryParameters) throws(FilesError) {
    self.init()
    func number(_ name: StaticString) throws(FilesError) -> Int64? {
      guard let text = parameters.value(name) else { return nil }
      guard let number = Int64(text) else { throw .invalid("Invalid value for \(name): \(text)") }
      return number
    }
    generationMatch = try number("ifGenerationMatch")
    generationNotMatch = try number("ifGenerationNotMatch")
    metagenerationMatch = try number("ifMetagenerationMatch")
    metagenerationNotMatch = try number("ifMetagenerationNotMatch")
  }

  /// Reads the conditions in the URL's query parameters and a request's header fields.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if a value is not a number.
  init(_ parameters: QueryParameters, _ request: borrowing HTTPRequest) throws(FilesError) {
    try self.init(parameters)
    etagMatch = Self.tags(request.text("if-match"))
    etagNotMatch = Self.tags(request.text("if-none-match"))
  }

  private static func tags(_ header: String?) -> [String] {
    (header ?? "").split(separator: ",").map { part in
      var tag = part.drop { $0 == " " }
      while tag.last == " " { tag.removeLast() }
      if tag.hasPrefix("W/") { tag = tag.dropFirst(2) }
      return String(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.count >= 2 ? tag.dropFirst().dropLast() : tag)
    }
  }
}
