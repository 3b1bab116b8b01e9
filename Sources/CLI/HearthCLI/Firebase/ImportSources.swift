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
  /// The parts of the exports that are imported.
  let parts: ExportParts
  /// The names of the parts that Hearth does not have, and files of tenants.
  private let leftOut: [String]
  private let archives: [Archive]

  /// An unpacked archive, whose folder exists as long as this object, and its path on the command line.
  private struct Archive {
    var path: String
    var content: UnpackedArchive
  }

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
    var archives: [Archive] = []
    var imported: ExportParts = []
    for operand in operands {
      let found: ExportFolder?
      do {
        found = try Self.export(operand, parts, &archives)
        if found == nil, options.collection == nil, Self.containsAccounts(operand) {
          throw CommandFailure.data(
            "\(operand) contains accounts, not documents; import them with `hearth accounts import \(operand)`")
        }
      } catch { throw Self.renamed(error, archives) }
      guard let export = found else {
        sources.append(.file(operand))
        plainFiles.append(operand)
        continue
      }
      guard parts == .all || !export.parts.isDisjoint(with: parts) else {
        throw CommandFailure.data(
          "\(operand) does not contain the parts that --only names (\(parts.text)); it contains "
            + (export.parts.isEmpty ? "no part that Hearth has" : export.parts.text))
      }
      if let documents = export.documents { sources.append(.export(documents)) }
      if let file = export.accountsFile { accountFiles.append(file) }
      if let folder = export.storageFolder { storageFolders.append(folder) }
      imported.formUnion(export.parts.intersection(parts))
      leftOut += export.otherParts + export.tenantFiles.map { FileLocation.lastPart($0) }
    }
    documents = ImportFiles(sources, database: database, options: options)
    (self.accountFiles, self.storageFolders, self.leftOut) = (accountFiles, storageFolders, leftOut)
    self.plainFiles = plainFiles
    self.parts = imported
    self.archives = archives
  }

  // MARK: Messages

  /// Runs `body`. In its errors, files of an archive are named by the archive and their path in it, because the
  /// temporary folder no longer exists when the user reads the error.
  /// - Throws: the errors of `body`.
  func named<R>(_ body: () throws -> R) throws -> R {
    do { return try body() } catch { throw Self.renamed(error, archives) }
  }

  /// Runs `body`, which reads the documents. If an export has other parts, an error of the documents says how to import
  /// these.
  /// - Throws: the errors of `body`.
  func checkingDocuments<R>(_ body: () throws -> R) throws -> R {
    do { return try named(body) } catch {
      var failure = CommandFailure(error)
      let rest = parts.subtracting(.documents)
      guard failure.exitCode == ExitCode.data, !rest.isEmpty else { throw error }
      failure.message += "\nto import only the other parts of the export, add --only \(rest.text)"
      throw failure
    }
  }

  /// Returns a text in which files of an archive have the names that ``named(_:)`` gives them.
  func named(_ text: String) -> String { Self.renamed(text, archives) }

  private static func renamed(_ error: any Error, _ archives: [Archive]) -> any Error {
    if archives.isEmpty { return error }
    var failure = CommandFailure(error)
    failure.message = renamed(failure.message, archives)
    return failure
  }

  private static func renamed(_ text: String, _ archives: [Archive]) -> String {
    archives.reduce(text) { text, archive in
      text.replacing("\(archive.content.folder)/", with: "\(archive.path): ")
        .replacing(archive.content.folder, with: archive.path)
    }
  }

  // MARK: Operands

  /// The endings of archives that Hearth does not unpack.
  private static let foreignArchives = [".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".7z", ".rar", ".bz2", ".xz"]

  /// Returns the export of an operand, or `nil` if the operand is a file of documents.
  private static func export(
    _ operand: String, _ parts: ExportParts, _ archives: inout [Archive]
  ) throws -> ExportFolder? {
    guard operand != "-" else { return nil }
    if ExportFolder.isFolder(operand) {
      guard let export = try ExportFolder.find(operand, parts: parts) else {
        if let advice = partAdvice("\(LocalPath.withoutLastSlashes(operand))/") { throw advice }
        throw CommandFailure.data(
          "\(operand) is a folder without a Firebase export, which contains firebase-export-metadata.json or a file "
            + "that ends in .overall_export_metadata; name such a folder, or files of documents")
      }
      return export
    }
    if let export = try ExportFolder.find(operand, parts: parts) { return export }
    var status = stat()
    guard stat(operand, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    if let advice = partAdvice(operand) { throw advice }
    guard let archive = try UnpackedArchive(operand, isWanted: { ExportFolder.mayContain($0, parts) }) else {
      if UnpackedArchive.isName(operand) {
        throw CommandFailure.data("\(operand) does not contain an archive, despite its name; copy or download it again")
      }
      if let ending = foreignArchives.first(where: { operand.lowercased().hasSuffix($0) }) {
        throw CommandFailure.data(
          "\(operand): \(ending) archives cannot be read; unpack the archive, and import the folder or the files")
      }
      return nil
    }
    archives.append(Archive(path: operand, content: archive))
    if let name = archive.leftOut {
      throw CommandFailure.data(
        "\(operand): \(name) is a link or a special file in the archive, which is not unpacked; make the archive again "
          + "from regular files, or unpack it yourself and import the folder")
    }
    guard let export = try ExportFolder.find(archive.folder, parts: parts) else {
      throw CommandFailure.data(
        "\(operand) is an archive without a Firebase export\(parts == .all ? "" : " of \(parts.text)"); unpack it, and "
          + "import the files of documents")
    }
    return export
  }

  /// Whether a file begins as those that the Emulator Suite or `firebase auth:export` writes for accounts.
  private static func containsAccounts(_ operand: String) -> Bool {
    guard operand != "-", let source = try? LocalSource(operand) else { return false }
    let start = source.next(atMost: 256).filter { $0 > 0x20 }
    return start.starts(with: #"{"users":[{"localId":"#.utf8)
      || String(decoding: start, as: UTF8.self).contains(#""identitytoolkit#DownloadAccountResponse""#)
  }

  /// Returns the error for an operand in a folder `auth_export` or `storage_export`, whose files contain no documents.
  private static func partAdvice(_ operand: String) -> CommandFailure? {
    let folders = LocalPath.folder(of: operand).utf8.split(separator: FileLocation.slash)
    let name = FileLocation.lastPart(operand)
    let isFolder = operand.utf8.last == FileLocation.slash
    for (index, folder) in folders.enumerated().reversed() {
      let (isAccounts, isFiles) = (
        folder.elementsEqual("auth_export".utf8), folder.elementsEqual("storage_export".utf8)
      )
      guard isAccounts || isFiles else { continue }
      let isRooted = operand.utf8.first == FileLocation.slash
      let above = folders[..<index].map { String(Substring($0)) }.joined(separator: "/")
      let whole = index == 0 ? (isRooted ? "/" : ".") : (isRooted ? "/" : "") + above
      let part = isAccounts ? "auth" : "storage"
      let other =
        isAccounts && !isFolder && name.hasPrefix("accounts")
        ? "`hearth accounts import \(operand)`, or as a part of the export: " : ""
      return .data(
        "\(isFolder ? LocalPath.withoutLastSlashes(operand) : operand) belongs to the "
          + "\(isAccounts ? "accounts" : "files") of a Firebase export and contains no documents; import it with "
          + "\(other)`hearth import \(whole) --only \(part)`")
    }
    return nil
  }
}
