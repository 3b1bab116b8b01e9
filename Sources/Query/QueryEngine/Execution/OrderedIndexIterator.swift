import DocumentModel
import DocumentStore
import KeyEncoding
import WireFormat

/// The scans of declared indexes that give a query's candidates in the order of the query.
///
/// The key of an entry consists of the codes of the equality fields, the codes of the order's fields, and the name.
/// In every index, the part after the equalities has the order of the query. Therefore several scans can be
/// intersected by seeking, and the scans of several alternatives can be merged, without a sort.
struct OrderedIndexIterator: Sendable {
  /// A range of the entries of one index that share the values of its first fields.
  struct Scan: Sendable {
    var index: StoredIndex
    /// The codes of the first fields.
    var codes: [UInt8]
    /// The number of fields in ``codes``.
    var fieldCount: Int

    /// The prefix of the entries' keys. `collection` is ignored if the index is over a collection group.
    func prefix(in collection: UInt64) -> [UInt8] {
      var key = StorageKey()
      key.begin(index.table)
      key.append(number: index.number)
      if index.table == .compositeEntries { key.append(number: collection) }
      key.append(raw: codes)
      return key.bytes
    }
  }

  /// The scans that answer one alternative of the filter. A document is a candidate if all of them find it.
  struct Alternative: Sendable {
    var scans: [Scan]
    /// The bounds of the key part after the equalities. `upper` is exclusive.
    var lower: [UInt8] = []
    var upper: [UInt8]?
    /// The conditions that the scans and bounds guarantee.
    var covered: [ResolvedQuery.Condition] = []
    var subject: Subject

    /// The covered conditions in text form. Cost: makes the text, which only explanations need.
    var text: String {
      switch subject {
      case .terms(let text): return text
      case .conditions(let equalities, let bounds, let isBetweenCursors):
        let texts =
          equalities.map { "\($0.path.text) \($0.isContains ? "contains" : "==") …" } + bounds.map(\.text)
        return (texts.isEmpty ? "all" : texts.joined(separator: " and "))
          + (isBetweenCursors ? " between cursors" : "")
      }
    }
  }

  /// The covered conditions of an alternative.
  enum Subject: Sendable {
    /// Equalities on the first fields of the indexes, and bounds on fields of the order.
    case conditions(
      equalities: [(path: FieldPath, isContains: Bool)], bounds: [ValueBounds], isBetweenCursors: Bool)
    /// Terms, in text form.
    case terms(String)
  }

  /// A field of the order, and whether its codes are inverted in the entries.
  struct TailField: Hashable, Sendable {
    var path: FieldPath
    var isInverted: Bool
  }

  var alternatives: [Alternative]
  /// The fields between the equalities and the name.
  var tail: [TailField]
  /// Whether the indexes are over a collection group. Their entries end in whole paths.
  var isGroup: Bool
  /// The root or a document. Only collections of the group at or below it belong to the query.
  var parent: ResourcePath

  /// Returns the codes of a document's fields between the equalities and the name, or `nil` if the document lacks
  /// one of the fields.
  func tailCode(of fields: EncodedMap) throws -> [UInt8]? {
    var code: [UInt8] = []
    for field in tail {
      guard let value = try fields.value(at: field.path) else { return nil }
      let start = code.count
      try OrderedCode.append(value, to: &code)
      if field.isInverted { OrderedCode.invert(&code, from: start) }
    }
    return code
  }

  /// The scans in text form, such as `index c (a ascending, b ascending): a == … and b > …`.
  var text: String {
    let isOne = alternatives.count == 1
    var isOneIndex = isOne
    let texts = alternatives.map { alternative in
      // Scans of several terms read one text index.
      var names: [String] = []
      for scan in alternative.scans where !names.contains(scan.index.definition.text) {
        names.append(scan.index.definition.text)
      }
      isOneIndex = isOneIndex && names.count == 1
      return "\(names.joined(separator: " and ")): \(alternative.text)"
    }
    let verb = !isOne ? "merge" : alternatives[0].scans.count > 1 ? "intersect" : "scan"
    let noun = isOneIndex ? "index" : "indexes"
    return "\(verb) \(noun) \(texts.joined(separator: " or "))"
  }
}
