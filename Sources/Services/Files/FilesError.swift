package import Basics
package import KeyValue

/// An error of a file operation.
package enum FilesError: Error, Equatable, Sendable {
  /// The text is not a valid bucket name.
  case invalidBucket(String)
  /// The text is not a valid object name. The payload is the reason.
  case invalidName(String)
  /// A part of a request is not valid. The payload is the reason.
  case invalid(String)
  /// The object does not exist, or not in the requested generation.
  case noSuchObject(ObjectName)
  /// The bucket does not exist.
  case noSuchBucket(String)
  /// A bucket of that name already exists.
  case bucketExists(String)
  /// The bucket contains objects.
  case bucketNotEmpty(String)
  /// A precondition is not met. The payload is its name.
  case conditionNotMet(String)
  /// The client already has the current object, so a condition of its read is not met.
  case notModified
  /// A checksum of the received bytes differs from the declared one.
  case checksumMismatch(kind: String, declared: String, found: String)
  /// The upload does not exist: it never existed, was dropped, or is older than a week.
  case noSuchUpload
  /// A part of an upload begins at another offset than the bytes received so far.
  case wrongOffset(expected: Int, given: Int)
  /// The upload has ended.
  case uploadOver
  /// Another request is sending to the upload. The client may retry.
  case uploadBusy
  /// The limit of concurrent uploads is reached.
  case tooManyUploads
  /// The owner's limit of concurrent uploads is reached. The payload is the limit.
  case tooManyUploadsOfOwner(Int)
  /// The client sent more bytes than are allowed before the total length is known.
  case lengthRequired(bytesMax: Int)
  /// The content does not have the coding that its metadata name, and the client does not accept that coding.
  case undecodable
  /// The file system, or the memory limit of files, is full.
  case full
  /// The files would exceed the quota of the project.
  case overQuota(QuotaError)
  /// A commit of documents together with the object was rejected. `code` and `message` are those of the document API;
  /// `fault` is a detail for the server's log only.
  case commitRefused(code: Int, message: String, fault: String? = nil)
  /// The caller is not authorized. The payload is the message of the API that the client uses.
  case denied(String)
  /// The content is larger than the shared content accepts. The payload is the limit in bytes.
  case tooLarge(bytesMax: Int)
  /// The received bytes of an upload are on another node, or were lost with it. The client must begin a new upload.
  case uploadLost
  /// The content of the object is not on this node, and the caller asked not to wait for it.
  case notCached
  /// The shared content failed. The payload is a text for operators.
  case sharedContent(String)
  /// The content of an object is missing or does not match its metadata.
  case damaged(ObjectName)
  /// Another node of the cluster owns the files. Nothing happened.
  case notOwner
  /// The metadata store failed.
  case storage(StorageError)
  /// A system call failed. `code` is its `errno`.
  case system(operation: String, path: String, code: Int32)

  /// Converts an error of the metadata store. A full disk and a full data file are ``full``.
  package init(_ error: StorageError) {
    switch error {
    case .diskFull, .storageFull: self = .full
    case .notOwner: self = .notOwner
    default: self = .storage(error)
    }
  }
}
