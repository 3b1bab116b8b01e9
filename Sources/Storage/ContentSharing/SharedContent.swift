/// The content of files in a place that all nodes of a cluster reach.
///
/// The calls block, for a bounded time unless the file system of a shared folder is silent, and several threads may call
/// at once. A failed call may have happened, or may happen later: its effect must be harmless then, which the names of
/// ``SharedCopy`` ensure.
package protocol SharedContent: Sendable {
  /// The place for messages to operators, without passwords.
  var place: String { get }

  /// The size of the largest content that the place accepts, in bytes.
  var bytesMax: Int { get }

  /// Returns the identity of the place, a random number, or `nil` without one. A folder whose file system is not mounted,
  /// or a mistyped prefix of a bucket, has none or another one.
  /// - Parameter new: the number to store if the place has none. Then the place belongs to the files with this number.
  /// - Throws: ``SharedContentError`` if the place cannot be reached.
  func identity(claiming new: UInt64?) throws(SharedContentError) -> UInt64?

  /// Stores a new copy of a file, and returns when it is durable. It exists as a whole or not at all.
  /// - Throws: ``SharedContentError``. Then the copy may exist nevertheless, or appear later.
  func publish(_ copy: SharedCopy, fromFile path: String, size: Int) throws(SharedContentError)

  /// Returns the copies of a content.
  /// - Throws: ``SharedContentError`` if the place cannot be reached.
  func copies(of digest: ContentDigest) throws(SharedContentError) -> [SharedCopy]

  /// Passes the bytes of a copy to `take`, in order and in pieces of at most ``SharedContentLimits/pieceBytesMax``. Returns
  /// whether the copy exists. The caller compares the digest.
  /// - Throws: ``SharedContentError`` if the copy cannot be read to its end; the errors of `take`.
  func fetch(
    _ copy: SharedCopy, _ take: (UnsafeRawBufferPointer) throws(SharedContentError) -> Void
  ) throws(SharedContentError) -> Bool

  /// Removes a copy. Does nothing if it does not exist.
  /// - Throws: ``SharedContentError`` if the place cannot be reached.
  func remove(_ copy: SharedCopy) throws(SharedContentError)

  /// Passes all copies to `take`, some thousand at most at a time.
  /// - Throws: ``SharedContentError`` if the place cannot be reached; the errors of `take`.
  func forEachCopy(_ take: ([SharedCopy]) throws(SharedContentError) -> Void) throws(SharedContentError)

  /// Removes what publications that never ended left a day ago or earlier.
  /// - Throws: ``SharedContentError`` if the place cannot be reached.
  func removeLeftovers() throws(SharedContentError)
}

/// The limits of shared content.
package enum SharedContentLimits {
  /// The largest piece that ``SharedContent/fetch(_:_:)`` passes, in bytes.
  package static let pieceBytesMax = 16 << 20
  /// The time after which a publication gives up, in seconds. Removals rely on it: see ``removalSeconds``.
  package static let publicationSecondsMax = 2400
  /// The time between the beginning of a publication and the transaction that refers to the copy, in seconds. A transaction
  /// that comes later needs another copy.
  package static let commitSecondsMax = 3000
  /// The time for which no object must refer to a content before its copies are removed, in seconds. It exceeds
  /// ``commitSecondsMax``, so a copy that is about to be referred to is never removed.
  package static let removalSeconds = 3600
  /// The age at which an unfinished publication is a leftover, in seconds.
  package static let leftoverSeconds = 86400
}
