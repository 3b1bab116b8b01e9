import DocumentModel
import KeyEncoding

/// A range of document names, as bounds on the keys that names have in an order: ``NameCode`` and
/// ``SortKey/endOfName``.
struct NameRange: Hashable, Sendable {
  /// The lowest key inside, and the lowest above, `nil` for none.
  var lower: [UInt8] = []
  var upper: [UInt8]?

  /// All names.
  static let all = NameRange()

  /// Exactly the name with a code.
  init(only code: [UInt8]) {
    lower = Self.key(code)
    upper = Self.key(behind: code)
  }

  init() {}

  /// The key of a name.
  static func key(_ code: [UInt8]) -> [UInt8] { code + [SortKey.endOfName] }
  /// The lowest key above that of a name: below those of the names that extend it.
  static func key(behind code: [UInt8]) -> [UInt8] { code + [SortKey.endOfName + 1] }

  /// Whether it holds no name.
  var isEmpty: Bool { upper.map { Ordering.raw(lower, $0) != .less } ?? false }
  var isBounded: Bool { !lower.isEmpty || upper != nil }

  mutating func raise(to key: [UInt8]) {
    if Ordering.raw(lower, key) == .less { lower = key }
  }

  mutating func reduce(to key: [UInt8]) {
    if upper.map({ Ordering.raw(key, $0) == .less }) ?? true { upper = key }
  }

  /// What the range leaves of the ids of one collection, whose path has a code; `nil` for none of them.
  func ids(in collection: [UInt8]) -> IDRange? {
    var range = IDRange()
    switch Self.place(of: lower, in: collection) {
    case .before: break
    case .behind: return nil
    case .at(let id, let isBehind): range.lower = (id, isBehind)
    }
    if let upper {
      switch Self.place(of: upper, in: collection) {
      case .before: return nil
      case .behind: break
      case .at(let id, let isBehind): range.upper = (id, isBehind)
      }
    }
    return range
  }

  /// Where a key lies, seen from a collection.
  enum Place {
    /// In front of all documents of the collection.
    case before
    /// At a document, or behind it and in front of the next one.
    case at([UInt8], isBehind: Bool)
    /// Behind all.
    case behind
  }

  static func place(of key: [UInt8], in collection: [UInt8]) -> Place {
    guard key.starts(with: collection) else { return Ordering.raw(key, collection) == .less ? .before : .behind }
    var id: [UInt8] = []
    return key[collection.count...].withUnsafeBytes { rest in
      var rest = rest
      // What is no segment here ends the collection's own name.
      guard OrderedCode.take(segment: &rest, into: &id) else { return .before }
      return .at(id, isBehind: !rest.isEmpty && !rest.elementsEqual(CollectionOfOne(SortKey.endOfName)))
    }
  }
}

/// A range of document ids of one collection.
struct IDRange: Sendable {
  /// The lowest id inside, or the one behind which the range starts.
  var lower: (id: [UInt8], isBehind: Bool)?
  /// The id before which the range ends, or the last one inside.
  var upper: (id: [UInt8], isBehind: Bool)?

  /// The lowest key inside, where ids stand as ``OrderedCode/append(lastID:to:)`` writes them.
  var lowerCode: [UInt8] { lower.map(Self.code) ?? [] }
  /// The lowest key above.
  var upperCode: [UInt8]? { upper.map(Self.code) }

  private static func code(_ bound: (id: [UInt8], isBehind: Bool)) -> [UInt8] {
    var code: [UInt8] = []
    OrderedCode.append(lastID: bound.id, to: &code)
    if bound.isBehind { code.append(0) }
    return code
  }
}
