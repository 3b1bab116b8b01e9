import DocumentModel
import DocumentStore
import KeyValue
import QueryEngine

/// Reports documents by name, as they were at a version: those of a target, or of a window.
final class DocumentsCatchUp: CatchUpStrategy {
  private let keys: [DocumentKey]
  /// Documents that have not changed since this version are omitted.
  private let origin: Int64?
  private let version: Int64
  /// Whether documents that do not exist are reported.
  private let reportsMissing: Bool
  private var next = 0

  /// Reports the documents that have changed since a version, and all documents that do not exist.
  init(_ keys: [DocumentKey], since origin: Int64?, at version: Int64) {
    self.keys = keys
    self.origin = origin
    self.version = version
    reportsMissing = true
  }

  /// Reports the documents of a window.
  init(documents: [ResourcePath], at version: Int64) {
    keys = documents.map(DocumentKey.init(uncheckedPath:))
    origin = nil
    self.version = version
    reportsMissing = false
  }

  func slice(_ reader: inout SnapshotReader, _ emit: CatchUp.Emit) throws -> CatchUp.Progress {
    var left = 64
    while next < keys.count {
      guard left > 0 else { return .paused }
      left -= 1
      let key = keys[next]
      next += 1
      var wantsMore = true
      if let document = try reader.document(key, at: version) {
        if let origin, document.updateVersion <= origin { continue }
        wantsMore = try emit(key, .modified(document))
      } else if reportsMissing {
        wantsMore = try emit(key, .deleted)
      }
      guard wantsMore else { break }
    }
    return next == keys.count ? .done : .paused
  }
}

/// Reports all results of a query at a version.
final class FullResultCatchUp: CatchUpStrategy {
  private let execution: QueryExecution

  init(
    _ query: WatchedQuery, _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions
  ) throws {
    execution = try QueryExecution(query.resolved, snapshot, at: version, options)
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { execution.wait(wake) }

  func slice(_ reader: inout SnapshotReader, _ emit: CatchUp.Emit) throws -> CatchUp.Progress {
    try execution.slice(reader.snapshot, units: QueryExecution.sliceUnits) { key, document in
      try emit(key, .modified(document))
    }
    return execution.isAtEnd ? .done : .paused
  }
}

/// Reports the difference between the windows of a query at two versions.
final class WindowCatchUp: CatchUpStrategy {
  private let query: WatchedQuery
  private let origin: Int64
  private let plan: CatchUp.Plan
  private let documents: [ResourcePath]
  private let execution: QueryExecution
  private var before: Set<ResourcePath> = []
  private var left: [ResourcePath]?
  private var nextLeft = 0
  private var nextDocument = 0

  init(
    _ query: WatchedQuery, _ snapshot: any KeyValueSnapshot, from origin: Int64, to documents: [ResourcePath],
    _ plan: CatchUp.Plan, _ options: PlanOptions
  ) throws {
    self.query = query
    self.origin = origin
    self.plan = plan
    self.documents = documents
    execution = try QueryExecution(query.resolved, snapshot, at: origin, options)
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { execution.wait(wake) }

  func slice(_ reader: inout SnapshotReader, _ emit: CatchUp.Emit) throws -> CatchUp.Progress {
    guard try reader.isReadable(at: origin) else { return .reset }
    guard let left else {
      try execution.slice(reader.snapshot, units: QueryExecution.sliceUnits) { key, _ in
        // The key's memory is reused for the next result.
        before.insert(ResourcePath(uncheckedBytes: key.path.bytes.map { $0 }))
        return true
      }
      guard execution.isAtEnd else { return .paused }
      if let count = plan.expectedCount, count != before.count { return .reset }
      left = Array(before.subtracting(documents))
      return .paused
    }
    while nextLeft < left.count {
      let key = DocumentKey(uncheckedPath: left[nextLeft])
      nextLeft += 1
      guard try emit(key, try removal(of: key, &reader)) else { return .paused }
    }
    while nextDocument < documents.count {
      let key = DocumentKey(uncheckedPath: documents[nextDocument])
      nextDocument += 1
      guard let document = try reader.document(key, at: plan.version) else { continue }
      if document.updateVersion <= origin, before.contains(key.path) { continue }
      guard try emit(key, .modified(document)) else { return .paused }
    }
    return .done
  }

  private func removal(of key: DocumentKey, _ reader: inout SnapshotReader) throws -> DocumentChange<StoredDocument> {
    guard let document = try reader.document(key, at: plan.version) else { return .deleted }
    return .removed(try query.canReturn(key, document) ? nil : document)
  }
}
