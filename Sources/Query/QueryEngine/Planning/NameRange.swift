import DocumentModel
import KeyEncoding

/// A range of document names, as bounds on the keys of names in an order: a ``NameCode`` followed by
/// ``SortKey/endOfName``.
struct NameRange: Hashable, Sendable {
  /// The lowest key in the range, and the lowest key above it; `nil` if the range has no upper end.
  var lower: [UInt8] = []
  var upper: [UInt8]?

  /// The range of all names.
  static let all = NameRange()

  /// The range that contains only the name with this code.
  init(only code: [UInt8]) {
    lower = Self.key(code)
    upper = Self.key(after: code)
  }

  init() {}

  /// Returns the key of a name.
  static func key(_ code: [UInt8]) -> [UInt8] { code + [SortKey.endOfName] }
  /// Returns the lowest key above the key of a name. It is below the keys of the names that extend this name.
  static func key(after code: [UInt8]) -> [UInt8] { code + [SortKey.endOfName + 1] }

  /// Whether the range contains no name.
  var isEmpty: Bool { upper.map { Ordering.raw(lower, $0) != .less } ?? false }
  var isBounded: Bool { !lower.isEmpty || upper != nil }

  mutating func raise(to key: [UInt8]) {
    if Ordering.raw(lower, key) == .less { lower = key }
  }

  mutating func reduce(to key: [UInt8]) {
    if upper.map({ Ordering.raw(key, $0) == .less }) ?? true { upper = key }
  }

  /// Returns the part of the range that lies in one collection, given the code of its path, or `nil` if there is no
  /// such part.
  func ids(in collection: [UInt8]) -> IDRange? {
    var range = IDRange()
    switch Self.place(of: lower, in: collection) {
    case .before: break
    case .after: return nil
    case .at(let id, let isAfter): range.lower = (id, isAfter)
    }
    if let upper {
      switch Self.place(of: upper, in: collection) {
      case .before: return nil
      case .after: break
      case .at(let id, let isAfter): range.upper = (id, isAfter)
      }
    }
    return range
  }

  /// The position of a key relative to a collection.
  enum Place {
    /// Before all documents of the collection.
    case before
    /// At a document, or between it and the next document.
    case at([UInt8], isAfter: Bool)
    /// After all documents of the collection.
    case after
  }

  static func place(of key: [UInt8], in collection: [UInt8]) -> Place {
    guard key.starts(with: collection) else { return Ordering.raw(key, collection) == .less ? .before : .after }
    var id: [UInt8] = []
    return key[collection.count...].withUnsafeBytes { rest in
      var rest = rest
      // The rest is not a segment: the key is the end of the collection's own name.
      guard OrderedCode.take(segment: &rest, into: &id) else { return .before }
      return .at(id, isAfter: !rest.isEmpty && !rest.elementsEqual(CollectionOfOne(SortKey.endOfName)))
    }
  }
}

/// A range of document IDs of one collection.
struct IDRange: Sendable {
  /// The lowest ID in the range, or the ID after which the range starts.
  var lower: (id: [UInt8], isAfter: Bool)?
  /// The ID before which the range ends, or the last ID in the range.
  var upper: (id: [UInt8], isAfter: Bool)?

  /// The lowest key in the range, with IDs encoded as by ``OrderedCode/append(lastID:to:)``.
  var lowerCode: [UInt8] { lower.map(Self.code) ?? [] }
  /// The lowest key above the range.
  var upperCode: [UInt8]? { upper.map(Self.code) }

  private static func code(_ bound: (id: [UInt8], isAfter: Bool)) -> [UInt8] {
    var code: [UInt8] = []
    OrderedCode.append(lastID: bound.id, to: &code)
    if bound.isAfter { code.append(0) }
    return code
  }
}
