package import DocumentModel
import RulesEngine
import WireFormat

/// The stored documents of a case, by path.
package struct TestDocuments: Sendable {
  /// Changes of single documents: the fields, or `nil` if the document does not exist.
  package typealias Changes = [ResourcePath: EncodedFields?]

  private var fields: [ResourcePath: EncodedFields] = [:]
  private var changes: Changes = [:]

  /// No documents.
  package init() {}

  /// The fields of a document, or `nil` if it does not exist.
  package subscript(_ path: ResourcePath) -> EncodedFields? {
    get { changes.isEmpty ? fields[path] : changes[path] ?? fields[path] }
    set {
      fields[path] = newValue
      changes[path] = nil
    }
  }

  /// The number of documents, without those of ``changed(by:)``.
  package var count: Int { fields.count }

  /// Returns the documents with changes. Cost: O(1).
  package func changed(by changes: Changes) -> TestDocuments {
    var changed = self
    changed.changes = changes
    return changed
  }
}

/// The mocked lookups of a hosted test.
package struct LookupMocks: Sendable {
  /// The documents that a mock applies to.
  package enum Argument: Sendable {
    case any
    /// The path below the documents root.
    case path([UInt8])
  }

  /// The result of a mocked lookup.
  package enum Result: Sendable {
    case document(EncodedFields)
    case missing
    /// The lookup fails.
    case undefined
  }

  /// The mocks. The first with a matching argument applies.
  package var entries: [(argument: Argument, result: Result)] = []

  /// No mocks: every lookup fails.
  package init() {}
}

/// The documents before and after a case.
final class CaseLookup: DocumentLookup {
  private let documents: TestDocuments
  /// The documents that the case writes; `nil` for those that it deletes.
  var after: [ResourcePath: EncodedFields?] = [:]
  var mocks: LookupMocks?

  init(_ documents: TestDocuments) { self.documents = documents }

  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome {
    if let mocks { return mocked(path, isAfter: isAfter, mocks, body) }
    let path = ResourcePath(uncheckedBytes: Array(path))
    var found = documents[path]
    if isAfter, let change = after[path] {
      guard let change else { return found == nil ? .missing : .deleted }
      found = change
    }
    guard let found else { return .missing }
    found.bytes.withUnsafeBytes(body)
    return .found
  }

  private func mocked(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ mocks: LookupMocks, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome {
    // The hosted service cannot mock getAfter and existsAfter.
    guard !isAfter else { return .unavailable }
    let entry = mocks.entries.first { entry in
      switch entry.argument {
      case .any: true
      case .path(let bytes): path.elementsEqual(bytes)
      }
    }
    switch entry?.result {
    case .document(let fields)?:
      fields.bytes.withUnsafeBytes(body)
      return .found
    case .missing?: return .missing
    case .undefined?, nil: return .unavailable
    }
  }
}
