import DatabaseService
import FileService
import Files
import GatewayCore
import Transport
import WireFormat

/// Handles a request of the storage API that Firebase clients use (storage-api.md, sections 3 to 8).
struct FirebaseStorageHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

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
        if let token = storageRequest.parameters.value("deleteToken") { return deleteToken(token, try target.object()) }
        if storageRequest.parameters.value("createToken") != nil { return createToken(try target.object()) }
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
    if storageRequest.parameters.value("alt") == "media" {
      let token = storageRequest.parameters.value("token")
      guard let found = try service.getContent(name, token: token, as: caller) else { throw .noSuchObject(name) }
      return ObjectDownload(storageRequest, request).send(found, conditions)
    }
    let object = try service.getObject(name, conditions: conditions, as: caller)
    guard object.attributes.metadata.downloadTokens.isEmpty else { return storageRequest.send(object) }
    storageRequest.work { () throws(FilesError) in
      try service.addMissingDownloadToken(to: object, conditions: conditions, as: caller)
    } then: {
      storageRequest.send($0)
    }
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
    storageRequest.work { [listing] () throws(FilesError) in
      try service.listObjects(listing, as: caller)
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
      try service.patchObject(name, conditions: conditions, as: caller) {
        (attributes) throws(FilesError) in change.apply(to: &attributes, keepsTokens: true)
      }
    } then: {
      storageRequest.send($0)
    }
  }

  private func delete(_ name: ObjectName) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    storageRequest.work { () throws(FilesError) in
      try service.deleteObject(name, conditions: conditions, as: caller)
    } then: {
      storageRequest.sendEmpty(204)
    }
  }

  private func createToken(_ name: ObjectName) {
    storageRequest.work { () throws(FilesError) in
      try service.createDownloadToken(of: name, as: caller)
    } then: {
      storageRequest.send($0)
    }
  }

  private func deleteToken(_ token: String, _ name: ObjectName) {
    storageRequest.work { () throws(FilesError) in
      try service.revokeDownloadToken(token, of: name, as: caller)
    } then: {
      storageRequest.send($0)
    }
  }

  // MARK: - Helpers

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
