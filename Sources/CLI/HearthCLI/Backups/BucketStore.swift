import DocumentModel

/// The objects of a bucket below a common prefix, in a store of objects. Contents are whole in memory, so they must be
/// small: see ``BackupBucket/pieceBytes``.
protocol BucketStore {
  /// The location in the form of a command line, such as `s3://backups/hearth`.
  var text: String { get }

  /// Stores an object, replacing it if it exists.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the store refuses it.
  func put(_ name: String, _ content: [UInt8]) throws

  /// Stores an object if it does not exist. Returns whether it was stored.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the store refuses it for another reason.
  func putNew(_ name: String, _ content: [UInt8]) throws -> Bool

  /// Returns the content of an object, or `nil` if it does not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func get(_ name: String) throws -> [UInt8]?

  /// Passes the objects whose names begin with `prefix` to `take`, a page at a time.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a request fails.
  func list(_ prefix: String, _ take: ([BucketObject]) throws -> Void) throws

  /// Removes an object. Does nothing if it does not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func remove(_ name: String) throws
}

/// An object in a listing.
struct BucketObject: Equatable {
  /// The name after the prefix of the ``BucketStore``.
  var name: String
  /// The size in bytes.
  var size: Int
  /// The time at which it was stored, or `nil` if the store does not say.
  var stored: Timestamp?
}
