import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine

/// The documents at and below a path, one after the other, in name order.
protocol Subtree {
  /// Returns the next document, or `nil` at the end.
  /// - Throws: the errors of the source.
  mutating func next() throws -> ServerClient.Found?
}

/// The documents at and below a path of a server, at one moment or as they are. Memory: one page.
struct ServerSubtree: Subtree {
  private let client: ServerClient
  private let root: ResourcePath
  /// The moment; `nil` for the newest state of each page.
  private let time: Timestamp?
  private let retries = Retries(hasResponded: true)
  private var isStarted = false
  private var ranges: [NameInterval] = []
  private var page: ArraySlice<ServerClient.Found> = []
  private var last: DocumentKey?
  /// The number of documents of the next page, so that a page has about ``pageBytes``.
  private var pageDocuments = 20

  private static let pageBytes = 4 << 20
  private static let pageDocumentsMax = 500

  init(_ client: ServerClient, at root: ResourcePath, time: Timestamp?) {
    (self.client, self.root, self.time) = (client, root, time)
  }

  mutating func next() throws -> ServerClient.Found? {
    if !isStarted { try start() }
    while page.isEmpty {
      guard let range = ranges.first else { return nil }
      try read(range)
    }
    return page.popFirst()
  }

  private mutating func start() throws {
    isStarted = true
    let (client, root, time) = (client, root, time)
    if let key = DocumentKey(root), let document = try retries.run({ _ in try client.get(key, at: time) }) {
      page = [document]
    }
    let collections =
      root.isCollection
      ? [root]
      : try retries.run { _ in try client.collectionIDs(below: root, at: time) }.map { root.appending($0) }.sorted()
    ranges = collections.map { .all(of: $0) }
  }

  private mutating func read(_ range: NameInterval) throws {
    let (client, time, last, limit) = (client, time, last, pageDocuments)
    let found = try retries.run { _ in
      var found: [ServerClient.Found] = []
      _ = try client.scan(range, after: last, limit: limit, at: time) { found.append($0) }
      return found
    }
    page = found[...]
    self.last = found.last?.key
    if found.count < limit {
      ranges.removeFirst()
      self.last = nil
    }
    let bytes = max(1, found.reduce(0) { $0 + $1.fields.bytes.count })
    pageDocuments = max(1, min(Self.pageDocumentsMax, Self.pageBytes * max(1, found.count) / bytes))
  }
}

/// The documents at and below a path of a database file that no server changes, such as that of a backup.
struct StoredSubtree: Subtree {
  private let root: ResourcePath
  private let snapshot: any KeyValueSnapshot
  private var iterator: SubtreeIterator
  private var isStarted = false

  /// Opens a database.
  /// - Throws: `StorageError` if the read fails.
  init(_ store: any KeyValueStore, at root: ResourcePath) throws {
    self.root = root
    snapshot = try store.snapshot()
    iterator = try SubtreeIterator(snapshot, below: root)
  }

  mutating func next() throws -> ServerClient.Found? {
    if !isStarted {
      isStarted = true
      var reader = SnapshotReader(snapshot)
      if let key = DocumentKey(root), let document = try reader.document(key) { return Self.found(key, document) }
    }
    while let step = try iterator.next() {
      if let document = step.document { return Self.found(step.key, document) }
    }
    return nil
  }

  private static func found(_ key: DocumentKey, _ document: StoredDocument) -> ServerClient.Found {
    ServerClient.Found(key: key, fields: EncodedFields(canonical: Array(document.fields)))
  }
}
