/// The field numbers of `storage_onestore_v3.EntityProto`, the protobuf message of App Engine's Datastore in which
/// exports contain documents.
///
/// Sources: the field numbers and meanings are those of the classes `OnestoreEntity` in the official emulator's
/// archive; their use was read from output of the emulator (version of June 2025) and from managed exports in public
/// repositories (2020 to 2023).
///
/// - An entity has a key, properties, raw properties (not indexed), and the first element of its path again as
///   `entity_group`. Both the emulator and managed exports of Firestore write every value to `raw_property`, except
///   empty arrays, which are in `property`. Exports of Datastore mode use both.
/// - The project of a key is its `app`, after a letter or a word and `~`: `dev~` in the emulator, `s~`, `b~`, `e~`,
///   `g~` and others in managed exports. The default database has no `database_id`.
/// - A document ID `__id7__` is the `id` 7 of a path element. Other IDs are its `name`.
/// - The elements of an array are properties with the same name and `multiple`. An array with one element has one such
///   property. An empty array is a property with the meaning EMPTY_LIST and without `multiple`.
/// - A map is a `stringValue` with the meaning ENTITY_PROTO: an entity with the empty key. It can be in an array.
/// - A vector is an array of doubles with the meaning VECTOR. Neither an empty vector nor a vector in an array exists.
/// - A timestamp is an integer, in microseconds, with the meaning GD_WHEN. Bytes are a `stringValue` with the meaning
///   BLOB. A geo point has the meaning GEORSS_POINT; `x` is the latitude. A value without a member is null.
enum EntitySchema {
  static let key = 13
  static let property = 14
  static let rawProperty = 15
  static let entityGroup = 16

  enum Reference {
    static let app = 13
    static let path = 14
    static let namespace = 20
    static let database = 23
  }

  enum PathElement {
    static let group = 1
    static let type = 2
    static let id = 3
    static let name = 4
  }

  enum Property {
    static let meaning = 1
    static let name = 3
    static let multiple = 4
    static let value = 5
  }

  enum Value {
    static let integer = 1
    static let boolean = 2
    static let string = 3
    static let double = 4
    static let point = 5
    static let x = 6
    static let y = 7
    static let user = 8
    static let reference = 12
  }

  /// The path elements of a reference value. Its other fields are those of ``Reference``.
  enum ValuePathElement {
    static let group = 14
    static let type = 15
    static let id = 16
    static let name = 17
  }

  enum Meaning {
    static let timestamp: Int64 = 7
    static let point: Int64 = 9
    static let blob: Int64 = 14
    static let byteString: Int64 = 16
    static let entity: Int64 = 19
    static let emptyList: Int64 = 24
    static let vector: Int64 = 31
    /// The types of the enterprise edition: DECIMAL128 to MAX_VALUE.
    static let enterprise = Int64(32)...39
  }
}
