import DocumentModel
import DocumentStore
import KeyEncoding
import WireFormat

/// Scans of declared indexes that give a query's candidates in its order.
///
/// An entry is the codes of equalities, the codes of the fields of the order, and the name. What follows the equalities
/// stands in the order of the query, whatever the index: so several scans leap to where the others are, and the scans of
/// several alternatives are merged, without a sort.
struct OrderedIndexIterator: Sendable {
  /// A range of the entries of one index that share the values of its first fields.
  struct Scan: Sendable {
    var index: StoredIndex
    /// The codes of the first fields.
    var codes: [UInt8]
    /// How many fields these are.
    var fieldCount: Int

    /// What the keys of the entries begin with; `collection` matters unless the index is over a group.
    func prefix(in collection: UInt64) -> [UInt8] {
      var key = StorageKey()
      key.begin(index.table)
      key.append(number: index.number)
      if index.table == .compositeEntries { key.append(number: collection) }
      key.append(raw: codes)
      return key.bytes
    }
  }

  /// What answers one alternative of the filter: all its scans must name a document.
  struct Alternative: Sendable {
    var scans: [Scan]
    /// What follows the equalities, from `lower` on and below `upper`.
    var lower: [UInt8] = []
    var upper: [UInt8]?
    /// The conditions that scans and bounds see to.
    var covered: Set<ResolvedQuery.Condition> = []
    /// Those in text.
    var text: String
  }

  /// A field of the order as its codes stand in the entries.
  struct TailField: Hashable, Sendable {
    var path: FieldPath
    var isInverted: Bool
  }

  var alternatives: [Alternative]
  /// The fields between the equalities and the name.
  var tail: [TailField]
  /// Whether the indexes are over a group: entries then end in whole paths.
  var isGroup: Bool
  /// The root or the document at or below which collections of the group are meant.
  var parent: ResourcePath

  /// What follows the equalities in the entries of a document, up to the name; `nil` where it lacks a field.
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

  /// The scans in text, such as `index c (a ascending, b ascending): a == … and b > …`.
  var text: String {
    let isOne = alternatives.count == 1
    let texts = alternatives.map { alternative in
      let names = alternative.scans.map(\.index.definition.text).joined(separator: " and ")
      return "\(names): \(alternative.text)"
    }
    let verb = !isOne ? "merge" : alternatives[0].scans.count > 1 ? "intersect" : "scan"
    let noun = isOne && alternatives[0].scans.count == 1 ? "index" : "indexes"
    return "\(verb) \(noun) \(texts.joined(separator: " or "))"
  }
}
