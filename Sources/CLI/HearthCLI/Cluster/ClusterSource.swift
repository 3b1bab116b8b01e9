import ContentSharing
import Glibc
import HearthServer
import PostgresEngine
import SharedLog

/// The data directory that `hearth cluster init --from` brings along.
struct ClusterSource {
  private let upload: ClusterUpload
  private let place: any SharedContent
  private let url: String

  /// Opens a directory, and chooses the place for its files.
  /// - Throws: ``CommandFailure`` if an option is not valid; ``HearthError`` if the directory cannot be used.
  init(_ path: String, project: String?, _ arguments: Arguments, _ url: String) throws {
    self.url = url
    place = try SharedFilesOption.place(arguments) { try PostgresContent(url) } ?? PostgresContent(url)
    upload = try ClusterUpload(directory: path, project: project)
  }

  /// The project of the directory.
  var project: String { upload.project }

  /// The entry with which the log of the cluster begins.
  func firstEntry(_ identity: ClusterIdentity) -> SharedEntry { ClusterUpload.firstEntry(secret: identity.secret) }

  /// Copies the content of files to the place where nodes look for it.
  /// - Throws: ``HearthError``.
  func shareFiles() throws {
    let count = try upload.shareFiles(place)
    if count > 0 { Terminal.output.write("copied \(ProgressText.number(count)) files to \(place.place)\n") }
  }

  /// Uploads the data. If that fails, removes the tables and the key, so that the verb can be repeated.
  /// - Throws: ``CommandFailure``.
  func upload(_ key: ClusterKey, _ identity: ClusterIdentity, keyFile: String) throws {
    var progress = Progress()
    let start = Progress.now()
    do {
      let bytes = try upload.upload(to: url, key: key, secret: identity.secret) { done in
        progress.show(
          ProgressText.bytes(
            Int(done), of: upload.fileBytes, "uploaded", milliseconds: Int(Progress.now() - start)))
      }
      progress.clear()
      Terminal.output.write(
        "uploaded \(ByteCount.text(upload.fileBytes)) of data as \(ByteCount.text(Int(bytes)))\n")
    } catch {
      progress.clear()
      let reason = CommandFailure(error).message
      guard (try? ClusterSchema.remove(at: url, identity)) != nil else {
        throw CommandFailure.failed(
          "\(reason)\nThe tables of the cluster remain, without data, and no node can own it. Make a new PostgreSQL database, "
            + "remove \(keyFile), and run the command again.")
      }
      unlink(keyFile)
      throw CommandFailure.failed("\(reason)\nNothing was changed; run the command again.")
    }
  }
}
