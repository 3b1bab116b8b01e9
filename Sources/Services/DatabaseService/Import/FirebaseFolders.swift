package import DocumentModel
import DocumentStore
import FirebaseExport
import FixtureTree

extension FirestoreService {
  /// Writes all documents of a database to the folder `name` of an existing folder, as the official emulator does. The
  /// documents are shown as of one moment. Files of an earlier export in the same folder are replaced.
  ///
  /// It waits for the disk, so do not call it on an event loop.
  /// - Throws: ``Status`` if a path is not usable, a file cannot be written, or the database cannot be read.
  package func exportFolder(
    _ id: DatabaseID, to folder: String, name: String, as administrator: Administrator
  ) throws {
    guard ExportFolder.isFolder(folder) else {
      throw Status(.failedPrecondition, "export_directory must be a directory")
    }
    guard DocumentsWriter.isName(name) else {
      throw Status(.invalidArgument, "export_name must be the name of a folder, without slashes")
    }
    let database = try existingDatabase(id, as: administrator)
    try Self.reported {
      var writer = try DocumentsWriter(folder, name: name, database: id, started: now)
      if let database { _ = try ExportDocuments(database.store, database: id).forEach { try writer.write($0, $1) } }
      try writer.finish(at: now)
    }
  }

  /// Adds the documents of an export to a database. An imported document replaces one with the same path. All files are
  /// checked before the first document is stored. `path` is a folder, or a file `….overall_export_metadata`.
  ///
  /// It waits for the disk, so do not call it on an event loop.
  /// - Throws: ``Status`` if the export is missing or damaged, or a commit fails.
  package func importFolder(_ id: DatabaseID, from path: String, as administrator: Administrator) throws {
    let database = try database(id, as: administrator)
    try Self.reported {
      guard let documents = try ExportFolder.find(path, parts: .documents)?.documents else {
        throw Status(.invalidArgument, "Failed to parse overall export metadata file")
      }
      let files = ImportFiles([.export(documents)], database: id)
      _ = try files.check()
      _ = try database.apply(files)
    }
  }

  /// Runs `body`, and converts errors of files to the status that clients get.
  private static func reported(_ body: () throws -> Void) throws {
    do { try body() } catch let error as FixtureTreeError {
      throw Status(.invalidArgument, error.description)
    }
  }
}
