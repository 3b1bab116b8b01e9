package import DatabaseService
package import Files

/// The progress of a resumable upload.
package struct UploadProgress: Equatable, Sendable {
  /// Whether the upload has ended.
  package var isFinal: Bool
  /// The number of bytes received.
  package var received: Int
}

extension StorageService {
  /// Returns the progress of a resumable upload. The upload's ID permits that. Waits for the disk if the server
  /// restarted since the last part.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadBusy`` while another request sends a part;
  ///   ``FilesError`` if the read fails.
  package func queryUpload(_ id: String, as caller: Caller) throws(FilesError) -> UploadProgress {
    let files = try files(as: caller)
    let record = try files.upload(id)
    guard record.state == .active else {
      return UploadProgress(isFinal: true, received: record.declaredSize ?? record.received)
    }
    let upload = try files.openUpload(id)
    defer { files.endUpload(upload) }
    return UploadProgress(isFinal: false, received: upload.incoming.size)
  }

  /// Cancels a resumable upload. The upload's ID permits that. Waits for the disk.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadOver`` if it has ended; ``FilesError/uploadBusy`` while
  ///   another request sends a part; ``FilesError`` if the write fails.
  package func cancelUpload(_ id: String, as caller: Caller) throws(FilesError) {
    let files = try files(as: caller)
    try files.cancelUpload(try files.openUpload(id))
  }
}
