import GatewayCore
import DatabaseService
import DocumentModel
import Files
import Transport
import WireFormat

/// Handles a request of Cloud Storage's JSON API, which only administrators use (storage-api.md, sections 9 to 11).
struct CloudStorageHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  /// Returns the decoded segments of a path after `…/b`.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the percent-encoding is malformed.
  static func parts(_ path: UnsafeRawBufferPointer) throws(FilesError) -> [String] {
    var parts: [String] = []
    for part in path.split(separator: UInt8(ascii: "/")) {
      parts.append(try FirebaseStorageHandler.Target.decode(UnsafeRawBufferPointer(rebasing: part)))
    }
    return parts
  }

  /// Handles a request that carries no content of an object (its body may be metadata).
  func handle(_ route: StorageHandler.Route, _ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) {
    do throws(FilesError) {
      let parts = try Self.parts(path)
      if route == .cloudUpload { return try CloudResumableUpload(storageRequest).handle(parts, request) }
      switch parts.count {
      case 0: try CloudBuckets(storageRequest).handle(nil, request)
      case 1: try CloudBuckets(storageRequest).handle(parts[0], request)
      case 2 where parts[1] == "o": try handleObjects(parts[0], request)
      case 2...: try parts[1] == "o" ? handleObject(parts, request) : handleAccess(request)
      default: storageRequest.failUnknown()
      }
    } catch { storageRequest.fail(error) }
  }

  /// Accepts requests for access lists and ignores them: rules and administrators decide.
  private func handleAccess(_ request: borrowing HTTPRequest) throws(FilesError) {
    switch request.method {
    case .get, .head:
      storageRequest.send { json in
        json.member("kind", "storage#accessControls")
        json.key("items")
        json.beginArray()
        json.endArray()
      }
    case .delete: storageRequest.sendEmpty(204)
    default: storageRequest.send { $0.member("kind", "storage#accessControl") }
    }
  }

  private func handleObjects(_ bucket: String, _ request: borrowing HTTPRequest) throws(FilesError) {
    guard request.method == .get else { return storageRequest.failUnknown() }
    guard ObjectName.isBucket(bucket) else { throw .invalidBucket(bucket) }
    var listing = ObjectListing(bucket: bucket)
    listing.prefix = storageRequest.parameters.value("prefix") ?? ""
    listing.delimiter = storageRequest.parameters.value("delimiter") ?? ""
    listing.start = storageRequest.parameters.value("startOffset") ?? ""
    listing.end = storageRequest.parameters.value("endOffset") ?? ""
    listing.pageToken = storageRequest.parameters.value("pageToken")
    listing.includesVersions = storageRequest.parameters.value("versions")?.lowercased() == "true"
    if let pattern = storageRequest.parameters.value("matchGlob"), !pattern.isEmpty {
      listing.pattern = try NamePattern(pattern)
    }
    if storageRequest.parameters.value("softDeleted")?.lowercased() == "true"
      || storageRequest.parameters.value("filter") != nil
    {
      throw .invalid("This server does not support softDeleted or filter. Deleted objects are kept only as versions.")
    }
    listing.includesTrailingDelimiter =
      storageRequest.parameters.value("includeTrailingDelimiter")?.lowercased() == "true"
    if let text = storageRequest.parameters.value("maxResults"), !text.isEmpty {
      guard let count = Int(text), count > 0 else { throw .invalid("Invalid value for maxResults: \(text)") }
      listing.countMax = min(count, 1000)
    }
    storageRequest.work { [listing] () throws(FilesError) in
      let page = try storageRequest.store.list(listing)
      if page.objects.isEmpty, page.prefixes.isEmpty, try storageRequest.store.bucket(bucket) == nil {
        throw .noSuchBucket(bucket)
      }
      return page
    } then: {
      send($0)
    }
  }

  private func send(_ page: ObjectPage) {
    storageRequest.send { json in
      json.member("kind", "storage#objects")
      json.member("nextPageToken", page.nextPageToken)
      if !page.prefixes.isEmpty {
        json.key("prefixes")
        json.beginArray()
        for prefix in page.prefixes { json.string(prefix) }
        json.endArray()
      }
      if !page.objects.isEmpty {
        json.key("items")
        json.beginArray()
        for object in page.objects { json.appendCloudObject(object, origin: storageRequest.origin) }
        json.endArray()
      }
    }
  }

  // MARK: - One object

  private func handleObject(_ parts: [String], _ request: borrowing HTTPRequest) throws(FilesError) {
    let action = parts.count > 3 ? parts[3] : nil
    if action == "acl" || action == "iam" { return try handleAccess(request) }
    if request.method == .post {
      let name = try ObjectName(checking: parts[0], parts[2])
      if action == "compose", parts.count == 4 { return try compose(name, request) }
      if action == "moveTo", parts.count == 6, parts[4] == "o" {
        return try move(name, to: try ObjectName(checking: parts[0], parts[5]))
      }
      if action == "copyTo" || action == "rewriteTo", parts.count == 8, parts[4] == "b", parts[6] == "o" {
        let target = try ObjectName(checking: parts[5], parts[7])
        return try copy(name, to: target, request, isRewrite: action == "rewriteTo")
      }
      return storageRequest.failUnknown()
    }
    // Some clients do not encode slashes, so join the segments.
    let name = try ObjectName(checking: parts[0], parts[2...].joined(separator: "/"))
    let generation = try number("generation")
    switch request.method {
    case .get, .head: try get(name, generation, request)
    case .patch, .put: try change(name, generation, request)
    case .delete:
      let conditions = try ObjectConditions(storageRequest.parameters, request)
      storageRequest.work { () throws(FilesError) in
        try storageRequest.store.delete(name, generation: generation, conditions: conditions)
      } then: {
        storageRequest.sendEmpty(204)
      }
    case .post, .options, .other: storageRequest.failUnknown()
    }
  }

  private func get(_ name: ObjectName, _ generation: Int64?, _ request: borrowing HTTPRequest) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    if storageRequest.parameters.value("alt") == "media" {
      guard let found = try storageRequest.store.open(name, generation: generation) else {
        try conditions.check(nil, isRead: true)
        throw .noSuchObject(name)
      }
      return ObjectDownload(storageRequest, request).send(found, conditions)
    }
    guard let object = try storageRequest.store.object(name, generation: generation) else {
      throw .noSuchObject(name)
    }
    try conditions.check(object, isRead: true)
    send(object)
  }

  private func change(_ name: ObjectName, _ generation: Int64?, _ request: borrowing HTTPRequest) throws(FilesError) {
    let change = try AttributesReader(request.body)
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    let replaces = request.method == .put
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.update(name, generation: generation, conditions: conditions) {
        (attributes) throws(FilesError) in
        if replaces {
          var fresh = ObjectAttributes()
          fresh.storageClass = attributes.storageClass
          attributes = fresh
        }
        change.apply(to: &attributes, keepsTokens: false)
      }
    } then: {
      send($0)
    }
  }

  private func copy(
    _ source: ObjectName, to target: ObjectName, _ request: borrowing HTTPRequest, isRewrite: Bool
  ) throws(FilesError) {
    let change = try AttributesReader(request.body)
    let generation = try number("sourceGeneration")
    let conditions = try ObjectConditions(storageRequest.parameters)
    let sourceConditions = try sourceConditions()
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.copy(
        source, generation: generation, sourceConditions: sourceConditions, to: target, conditions: conditions
      ) { (attributes) throws(FilesError) in
        // If the request contains custom metadata, they replace those of the source, including download tokens.
        if change.hasMetadata { attributes.metadata = CustomMetadata() }
        change.apply(to: &attributes, keepsTokens: false)
      }
    } then: { object in
      guard isRewrite else { return send(object) }
      storageRequest.send { json in
        json.member("kind", "storage#rewriteResponse")
        json.key("totalBytesRewritten")
        json.int64(Int64(object.content.size))
        json.key("objectSize")
        json.int64(Int64(object.content.size))
        json.key("done")
        json.bool(true)
        json.key("resource")
        json.appendCloudObject(object, origin: storageRequest.origin)
      }
    }
  }

  private func move(_ source: ObjectName, to target: ObjectName) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    let sourceConditions = try sourceConditions()
    storageRequest.work { () throws(FilesError) in
      try storageRequest.store.move(source, sourceConditions: sourceConditions, to: target, conditions: conditions)
    } then: {
      send($0)
    }
  }

  private func sourceConditions() throws(FilesError) -> ObjectConditions {
    var conditions = ObjectConditions()
    conditions.generationMatch = try number("ifSourceGenerationMatch")
    conditions.generationNotMatch = try number("ifSourceGenerationNotMatch")
    conditions.metagenerationMatch = try number("ifSourceMetagenerationMatch")
    conditions.metagenerationNotMatch = try number("ifSourceMetagenerationNotMatch")
    return conditions
  }

  private func compose(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let composition = try Composition(request.body)
    let conditions = try ObjectConditions(storageRequest.parameters)
    var attributes = ObjectAttributes()
    composition.destination?.apply(to: &attributes, keepsTokens: false)
    storageRequest.work { [attributes] () throws(FilesError) in
      try storageRequest.store.compose(
        composition.parts, to: name, attributes, conditions: conditions, removesParts: composition.removesParts)
    } then: {
      send($0)
    }
  }

  // MARK: - Helpers

  /// Responds with an object, and with the outcome of the documents that were committed with it.
  func send(_ object: StoredObject, _ outcome: CommitOutcome? = nil) {
    var json = JSONWriter(.compact)
    json.appendCloudObject(object, origin: storageRequest.origin, outcome)
    storageRequest.sendBody(json.finish(), type: "application/json; charset=UTF-8", status: 200) {
      $0.add("ETag", object.etag)
    }
  }

  /// A query parameter as a number, or `nil` if it is missing.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if it is not a number.
  func number(_ name: StaticString) throws(FilesError) -> Int64? {
    guard let text = storageRequest.parameters.value(name) else { return nil }
    guard let number = Int64(text) else { throw .invalid("Invalid value for \(name): \(text)") }
    return number
  }

  /// Encodes a name as one segment of a path.
  static func encoded(_ name: String) -> String { PercentEncoding.encode(name.utf8) }

  /// The body of a compose request.
  struct Composition: Sendable {
    var parts: [ComposedPart] = []
    var destination: AttributesReader?
    var removesParts = false

    init(_ body: UnsafeRawBufferPointer) throws(FilesError) {
      var composition = Self()
      var failure: FilesError?
      do throws(WireError) {
        try JSONDocument().withParsed(body, isPadded: true) { (root) throws(WireError) in
          do throws(FilesError) { try composition.read(root) } catch { failure = error }
        }
      } catch { throw .invalid(error.description) }
      if let failure { throw failure }
      self = composition
    }

    private init() {}

    private mutating func read(_ root: JSONValue) throws(FilesError) {
      guard case .object(var members) = root.kind else { throw .invalid("The body must be a JSON object.") }
      while let (member, value) = members.next() {
        switch member {
        case "destination": destination = try AttributesReader(value)
        case "deleteSourceObjects": if case .boolean(let flag) = value.kind { removesParts = flag }
        case "sourceObjects":
          guard case .array(var elements) = value.kind else { throw .invalid("sourceObjects must be an array.") }
          while let element = elements.next() { parts.append(try Self.part(element)) }
        default: break
        }
      }
    }

    private static func part(_ value: JSONValue) throws(FilesError) -> ComposedPart {
      guard case .object(var members) = value.kind else { throw .invalid("A source must be an object.") }
      var part = ComposedPart(name: "")
      while let (member, value) = members.next() {
        switch (member, value.kind) {
        case ("name", .string(let text)): part.name = String(decoding: text, as: UTF8.self)
        case ("generation", _): part.generation = try number(value)
        case ("objectPreconditions", .object(var conditions)):
          while let (condition, value) = conditions.next() {
            if case "ifGenerationMatch" = condition { part.generationMatch = try number(value) }
          }
        default: break
        }
      }
      return part
    }

    /// Reads a number, which clients also send as a string; returns `nil` for `null`. Anything else is an error:
    /// ignoring it would drop a precondition.
    private static func number(_ value: JSONValue) throws(FilesError) -> Int64? {
      switch value.kind {
      case .null: return nil
      case .integer(let number): return number
      case .string(let text):
        if let number = Int64(String(decoding: text, as: UTF8.self)) { return number }
      default: break
      }
      throw .invalid("The generation of a source must be a number.")
    }
  }
}
