import Archives
import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree
import Glibc

/// The operands of an import: files of documents, and Firebase exports as folders, files and archives.
struct ImportSources {
  /// The documents of all operands.
  let documents: ImportFiles
  /// The exports with accounts.
  let accountFiles: [String]
  /// The exports with files.
  let storageFolders: [String]
  /// The operands that are files of documents, not exports.
  let plainFiles: [String]
  /// The names of the parts that Hearth does not have, and files of tenants.
  let leftOut: [String]
  /// Unpacked archives, whose folders exist as long as these objects.
  private let archives: [UnpackedArchive]

  /// Facts about the exports that a user should know.
  var notes: [String] {
    leftOut.isEmpty ? [] : ["left out parts that Hearth does not have: \(leftOut.joined(separator: ", "))"]
  }

  /// Finds the exports among the operands, and unpacks archives. Documents are not read yet.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` if an operand cannot be imported.
  init(
    _ operands: [String], database: DatabaseID, parts: ExportParts, options: ReadOptions = ReadOptions()
  ) throws {
    var sources: [ImportFiles.Source] = []
    var (accountFiles, storageFolders, leftOut): ([String], [String], [String]) = ([], [], [])
    var plainFiles: [String] = []
    var archives: [UnpackedArchive] = []
    for operand in operands {
      guard let export = try Self.export(operand, &archives) else {
        sources.append(.file(operand))
        plainFiles.append(operand)
        continue
      }
      if parts.contains(.documents), let documents = export.documents { sources.append(.export(documents)) }
      if parts.contains(.accounts), let file = export.accountsFile { accountFiles.append(file) }
      if parts.contains(.files), let folder = export.storageFolder { storageFolders.append(folder) }
      leftOut += export.otherParts + export.tenantFiles.map { FileLocation.lastPart($0) }
    }
    documents = ImportFiles(sources, database: database, options: options)
    (self.accountFiles, self.storageFolders, self.leftOut) = (accountFiles, storageFolders, leftOut)
    self.plainFiles = plainFiles
    self.archives = archives
  }

  /// The endings of archives that Hearth does not unpack.
  private static let foreignArchives = [".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".7z", ".rar", ".bz2", ".xz"]

  /// Returns the export of an operand, or `nil` if the operand is a file of documents.
  private static func export(_ operand: String, _ archives: inout [UnpackedArchive]) throws -> ExportFolder? {
    guard operand != "-" else { return nil }
    if ExportFolder.isFolder(operand) {
      guard let export = try ExportFolder.find(operand) else {
        throw CommandFailure.data(
          "\(operand) is a folder without a Firebase export, which contains firebase-export-metadata.json or a file "
            + "that ends in .overall_export_metadata; name such a folder, or files of documents")
      }
      return export
    }
    if let export = try ExportFolder.find(operand) { return export }
    var status = stat()
    guard stat(operand, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    guard let archive = try UnpackedArchive(operand, isWanted: ExportFolder.mayContain) else {
      if UnpackedArchive.isName(operand) {
        throw CommandFailure.data("\(operand) does not contain an archive, despite its name; copy or download it again")
      }
      if let ending = foreignArchives.first(where: { operand.lowercased().hasSuffix($0) }) {
        throw CommandFailure.data(
          "\(operand): \(ending) archives cannot be read; unpack the archive, and import the folder or the files")
      }
      return nil
    }
    archives.append(archive)
    guard let export = try ExportFolder.find(archive.folder) else {
      throw CommandFailure.data(
        "\(operand) is an archive without a Firebase export; unpack it, and import the files of documents")
    }
    return export
  }
}
