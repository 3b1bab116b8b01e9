import Callers
import DatabaseService
import Files
import FileService

extension TestServer {
  /// Stores a file as an administrator, without a request: a part of the state that a test begins with.
  ///
  ///     try server.putFile("profiles/ann/photo.png", content: [0x89, 0x50, 0x4E, 0x47], contentType: "image/png")
  ///
  /// - Parameters:
  ///   - name: the name in the bucket, which may contain slashes. A file with this name is replaced.
  ///   - contentType: the media type; by default `application/octet-stream`.
  ///   - bucket: the bucket; by default `PROJECT.appspot.com`.
  /// - Throws: ``HearthError/storage(_:)`` if the name is not valid or there is not enough memory.
  public func putFile(
    _ name: String, content: [UInt8], contentType: String? = nil, bucket: String? = nil
  ) throws(HearthError) {
    do throws(FilesError) {
      var draft = ObjectDraft(try ObjectName(checking: bucket ?? "\(project).appspot.com", name))
      draft.attributes.contentType = contentType
      draft.attributes.metadata.addTokenIfMissing()
      _ = try currentState.storage.insertObject(draft, content: content, as: .admin)
    } catch { throw .storage("the file \(name) cannot be stored: \(error)") }
  }
}
