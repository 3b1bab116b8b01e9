/// A composite, vector or text index, in addition to the automatic index of every field: its collections, fields and
/// order (firestore-api.md, section 10).
package struct IndexDefinition: Hashable, Sendable {
  /// The collections that share the entries of an index.
  package enum Scope: Hashable, Sendable {
    /// Each collection with the ID has its own entries. They serve queries on one collection.
    case collection
    /// All collections with the ID share the entries. They serve queries on the collection group.
    case collectionGroup
  }

  /// How the index uses a field.
  package enum Mode: Hashable, Sendable {
    case ascending
    case descending
    /// One entry for each distinct element of an array.
    case contains
    /// A vector with `dimension` components. Nearest neighbors are searched among the entries of the preceding
    /// fields.
    case vector(dimension: Int)
    /// One entry for each distinct term of the strings in the field. All fields of such an index have this mode.
    case text(TextLanguage)
  }

  /// A field with its mode.
  package struct Field: Hashable, Sendable {
    package var path: FieldPath
    package var mode: Mode

    package init(_ path: FieldPath, _ mode: Mode) {
      self.path = path
      self.mode = mode
    }
  }

  /// The ID of the collections.
  package var collectionID: String
  package var scope: Scope
  /// The fields in order. The document name follows, in the direction of the last field that has one, unless the
  /// last field is `__name__` itself.
  package var fields: [Field]

  package init(collectionID: String, scope: Scope, fields: [Field]) {
    self.collectionID = collectionID
    self.scope = scope
    self.fields = fields
  }

  /// The language of a text index, or `nil` if this is another index.
  package var textLanguage: TextLanguage? {
    guard case .text(let language)? = fields.first?.mode else { return nil }
    return language
  }

  // Compares collection IDs by their bytes: two Unicode spellings of a text are different IDs.
  package static func == (a: IndexDefinition, b: IndexDefinition) -> Bool {
    a.scope == b.scope && a.fields == b.fields && a.collectionID.utf8.elementsEqual(b.collectionID.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(scope)
    hasher.combine(fields)
    hasher.combine(bytesOf: collectionID)
  }
}

extension Hasher {
  /// Hashes the UTF-8 bytes of a text.
  fileprivate mutating func combine(bytesOf text: String) {
    var copy = text
    copy.withUTF8 { combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

/// The automatic indexing of one field in the collections with one ID, if it differs from the default.
///
/// By default a field has ascending, descending and array-contains entries in each collection, and none for the
/// collection group (firestore-api.md, section 10.1).
package struct FieldIndexing: Hashable, Sendable {
  /// One kind of automatic index entry for a field.
  package struct Entries: Hashable, Sendable {
    package var scope: IndexDefinition.Scope
    /// The order of the entries, or ``IndexDefinition/Mode/contains`` for entries of array elements.
    package var mode: IndexDefinition.Mode

    package init(_ scope: IndexDefinition.Scope, _ mode: IndexDefinition.Mode) {
      self.scope = scope
      self.mode = mode
    }
  }

  /// The ID of the collections, or ``allCollections``.
  package var collectionID: String
  /// The field, or ``allFields``.
  package var path: FieldPath
  /// The kinds of entries; empty for a field that is exempt from indexing.
  package var entries: Set<Entries>
  /// Whether documents expire at the time that the field holds.
  package var expires: Bool

  package init(collectionID: String, path: FieldPath, entries: Set<Entries>, expires: Bool = false) {
    self.collectionID = collectionID
    self.path = path
    self.entries = entries
    self.expires = expires
  }

  /// The collection ID that represents all collections without a setting of their own.
  package static let allCollections = "__default__"
  /// The path that represents all fields without a setting of their own.
  package static let allFields = FieldPath(field: "*")

  // Compares collection IDs by their bytes: two Unicode spellings of a text are different IDs.
  package static func == (a: FieldIndexing, b: FieldIndexing) -> Bool {
    a.path == b.path && a.entries == b.entries && a.expires == b.expires
      && a.collectionID.utf8.elementsEqual(b.collectionID.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(expires)
    hasher.combine(bytesOf: collectionID)
  }

  /// The entries of a field without a setting of its own.
  package static let automatic: Set<Entries> = [
    Entries(.collection, .ascending), Entries(.collection, .descending), Entries(.collection, .contains),
  ]
}

extension FieldPath {
  /// Whether this is ``FieldIndexing/allFields``.
  package var isAllFields: Bool { self == FieldIndexing.allFields }
}

/// The content of an index file: the composite, vector and text indexes of a database, and its settings for single
/// fields.
package struct IndexConfiguration: Hashable, Sendable {
  /// Composite, vector and text indexes, in the order of the file.
  package var indexes: [IndexDefinition]
  /// Fields that differ from ``FieldIndexing/automatic``. The path `*` applies to all fields of the collections
  /// that have no setting of their own.
  package var fields: [FieldIndexing]

  package init(indexes: [IndexDefinition] = [], fields: [FieldIndexing] = []) {
    self.indexes = indexes
    self.fields = fields
  }
}
