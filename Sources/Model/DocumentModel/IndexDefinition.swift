/// An index beyond those that every field has: which collections, which fields, in what order
/// (firestore-api.md, section 10).
package struct IndexDefinition: Hashable, Sendable {
  /// How far an index reaches.
  package enum Scope: Hashable, Sendable {
    /// Each collection of the id has entries of its own: serves queries on one collection.
    case collection
    /// All collections of the id share the entries: serves queries on the group.
    case collectionGroup
  }

  /// How one field takes part.
  package enum Mode: Hashable, Sendable {
    case ascending
    case descending
    /// One entry for each different element of an array.
    case contains
    /// A vector of so many components; nearest neighbours are found among the entries of the fields before it.
    case vector(dimension: Int)
  }

  /// A field with its mode.
  package struct Field: Hashable, Sendable {
    /// The field.
    package var path: FieldPath
    /// How it takes part.
    package var mode: Mode

    /// Joins a field and its mode.
    package init(_ path: FieldPath, _ mode: Mode) {
      self.path = path
      self.mode = mode
    }
  }

  /// The id of the collections.
  package var collectionID: String
  /// How far it reaches.
  package var scope: Scope
  /// The fields in order. The document's name follows in the direction of the last that has one, unless the last of
  /// these is `__name__` itself.
  package var fields: [Field]

  /// Defines an index.
  package init(collectionID: String, scope: Scope, fields: [Field]) {
    self.collectionID = collectionID
    self.scope = scope
    self.fields = fields
  }

  // Ids are told apart by their bytes.
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
  /// Hashes a text by its bytes.
  fileprivate mutating func combine(bytesOf text: String) {
    var copy = text
    copy.withUTF8 { combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

/// What is indexed of one field of the collections of one id, in place of what every field has by itself: ascending,
/// descending and containment entries in each collection, none over the group (section 10.1).
package struct FieldIndexing: Hashable, Sendable {
  /// One way in which a field is indexed by itself.
  package struct Entries: Hashable, Sendable {
    /// How far the entries reach.
    package var scope: IndexDefinition.Scope
    /// Their order, or that they are of array elements.
    package var mode: IndexDefinition.Mode

    /// Joins a scope and a mode.
    package init(_ scope: IndexDefinition.Scope, _ mode: IndexDefinition.Mode) {
      self.scope = scope
      self.mode = mode
    }
  }

  /// The id of the collections.
  package var collectionID: String
  /// The field.
  package var path: FieldPath
  /// How the field is indexed; empty for a field that is exempt.
  package var entries: Set<Entries>
  /// Whether documents vanish after the time the field holds.
  package var expires: Bool

  /// Sets how a field is indexed.
  package init(collectionID: String, path: FieldPath, entries: Set<Entries>, expires: Bool = false) {
    self.collectionID = collectionID
    self.path = path
    self.entries = entries
    self.expires = expires
  }

  /// Stands in place of a collection's id for all collections that have nothing of their own.
  package static let allCollections = "__default__"
  /// The path that stands for all fields that have nothing of their own.
  package static let allFields = FieldPath(field: "*")

  // Ids are told apart by their bytes.
  package static func == (a: FieldIndexing, b: FieldIndexing) -> Bool {
    a.path == b.path && a.entries == b.entries && a.expires == b.expires
      && a.collectionID.utf8.elementsEqual(b.collectionID.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(expires)
    hasher.combine(bytesOf: collectionID)
  }

  /// What every field has where nothing is said of it.
  package static let automatic: Set<Entries> = [
    Entries(.collection, .ascending), Entries(.collection, .descending), Entries(.collection, .contains),
  ]
}

extension FieldPath {
  /// Whether this is ``FieldIndexing/allFields``.
  package var isAllFields: Bool { self == FieldIndexing.allFields }
}

/// What an index file declares: the indexes of a database beyond the automatic ones.
package struct IndexConfiguration: Hashable, Sendable {
  /// Composite and vector indexes, in the order of the file.
  package var indexes: [IndexDefinition]
  /// Fields that differ from ``FieldIndexing/automatic``. A path of the single segment `*` stands for all fields of the
  /// collections, and gives way to those named.
  package var fields: [FieldIndexing]

  /// Declares indexes; none by default.
  package init(indexes: [IndexDefinition] = [], fields: [FieldIndexing] = []) {
    self.indexes = indexes
    self.fields = fields
  }
}
