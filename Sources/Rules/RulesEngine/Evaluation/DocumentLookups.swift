/// Finds documents for rules, in one consistent state and in the state after all writes of the request.
package protocol DocumentLookup: AnyObject {
  /// Finds a document by its path below the documents root (UTF-8), and calls `body` with its stored fields.
  ///
  /// `isAfter` selects the state after the whole request. The bytes need to be valid only during the call. Report
  /// any error as ``LookupOutcome/unavailable``.
  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome
}

/// The outcome of a lookup.
package enum LookupOutcome: Sendable {
  /// The document exists, and `body` received its fields.
  case found
  /// The document does not exist.
  case missing
  /// The request deletes the document. Only for the state after the request.
  case deleted
  /// The document could not be read.
  case unavailable
}

/// The documents that the rules of one request have looked up. Reads and counts each document once.
///
/// All documents of a request share one object. Use it on one thread at a time.
package final class DocumentLookups {
  /// The documented limit of distinct documents for a batch, a transaction or a read of several documents.
  package static let distinctMaxPerRequest = 20

  private let source: any DocumentLookup
  /// The limit of distinct documents for the whole request.
  private let distinctMax: Int
  private var documents: [Found] = []
  private var distinctPaths = 0

  private struct Found {
    let path: UnsafeMutableRawBufferPointer
    let isAfter: Bool
    let outcome: LookupOutcome
    let fields: UnsafeMutableRawBufferPointer?
    let isFirstOfPath: Bool
  }

  /// An empty cache of `source` for at most `distinctMax` distinct documents.
  package init(_ source: any DocumentLookup, distinctMax: Int = DocumentLookups.distinctMaxPerRequest) {
    self.source = source
    self.distinctMax = distinctMax
  }

  deinit { removeAll() }

  /// Removes all documents, for the next request.
  package func removeAll() {
    for document in documents {
      document.path.deallocate()
      document.fields?.deallocate()
    }
    documents.removeAll(keepingCapacity: true)
    distinctPaths = 0
  }

  /// The distinct paths that were looked up, in order. A decision depends on them and on its own document.
  package var paths: [[UInt8]] { documents.filter(\.isFirstOfPath).map { Array($0.path) } }

  /// Calls `body` with each document that was looked up, in order: its path, whether the state after the request was
  /// read, and its fields, or `nil` if it does not exist. Skips documents that could not be read. The bytes are valid
  /// during the call.
  package func forEach(
    _ body: (_ path: UnsafeRawBufferPointer, _ isAfter: Bool, _ fields: UnsafeRawBufferPointer?) -> Void
  ) {
    for document in documents where document.outcome != .unavailable {
      body(UnsafeRawBufferPointer(document.path), document.isAfter, document.fields.map { UnsafeRawBufferPointer($0) })
    }
  }

  /// Finds a document. Returns `nil` if a limit of lookups is reached. The bytes are valid until ``removeAll()``.
  func document(
    at path: UnsafeRawBufferPointer, isAfter: Bool, isFree: Bool, counted: inout Int, countedMax: Int
  ) -> (LookupOutcome, UnsafeRawBufferPointer?)? {
    let isKnown = documents.contains { RuleBytes.equal(UnsafeRawBufferPointer($0.path), path) }
    if let known = documents.first(where: {
      $0.isAfter == isAfter && RuleBytes.equal(UnsafeRawBufferPointer($0.path), path)
    }) {
      return (known.outcome, known.fields.map { UnsafeRawBufferPointer($0) })
    }
    if !isKnown, !isFree {
      guard counted < countedMax, distinctPaths < distinctMax else { return nil }
      counted += 1
      distinctPaths += 1
    }
    var fields: UnsafeMutableRawBufferPointer?
    let outcome = source.lookUp(path, isAfter: isAfter) { bytes in
      fields?.deallocate()
      fields = Self.copy(bytes)
    }
    documents.append(
      Found(
        path: Self.copy(path), isAfter: isAfter, outcome: outcome, fields: fields, isFirstOfPath: !isKnown))
    return (outcome, fields.map { UnsafeRawBufferPointer($0) })
  }

  private static func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyMemory(from: bytes)
    return copy
  }
}
