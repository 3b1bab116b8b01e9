package import DocumentModel
package import Files
import Synchronization

/// The steps of receiving content: creating an object, or continuing a resumable upload. They run on one queue.
package protocol UploadSteps: Sendable {
  /// Opens the file for the content. Called once.
  /// - Throws: ``FilesError`` if it cannot be opened; then no other function is called.
  func open() throws(FilesError) -> UploadFile

  /// Ends the upload after the last byte. Called at most once.
  /// - Throws: ``FilesError`` if the content is rejected or cannot be stored.
  func finish(_ file: UploadFile) throws(FilesError) -> UploadResult

  /// Ends an upload that was rejected or whose client disconnected. It may keep the received bytes. Called instead of
  /// ``finish(_:)``.
  func interrupt(_ file: UploadFile)
}

/// The file that receives content: a new one, or that of a resumable upload with earlier parts.
package struct UploadFile: Sendable {
  package let incoming: IncomingContent
  /// The resumable upload, if it is one.
  let upload: OpenUpload?
  /// The maximum length of the content, or `nil` if it has no limit.
  let limit: UploadLimit?

  /// Describes an open file.
  package init(incoming: IncomingContent, upload: OpenUpload? = nil, limit: UploadLimit? = nil) {
    self.incoming = incoming
    self.upload = upload
    self.limit = limit
  }
}

/// The maximum length of content.
package struct UploadLimit: Sendable {
  package var bytes: Int
  /// The error if the content gets longer.
  package var error: FilesError
}

/// The outcome of an upload, or of a part of it.
package enum UploadResult: Sendable {
  /// The content is complete and stored, together with the documents of its ``FileCommit`` if it had one.
  case stored(StoredObject, CommitOutcome? = nil)
  /// More parts may follow. The payload is the number of bytes received so far.
  case received(Int)
}

/// An upload in progress: it receives bytes and ends once.
///
/// Use it on one queue, except ``error``. All its functions wait for the disk.
package final class Upload: Sendable {
  private struct State {
    var file: UploadFile?
    var error: FilesError?
  }

  private let steps: any UploadSteps
  // One queue uses the state, so the lock is never contended.
  private let state = Mutex(State())

  /// Creates an upload. Call ``open()`` before any other function.
  package init(_ steps: any UploadSteps) { self.steps = steps }

  /// The first error. After it, bytes are ignored.
  package var error: FilesError? { state.withLock { $0.error } }

  /// Opens the file for the content.
  package func open() {
    state.withLock { state in
      do throws(FilesError) { state.file = try steps.open() } catch { state.error = error }
    }
  }

  /// Appends bytes to the content, unless an earlier function failed.
  package func append(_ bytes: [UInt8]) {
    state.withLock { state in
      guard state.error == nil, let file = state.file else { return }
      if let limit = file.limit, bytes.count > limit.bytes - file.incoming.size {
        state.error = limit.error
        return
      }
      do throws(FilesError) { try file.incoming.append(bytes) } catch { state.error = error }
    }
  }

  /// Ends the upload after its last byte. Returns `nil` if it was interrupted before.
  /// - Throws: the first error, or that of the last step.
  package func finish() throws(FilesError) -> UploadResult? {
    if let error {
      interrupt()
      throw error
    }
    guard let file = takeFile() else { return nil }
    return try steps.finish(file)
  }

  /// Ends the upload without its last byte, unless it has ended.
  package func interrupt() {
    if let file = takeFile() { steps.interrupt(file) }
  }

  private func takeFile() -> UploadFile? {
    state.withLock { state in
      defer { state.file = nil }
      return state.file
    }
  }
}
