/// Where rules find other documents: one consistent state, and the state after all writes of the request.
package protocol DocumentLookup: AnyObject {
  /// Finds a document by its path below the documents root (UTF-8) and calls `body` with its stored fields.
  ///
  /// `isAfter` asks for the state after the whole request. The bytes need to be valid during the call only. Whatever
  /// goes wrong counts as ``LookupOutcome/unavailable``.
  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome
}

/// What became of a lookup.
package enum LookupOutcome: Sendable {
  /// The document exists, and its fields were handed over.
  case found
  /// There is none.
  case missing
  /// There is none any more: the request deletes it. Only for the state after the request.
  case deleted
  /// It could not be read.
  case unavailable
}

/// The documents that the rules of one request have looked up: each is read once, and counted.
///
/// One is shared by all documents that a request touches. Belongs to one thread at a time.
package final class DocumentLookups {
  /// The documented number of distinct documents for a batch, a transaction or a read of several documents.
  package static let distinctMaxOfMany = 20

  private let source: any DocumentLookup
  /// The most distinct documents for the whole request.
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

  /// Asks `source`, for at most `distinctMax` different documents.
  package init(_ source: any DocumentLookup, distinctMax: Int = DocumentLookups.distinctMaxOfMany) {
    self.source = source
    self.distinctMax = distinctMax
  }

  deinit { removeAll() }

  /// Forgets everything, for the next request.
  package func removeAll() {
    for document in documents {
      document.path.deallocate()
      document.fields?.deallocate()
    }
    documents.removeAll(keepingCapacity: true)
    distinctPaths = 0
  }

  /// The paths that were looked up, in order: what a decision depends on besides its own document.
  package var paths: [[UInt8]] { documents.filter(\.isFirstOfPath).map { Array($0.path) } }

  /// Finds a document. The bytes stay valid until ``removeAll()``. `nil` when the request has asked for too many.
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
