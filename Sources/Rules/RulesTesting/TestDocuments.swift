package import DocumentModel
import RulesEngine
import WireFormat

/// The documents that a case finds, by path.
package struct TestDocuments: Sendable {
  private var fields: [ResourcePath: EncodedFields] = [:]

  /// No documents.
  package init() {}

  /// The fields of a document; `nil` where there is none.
  package subscript(_ path: ResourcePath) -> EncodedFields? {
    get { fields[path] }
    set { fields[path] = newValue }
  }

  /// How many there are.
  package var count: Int { fields.count }
}

/// What lookups find that a hosted test mocks.
package struct LookupMocks: Sendable {
  /// What is to be looked up.
  package enum Argument: Sendable {
    case any
    /// The path below the documents root.
    case path([UInt8])
  }

  /// What it finds.
  package enum Result: Sendable {
    case document(EncodedFields)
    case missing
    /// The lookup fails.
    case undefined
  }

  /// Argument and result; the first that fits counts.
  package var entries: [(argument: Argument, result: Result)] = []

  /// Mocks nothing: then every lookup fails.
  package init() {}
}

/// One state before a case and one after it.
final class CaseLookup: DocumentLookup {
  private let documents: TestDocuments
  /// What the case writes; `nil` for what it deletes.
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
    // The hosted service has no mocks of getAfter and existsAfter.
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
