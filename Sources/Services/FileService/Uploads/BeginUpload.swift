package import Callers
import DatabaseService
package import Files
import RulesEngine

extension StorageService {
  /// Begins a resumable upload and returns its ID. Rejects it at once if the rules deny it regardless of its content.
  /// Waits for the disk.
  ///
  /// - Parameters:
  ///   - owner: the owner to whose quota the upload belongs, or `nil` for no quota; see ``UploadOwner/of(_:at:)``.
  ///   - remembersCaller: whether unauthenticated requests with the ID continue the upload as `caller`, until the
  ///     server stops. Some clients send their credential with the first request only.
  /// - Throws: ``FilesError/denied(_:)``; ``FilesError/invalid(_:)`` if the attributes are not valid; the errors of
  ///   ``FileStore/beginUpload(_:initiator:)``.
  package func beginUpload(
    _ draft: ObjectDraft, owner: UploadOwner?, remembersCaller: Bool = false, as caller: Caller
  ) throws(FilesError) -> String {
    try files(as: caller).beginUpload(draft, owner: owner, remembersCaller: remembersCaller).id
  }
}

extension UploadOwner {
  /// Returns the owner whose quota the uploads of a caller count toward, or `nil` for administrators.
  ///
  /// For unauthenticated callers it is the network address, and also for guests, because one client can create any
  /// number of guest accounts.
  package static func of(_ caller: Caller, at address: String) -> UploadOwner? {
    guard case .user(let auth) = caller else { return nil }
    if let auth, let uid = auth.uid, !auth.isAnonymous { return .user(uid) }
    return .address(address)
  }
}
