import DocumentModel
import FixtureTree
import Glibc

/// Copies the documents of a running server to this machine over several connections: of a Hearth server, the official
/// emulator, or Cloud Firestore.
///
/// The documents go into parts first, so that an export that breaks off can be resumed, and because a fixture tree
/// begins with the names of all collections. If the server allows it, all parts show one moment.
struct ServerExport {
  /// The options of the export.
  static let options: [Command.Option] = [
    ConnectedWork.option,
    .value(
      "read-time", "TIME",
      "with --server, the moment to show, such as 2026-11-22T10:00:00Z, or none (default: the start)"),
  ]

  /// The number of documents in a request. An interrupted part loses at most one page.
  private static let pageDocuments = 500
  /// The number of parts for each connection, so that all connections are busy until the end.
  private static let partsPerConnection = 8
  /// The file of the document at the path of the export.
  private static let documentPart = "document"

  private let server: ServerClient.Place
  private let root: ResourcePath
  private let directory: PartsDirectory
  private let connections: Int
  /// The moment to show; `nil` for the start of the export.
  private let readTime: Timestamp?
  private let isAtOneMoment: Bool
  private let isQuiet: Bool

  /// Prepares an export of a path and everything below it. `output` is the file that will contain the result; an
  /// interrupted export to the same file continues.
  /// - Throws: ``CommandFailure`` if an option is invalid or the directory for the parts cannot be used.
  init(_ arguments: Arguments, below root: ResourcePath, output: String?, isQuiet: Bool) throws {
    server = try ServerClient(arguments).place
    self.root = root
    self.isQuiet = isQuiet
    connections = try ConnectedWork.connections(arguments)
    let time = arguments.value("read-time")
    isAtOneMoment = time != "none"
    readTime = time.flatMap { Timestamp(rfc3339: $0.utf8) }
    if let time, isAtOneMoment, readTime == nil {
      throw arguments.refusal(of: "read-time", time, "must be a time such as 2026-11-22T10:00:00Z, or none")
    }
    directory = try PartsDirectory(of: output)
  }

  /// The database of the documents.
  var database: DatabaseID { server.database }

  /// Copies the documents into parts. `show` receives the progress as a text.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a request fails permanently.
  func download(_ show: (String) -> Void) throws {
    let plan = try plan(Retries(tries: Retries.triesMax))
    let started = Progress.now()
    var already: Int?
    do {
      try ConnectedWork.run(
        plan.ranges.count, connections: connections, connect: { [server] in ServerClient(server) },
        show: { progress in
          let count = progress.count
          if already == nil { already = count }
          show(Self.text(count, of: plan.count, new: count - (already ?? 0), Progress.now() - started))
        },
        { [directory = directory.path] part, client, retries, progress in
          try Self.copy(
            plan.ranges[part], to: "\(directory)/\(part).part", at: plan.readTime, client, retries, progress)
        })
    } catch {
      if directory.isLasting, !isQuiet {
        Terminal.error.write(
          "hearth: the copied documents are in \(directory.path); the same command continues there\n")
      }
      throw Self.explained(error, plan, directory.path)
    }
  }

  /// Passes the downloaded documents to `body` in name order.
  /// - Throws: ``CommandFailure`` if a part cannot be read, or the error of `body`.
  func forEach(_ body: (DocumentKey, EncodedFields) throws -> Void) throws {
    let names = [Self.documentPart] + (try directory.plan()?.ranges.indices.map(String.init) ?? [])
    for name in names { _ = try DocumentPart.read(directory.part(name), body) }
  }

  /// Returns the patterns of the collections of the downloaded documents.
  /// - Throws: ``CommandFailure`` if a part cannot be read.
  func patterns() throws -> [String] {
    var collections: [[UInt8]: ResourcePath] = [:]
    var lastNoted: ResourcePath?
    func note(_ collection: ResourcePath) {
      guard collection != lastNoted else { return }
      lastNoted = collection
      var path = collection
      while collections.updateValue(path, forKey: Array(CollectionShape.pattern(of: path).utf8)) == nil,
        path.segmentCount > 2
      {
        path = path.parent.parent
      }
    }
    if let key = DocumentKey(root) { note(key.collection) }
    try forEach { key, _ in note(key.collection) }
    return CollectionShape.patterns(of: collections.values)
  }

  /// Removes the parts.
  func finish() { directory.remove() }

  // MARK: The plan

  /// Returns the plan of the interrupted export, or makes one.
  private func plan(_ retries: Retries) throws -> ExportPlan {
    // Its connection closes with the plan.
    let client = ServerClient(server)
    let source = ExportPlan.Source(server: client.address, database: database, path: root.text)
    if let plan = try directory.plan() {
      let moment = plan.readTime.map { ", as of \($0)" } ?? ""
      guard plan.source == source, readTime == nil || readTime == plan.readTime else {
        throw CommandFailure.failed(
          "\(directory.path) contains an unfinished export of \(plan.source.database.name) from \(plan.source.server)"
            + "\(plan.source.path.isEmpty ? "" : ", path \(plan.source.path)")\(moment); repeat that command to continue "
            + "it, or remove the directory")
      }
      if !isQuiet { Terminal.error.write("hearth: continuing the export in \(directory.path)\(moment)\n") }
      return plan
    }
    let (time, collections) = try retries.run { _ in try moment(client) }
    if let key = DocumentKey(root) {
      let writer = try DocumentPart.Writer(directory.part(Self.documentPart), after: DocumentPart.Contents())
      if let document = try retries.run({ _ in try client.get(key, at: time) }) {
        try writer.append(key, document.fields)
      }
      try writer.finish()
    }
    let ranges = try retries.run { _ in try self.ranges(of: collections, at: time, client) }
    var plan = ExportPlan(source: source, readTime: time, count: nil, ranges: ranges)
    if !isQuiet, Terminal.error.isTerminal {
      let counts = collections.map { client.count(.all(of: $0), at: time) }
      if !counts.contains(nil) { plan.count = counts.reduce(0) { $0 + ($1 ?? 0) } }
    }
    try directory.store(plan)
    return plan
  }

  /// Returns the moment to show and the collections at that moment.
  private func moment(_ client: ServerClient) throws -> (Timestamp?, [ResourcePath]) {
    func collections(at time: Timestamp?) throws -> [ResourcePath] {
      if root.isCollection { return [root] }
      return try client.collectionIDs(below: root, at: time).map { root.appending($0) }.sorted()
    }
    guard isAtOneMoment else { return (nil, try collections(at: nil)) }
    guard let time = try readTime ?? client.readTimeNow() else { return (nil, try collections(at: nil)) }
    do { return (time, try collections(at: time)) } catch let failure as CommandFailure
      where failure.httpStatus == 400 && readTime == nil
    {
      if !isQuiet {
        Terminal.error.write("hearth: \(client.address) cannot read at one moment; stop writes during the export\n")
      }
      return (nil, try collections(at: nil))
    }
  }

  /// Returns the parts: one for each collection, or more if the server knows names that divide it.
  private func ranges(
    of collections: [ResourcePath], at time: Timestamp?, _ client: ServerClient
  ) throws -> [NameInterval] {
    guard connections > 1, let first = collections.first, first.segmentCount == 1 else {
      return collections.map { .all(of: $0) }
    }
    let ids = collections.map(\.text)
    var groups = Set(ids)
    // Documents often have the same subcollections, so the first document shows which to divide.
    for collection in collections {
      guard
        let key = try client.list(collection, pageSize: 1, showMissing: true, withFields: false).documents.first?.key
      else { continue }
      groups.formUnion(try client.collectionIDs(below: key.path, at: time))
    }
    var cuts: [String: Set<DocumentKey>] = [:]
    for group in groups.sorted() {
      for cut in try client.cuts(ofGroup: group, countMax: connections * Self.partsPerConnection, at: time) {
        let id = cut.path.text.utf8.prefix { $0 != UInt8(ascii: "/") }
        cuts[String(decoding: id, as: UTF8.self), default: []].insert(cut)
      }
    }
    return zip(collections, ids).flatMap { collection, id in
      NameInterval.all(of: collection).split(at: (cuts[id] ?? []).sorted())
    }
  }

  // MARK: The parts

  private static func copy(
    _ range: NameInterval, to path: String, at time: Timestamp?, _ client: ServerClient, _ retries: Retries,
    _ progress: ConnectedWork.Progress
  ) throws {
    let contents = try DocumentPart.read(path) { _, _ in }
    progress.add(contents.documents)
    if contents.isComplete { return }
    let writer = try DocumentPart.Writer(path, after: contents)
    var bytes = 0
    var count = pageDocuments
    do {
      while count == pageDocuments {
        if progress.isStopped { return try writer.flush() }
        count = try retries.run(at: { bytes }) { _ in
          try client.scan(range, after: writer.last, limit: pageDocuments, at: time) { document in
            if let last = writer.last, !(last < document.key) {
              throw CommandFailure.failed("\(client.address) does not respond in name order: \(document.key)")
            }
            try writer.append(document.key, document.fields)
            bytes += document.fields.bytes.count
            progress.add(1)
          }
        }
        try writer.flush()
      }
    } catch {
      try? writer.flush()
      throw error
    }
    try writer.finish()
  }

  /// Returns an error that says what to do if the moment of the export is no longer readable.
  private static func explained(_ error: any Error, _ plan: ExportPlan, _ directory: String) -> any Error {
    guard let time = plan.readTime, let failure = error as? CommandFailure, failure.httpStatus == 400,
      failure.message.contains("FAILED_PRECONDITION") || failure.message.contains("read_time")
    else { return error }
    return CommandFailure.failed(
      "\(failure.message)\nthe server no longer knows the state of \(time); remove \(directory) and export again, with "
        + "--read-time none, or with point-in-time recovery enabled and --read-time set to a whole minute")
  }

  private static func text(_ count: Int, of total: Int?, new: Int, _ milliseconds: Int64) -> String {
    let total = total.map { max($0, count) }
    let share = total.map { " of \(ProgressText.number($0))" } ?? ""
    let fraction = total.map { $0 > 0 ? Double(count) / Double($0) : 1 }
    // The documents of an earlier attempt are done, but say nothing about the speed.
    let portion = count > 0 ? Double(new) / Double(count) : 1
    return "\(ProgressText.number(count))\(share) documents exported"
      + ProgressText.speed(new, fraction: fraction, milliseconds: Int(milliseconds), portion: portion)
  }
}
