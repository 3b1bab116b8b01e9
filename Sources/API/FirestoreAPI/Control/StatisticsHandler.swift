import Accounts
import Basics
import DatabaseService
import DocumentModel
import FileService
import Files
import GatewayCore
import Transport
import WireFormat

/// Reports the sizes of the open databases, of the accounts and of the files to administrators.
///
/// - `GET /hearth/v1/stats`: the sizes of each, and the state of the declared indexes.
/// - `GET /hearth/v1/stats?collections=pattern` (or `group`, or `path`): the bytes of each collection of the open
///   databases. `below` is a path, `depth` the number of levels with rows of their own, and `project` and `database`
///   choose one database.
struct StatisticsHandler: Sendable {
  let service: FirestoreService
  let files: StorageService?
  let accounts: AccountStore?

  /// Sends the statistics. They are counted on a background thread.
  /// - Throws: `PERMISSION_DENIED` if the caller is not an administrator; `INVALID_ARGUMENT` if a parameter is invalid.
  func send(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let administrator = try service.administrator(call.caller)
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    guard parameters.value("collections") == nil else { return try sendCollections(parameters, administrator, call) }
    let responder = call.responder
    let quotas = service.quotas.all.filter { $0.limit != nil }
    service.statistics(as: administrator) { [files, accounts] result in
      // This closure does not run on the loop, so it may count files and accounts.
      let files = try? files?.statistics(as: administrator)
      let accounts = accounts.flatMap { try? AccountsStatistics(project: $0.project.id, $0.store) }
      EmulatorHandler.send(result, responder) { databases, json in
        json.key("databases")
        json.beginArray()
        for database in databases { json.append(database) }
        json.endArray()
        if let accounts { json.append(accounts) }
        if let files { json.append(files) }
        json.append(quotas)
      }
    }
  }

  private func sendCollections(
    _ parameters: QueryParameters, _ administrator: Administrator, _ call: RoutedCall
  ) throws {
    try parameters.allowOnly("collections", "below", "depth", "project", "database")
    guard let grouping = CollectionChoice.Grouping(rawValue: parameters.value("collections") ?? "") else {
      throw Status(.invalidArgument, "The parameter `collections` must be pattern, group or path.")
    }
    let depth = try parameters.int32("depth")
    if let depth, depth < 1 { throw Status(.invalidArgument, "The parameter `depth` must be at least 1.") }
    var choice = CollectionChoice(grouping, depth: depth)
    if let path = parameters.value("below"), !path.isEmpty { choice.root = try ResourcePath(path) }
    var database: DatabaseID?
    if let project = parameters.value("project") {
      let name = parameters.value("database") ?? DatabaseID.defaultDatabase
      database = DatabaseID(project: project, database: name)
      guard database != nil else { throw Status(.invalidArgument, "No database can have this name.") }
    }
    let responder = call.responder
    service.collectionUse(choice, in: database, as: administrator) { result in
      EmulatorHandler.send(result, responder) { databases, json in
        json.key("databases")
        json.beginArray()
        for database in databases { json.append(database) }
        json.endArray()
      }
    }
  }
}

extension JSONWriter {
  /// Appends the statistics of a database as an object.
  fileprivate mutating func append(_ statistics: DatabaseStatistics) {
    beginObject()
    append(statistics.id)
    for (column, value) in zip(DatabaseStatistics.columns, statistics.values) {
      key(column.name)
      number(value)
    }
    if !statistics.indexes.isEmpty { append(statistics.indexes) }
    endObject()
  }

  /// Appends the quotas that are set, as a member.
  fileprivate mutating func append(_ quotas: [Quota]) {
    guard !quotas.isEmpty else { return }
    key("quotas")
    beginArray()
    for quota in quotas {
      beginObject()
      key("quota")
      string(quota.kind.rawValue)
      key("limit")
      number(quota.limit ?? .max)
      if quota.kind != .requests {
        key("used")
        number(quota.used)
      }
      endObject()
    }
    endArray()
  }

  private mutating func append(_ id: DatabaseID) {
    key("project")
    string(id.project)
    key("database")
    string(id.database)
  }

  /// Appends the use of storage by the collections of a database as an object.
  fileprivate mutating func append(_ database: DatabaseCollections) {
    beginObject()
    append(database.id)
    key("collections")
    beginArray()
    for (name, use) in database.rows {
      beginObject()
      key("collection")
      string(name)
      append(use)
      endObject()
    }
    endArray()
    if database.others != CollectionUse() {
      key("others")
      beginObject()
      append(database.others)
      endObject()
    }
    endObject()
  }

  private mutating func append(_ use: CollectionUse) {
    for (column, value) in zip(CollectionUse.columns, use.values) {
      key(column.name)
      number(value)
    }
  }

  /// Appends the statistics of accounts as a member.
  fileprivate mutating func append(_ accounts: AccountsStatistics) {
    key("accounts")
    beginArray()
    beginObject()
    key("project")
    string(accounts.project)
    key("accounts")
    number(accounts.accounts)
    key("usedBytes")
    number(accounts.usedBytes)
    endObject()
    endArray()
  }

  /// Appends the statistics of files as a member.
  fileprivate mutating func append(_ files: FilesStatistics) {
    key("files")
    beginObject()
    for (name, value) in zip(FilesStatistics.columns, files.values) {
      key(name)
      number(value)
    }
    endObject()
  }
}
