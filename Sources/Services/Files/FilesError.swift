package import KeyValue

/// Why something could not be done to files.
package enum FilesError: Error, Equatable, Sendable {
  /// No bucket can have that name.
  case invalidBucket(String)
  /// No object can have that name; says why.
  case invalidName(String)
  /// A part of a request is not what it should be; says which and why.
  case invalid(String)
  /// There is no such object, or not of the generation asked for.
  case noSuchObject(ObjectName)
  /// There is no such bucket.
  case noSuchBucket(String)
  /// There is a bucket of that name.
  case bucketExists(String)
  /// The bucket holds objects.
  case bucketNotEmpty(String)
  /// A precondition does not hold; names it.
  case conditionNotMet(String)
  /// The object is the one the client has: a condition that asks for another does not hold.
  case notModified
  /// The bytes that came have another checksum than the client said.
  case checksumMismatch(kind: String, declared: String, found: String)
  /// There is no such upload: it never was, was given up, or is older than a week.
  case noSuchUpload
  /// Bytes came for an upload at another place than where it stands.
  case wrongOffset(expected: Int, given: Int)
  /// The upload is over.
  case uploadOver
  /// Another request sends to the upload just now; the client may try again.
  case uploadBusy
  /// So many uploads have begun and not ended that no other may begin now.
  case tooManyUploads
  /// So many uploads of one owner have begun and not ended that no other of theirs may begin now; says how many.
  case tooManyUploadsOfOwner(Int)
  /// More came than may come before it is known how much it will be.
  case lengthRequired(bytesMax: Int)
  /// Content is not of the coding that its metadata say, and the client does not take that coding.
  case undecodable
  /// The file system, or the room for files in memory, is full.
  case full
  /// Documents that were to be committed with it were refused; `message` says why, in the words of their API, and
  /// `fault` tells the server's log what clients are not told.
  case commitRefused(httpStatus: Int, message: String, fault: String? = nil)
  /// The caller may not do this; says so in the words of the dialect.
  case denied(String)
  /// Content that the metadata name is missing or not what they say.
  case damaged(ObjectName)
  /// The store of the metadata failed.
  case storage(StorageError)
  /// The operating system refused. `code` is its `errno`.
  case system(operation: String, path: String, code: Int32)

  /// What a failure of the metadata store means to a client.
  init(_ error: StorageError) {
    switch error {
    case .diskFull, .storageFull: self = .full
    default: self = .storage(error)
    }
  }
}
