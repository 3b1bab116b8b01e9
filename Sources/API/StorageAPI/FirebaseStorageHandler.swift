import DatabaseService
import Files
import FileService
import GatewayCore
import Transport
import WireFormat

/// Handles one request of the storage API that Firebase clients use; see ``FirebaseStorageAPI``.
struct FirebaseStorageHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

  /// The bucket and object that a path names: `/v0/b/{bucket}/o/{name...}`.
  struct Target {
    let bucket: String
    /// The object's name, from the path or the parameter `name`; `nil` if neither contains one.
    let name: String?

    /// Parses a path.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the percent-encoding is malformed.
    init(_ request: borrowing HTTPRequest, _ call: RoutedCall, _ parameters: QueryParameters) throws {
      bucket = try call.text(0, of: request)
      // Some clients do not encode slashes. Nothing follows a name, so the rest of the path is the name.
      let named = try call.text(1, of: request)
      name = named.isEmpty ? parameters.value("name") : named
    }

    func object() throws(FilesError) -> ObjectName {
      guard let name else { throw .invalid("The request names no object.") }
      return try ObjectName(checking: bucket, name)
    }
  }

  // MARK: - Reads

  /// Responds with an object, its content, or a list of objects if the request names none.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or the read is denied or fails.
  func read(_ target: Target, _ request: borrowing HTTPRequest) throws(FilesError) {
    if target.name == nil { try list(target) } else { try get(target.object(), request) }
  }

  private func get(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    if storageRequest.parameters.value("alt") == "media" {
      let token = storageRequest.parameters.value("token")
      return try ObjectDownload(storageRequest, request).send(conditions) { (waits) throws(FilesError) in
        let found = try service.getContent(name, token: token, waits: waits, as: caller)
        guard let found else { throw .noSuchObject(name) }
        return found
      }
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
      try service.listNames(listing, as: caller)
    } then: {
      send($0)
    }
  }

  private func send(_ page: ObjectNamesPage) {
    storageRequest.send { json in
      json.key("prefixes")
      json.beginArray()
      for prefix in page.prefixes { json.string(prefix) }
      json.endArray()
      json.key("items")
      json.beginArray()
      for name in page.names {
        json.beginObject()
        json.member("name", name.name)
        json.member("bucket", name.bucket)
        json.endObject()
      }
      json.endArray()
      json.member("nextPageToken", page.nextPageToken)
    }
  }

  // MARK: - Changes

  /// Changes the metadata of an object.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func patch(_ name: ObjectName, _ body: UnsafeRawBufferPointer) throws(FilesError) {
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

  /// Deletes an object.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the conditions are malformed.
  func delete(_ name: ObjectName) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    storageRequest.work { () throws(FilesError) in
      try service.deleteObject(name, conditions: conditions, as: caller)
    } then: {
      storageRequest.sendEmpty(204)
    }
  }

  /// Adds a download token.
  func createToken(_ name: ObjectName) {
    storageRequest.work { () throws(FilesError) in
      try service.createDownloadToken(of: name, as: caller)
    } then: {
      storageRequest.send($0)
    }
  }

  /// Revokes the download token in the query.
  func deleteToken(_ name: ObjectName) {
    let token = storageRequest.parameters.value("deleteToken") ?? ""
    storageRequest.work { () throws(FilesError) in
      try service.revokeDownloadToken(token, of: name, as: caller)
    } then: {
      storageRequest.send($0)
    }
  }

  /// The commands in the header of a resumable upload's request, such as `upload, finalize`.
  static func commands(_ request: borrowing HTTPRequest) -> [String] {
    (request.text("x-goog-upload-command") ?? "").lowercased().split(separator: ",").map { word in
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
