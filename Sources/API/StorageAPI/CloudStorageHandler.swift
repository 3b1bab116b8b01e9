import DatabaseService
import DocumentModel
import Files
import FileService
import GatewayCore
import Transport
import WireFormat

/// Handles one request of Cloud Storage's JSON API; see ``CloudStorageAPI``.
struct CloudStorageHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

  /// Accepts requests for access lists and ignores them: rules and administrators decide.
  func handleAccess(_ request: borrowing HTTPRequest) {
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

  /// Lists the objects of a bucket.
  ///
  /// - Throws: ``FilesError`` if the request is malformed.
  func list(_ bucket: String) throws(FilesError) {
    guard ObjectName.isBucket(bucket) else { throw .invalidBucket(bucket) }
    var listing = ObjectListing(bucket: bucket)
    listing.requiresBucket = true
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
      try service.listObjects(listing, as: caller)
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

  /// Deletes an object.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func delete(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let generation = try number("generation")
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    storageRequest.work { () throws(FilesError) in
      try service.deleteObject(name, generation: generation, conditions: conditions, as: caller)
    } then: {
      storageRequest.sendEmpty(204)
    }
  }

  /// Responds with an object or its content.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or the object cannot be read.
  func get(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let generation = try number("generation")
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    if storageRequest.parameters.value("alt") == "media" {
      return try ObjectDownload(storageRequest, request).send(conditions) { (waits) throws(FilesError) in
        let found = try service.getContent(name, generation: generation, waits: waits, as: caller)
        if let found { return found }
        try conditions.check(nil, isRead: true)
        throw .noSuchObject(name)
      }
    }
    storageRequest.send(try service.getObject(name, generation: generation, conditions: conditions, as: caller))
  }

  /// Changes the metadata of an object. A `PUT` replaces them.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func change(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let generation = try number("generation")
    let change = try AttributesReader(request.body)
    let conditions = try ObjectConditions(storageRequest.parameters, request)
    let replaces = request.method == .put
    storageRequest.work { () throws(FilesError) in
      try service.patchObject(name, generation: generation, conditions: conditions, as: caller) {
        (attributes) throws(FilesError) in
        if replaces {
          var fresh = ObjectAttributes()
          fresh.storageClass = attributes.storageClass
          attributes = fresh
        }
        change.apply(to: &attributes, keepsTokens: false)
      }
    } then: {
      storageRequest.send($0)
    }
  }

  /// Copies an object.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func copy(
    _ source: ObjectName, to target: ObjectName, _ request: borrowing HTTPRequest, isRewrite: Bool
  ) throws(FilesError) {
    let change = try AttributesReader(request.body)
    var source = CopySource(source, generation: try number("sourceGeneration"))
    let conditions = try ObjectConditions(storageRequest.parameters)
    source.conditions = try sourceConditions()
    storageRequest.work { [source] () throws(FilesError) in
      try service.copyObject(source, to: target, conditions: conditions, as: caller) {
        (attributes) throws(FilesError) in
        // If the request contains custom metadata, they replace those of the source, including download tokens.
        if change.hasMetadata { attributes.metadata = CustomMetadata() }
        change.apply(to: &attributes, keepsTokens: false)
      }
    } then: { object in
      guard isRewrite else { return storageRequest.send(object) }
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

  /// Renames an object.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func move(_ source: ObjectName, to target: ObjectName) throws(FilesError) {
    let conditions = try ObjectConditions(storageRequest.parameters)
    let source = CopySource(source, conditions: try sourceConditions())
    storageRequest.work { () throws(FilesError) in
      try service.moveObject(source, to: target, conditions: conditions, as: caller)
    } then: {
      storageRequest.send($0)
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

  /// Concatenates objects.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  func compose(_ name: ObjectName, _ request: borrowing HTTPRequest) throws(FilesError) {
    let composition = try Composition(request.body)
    let conditions = try ObjectConditions(storageRequest.parameters)
    var attributes = ObjectAttributes()
    composition.destination?.apply(to: &attributes, keepsTokens: false)
    storageRequest.work { [attributes] () throws(FilesError) in
      try service.composeObject(
        composition.parts, to: name, attributes, conditions: conditions, removesParts: composition.removesParts,
        as: caller)
    } then: {
      storageRequest.send($0)
    }
  }

  // MARK: - Helpers

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
