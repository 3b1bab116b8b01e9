import DatabaseService
import DocumentModel
import Transport

/// The custom verbs of `google.firestore.v1.Firestore` over REST (firestore-api.md, section 1.1).
enum RESTVerb: String {
  case batchGet, beginTransaction, commit, rollback, batchWrite, listCollectionIds
  case runQuery, runAggregationQuery, partitionQuery, executePipeline, listen, write
  /// The feed of a whole database, an extension of Hearth.
  case changes

  /// Whether a method allows the verb. Browsers open feeds with GET.
  fileprivate func works(with method: HTTPMethod) -> Bool {
    switch method {
    case .get: self == .listen || self == .changes
    case .post: self != .changes
    default: false
    }
  }
}

/// The target of a URL under `/v1/`: a database, a path from its documents root, and possibly a verb.
struct RESTRoute {
  let database: DatabaseID
  /// The segments after `documents`, joined by `/`, not checked yet.
  let path: [UInt8]
  /// The number of segments in the path.
  let segmentCount: Int
  let verb: RESTVerb?

  /// Parses a path after `/v1/`. Returns `nil` if the path has none of the service's forms.
  ///
  /// The text after the last `:` is a verb only if it is one that the method allows. Document IDs may contain `:`;
  /// clients write it as `%3A` if the ID ends like a verb. Segments are decoded after the path was split at `/`.
  ///
  /// - Throws: ``Status`` if the percent-encoding is malformed, ``ModelError`` if an ID contains an encoded `/`.
  init?(_ path: UnsafeRawBufferPointer, of method: HTTPMethod) throws {
    var segments = Segments(path)
    guard try segments.next()?.elementsEqual("projects".utf8) == true, let project = try segments.next(),
      try segments.next()?.elementsEqual("databases".utf8) == true, let database = try segments.next()
    else { return nil }
    let projectText = String(decoding: project, as: UTF8.self)
    let databaseText = String(decoding: database, as: UTF8.self)
    guard let last = segments.peekLast() else { return nil }
    let verb = Self.verb(last, of: method, isDocumentsRoot: segments.isLast)
    if let verb { segments.dropSuffix(verb.rawValue.utf8.count + 1) }
    guard try segments.next()?.elementsEqual("documents".utf8) == true else { return nil }
    guard let id = DatabaseID(project: projectText, database: databaseText) else {
      throw ModelError.invalidDatabaseID("\(projectText)/\(databaseText)")
    }
    var joined: [UInt8] = []
    joined.reserveCapacity(path.count)
    var count = 0
    while let segment = try segments.next() {
      if segment.contains(UInt8(ascii: "/")) {
        throw ModelError.slashInResourceID(String(decoding: segment, as: UTF8.self))
      }
      if count > 0 { joined.append(UInt8(ascii: "/")) }
      joined.append(contentsOf: segment)
      count += 1
    }
    self.database = id
    self.path = joined
    segmentCount = count
    self.verb = verb
  }

  private static func verb(
    _ segment: UnsafeRawBufferPointer, of method: HTTPMethod, isDocumentsRoot: Bool
  ) -> RESTVerb? {
    guard let colon = segment.lastIndex(of: UInt8(ascii: ":")),
      let verb = RESTVerb(rawValue: String(decoding: segment[(colon + 1)...], as: UTF8.self)), verb.works(with: method),
      isDocumentsRoot || verb != .changes
    else { return nil }
    return verb
  }

  /// Returns the document that the path names.
  ///
  /// - Throws: ``ModelError`` with the documented text if the path does not name a document.
  func documentKey() throws -> DocumentKey {
    guard let key = DocumentKey(try ResourcePath(checking: path)) else {
      let name = name
      throw ModelError.nameLacksSlash(name: name, index: name.utf8.count, isParent: false)
    }
    return key
  }

  /// Returns the root or document that the path names, for methods with a parent.
  ///
  /// - Throws: ``ModelError`` if the path does not name one.
  func parent() throws -> ResourcePath {
    let path = try ResourcePath(checking: self.path)
    guard !path.isCollection else {
      let name = name
      throw ModelError.nameLacksSlash(name: name, index: name.utf8.count, isParent: true)
    }
    return path
  }

  /// Returns the collection that the path names.
  ///
  /// - Throws: ``ModelError`` if the path does not name a collection.
  func collection() throws -> ResourcePath {
    let path = try ResourcePath(checking: self.path)
    guard path.isCollection else {
      let parent = ResourceName(database: database, path: path.parent).text
      throw ModelError.nameLacksSlash(name: parent, index: parent.utf8.count, isParent: true)
    }
    return path
  }

  private var name: String {
    path.isEmpty
      ? database.documentsRoot : database.documentsRoot + "/" + String(decoding: path, as: UTF8.self)
  }
}

/// An iterator over the segments of a URL's path. It decodes each segment.
private struct Segments {
  private var rest: UnsafeRawBufferPointer?

  init(_ path: UnsafeRawBufferPointer) { rest = path }

  /// Whether only one segment is left.
  var isLast: Bool { rest.map { !$0.contains(UInt8(ascii: "/")) } ?? false }

  func peekLast() -> UnsafeRawBufferPointer? {
    guard let rest else { return nil }
    let start = rest.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    return UnsafeRawBufferPointer(rebasing: rest[start...])
  }

  mutating func dropSuffix(_ count: Int) {
    if let bytes = rest { rest = UnsafeRawBufferPointer(rebasing: bytes.dropLast(count)) }
  }

  mutating func next() throws -> [UInt8]? {
    guard let bytes = rest else { return nil }
    let segment: UnsafeRawBufferPointer
    if let slash = bytes.firstIndex(of: UInt8(ascii: "/")) {
      segment = UnsafeRawBufferPointer(rebasing: bytes[..<slash])
      rest = UnsafeRawBufferPointer(rebasing: bytes[(slash + 1)...])
    } else {
      segment = bytes
      rest = nil
    }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(segment.count)
    guard PercentEncoding.decode(segment, into: &decoded), PercentEncoding.isUTF8(decoded) else {
      throw Status(.invalidArgument, "Malformed percent-encoding in the path of the URL.")
    }
    return decoded
  }
}
