package import FixtureTree
import Glibc
import WireFormat

/// The parts of a Firebase export in a folder.
///
/// `firebase emulators:export` writes `firebase-export-metadata.json`, which names the folders of the parts:
/// `firestore_export` (see ``ExportMetadata``), `auth_export` with `accounts.json` and `config.json`, and
/// `storage_export` with `buckets.json`, `metadata/` and `blobs/`. A managed export of Firestore is the folder of the
/// first part alone. Source: `hubExport.ts` of firebase-tools.
package struct ExportFolder: Sendable {
  /// The path of the folder or file that names the export.
  package var path: String
  /// The parts that the export names, whether or not they were read.
  package var parts: ExportParts = []
  /// The documents, if the export contains some and they were wanted.
  package var documents: ExportedDocuments?
  /// The path of `accounts.json`, if the export contains accounts and they were wanted.
  package var accountsFile: String?
  /// The paths of the files with the accounts of tenants.
  package var tenantFiles: [String] = []
  /// The path of the folder with buckets, if the export contains files and they were wanted.
  package var storageFolder: String?
  /// The names of the other parts, such as `database`.
  package var otherParts: [String] = []

  package static let metadataFile = "firebase-export-metadata.json"
  /// The depth below a folder at which an export is still found. Archives often contain a folder of their own.
  private static let depthMax = 4
  /// The folders that the search for an export visits.
  private static let visitedMax = 10_000

  /// Finds the export at a path: a folder, a metadata file, or one `output-N`. Returns `nil` if the path has neither of
  /// these forms. Only the wanted parts are read, so damage in the other ones does no harm.
  /// - Throws: `FixtureTreeError` if a wanted part is incomplete or damaged.
  package static func find(
    _ path: String, parts: ExportParts = .all
  ) throws(FixtureTreeError) -> ExportFolder? {
    if isFolder(path) { return try find(inFolder: path, parts) }
    var status = stat()
    guard let kind = Kind(path), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return try open(path, kind, parts)
  }

  /// Returns whether a path names a folder.
  package static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns whether a file at this path in an archive can belong to these parts of an export.
  package static func mayContain(_ path: String, _ parts: ExportParts = .all) -> Bool {
    for folder in path.utf8.split(separator: UInt8(ascii: "/")) {
      if folder.elementsEqual(accountsFolder.utf8) { return parts.contains(.accounts) }
      if folder.elementsEqual(filesFolder.utf8) { return parts.contains(.files) }
    }
    guard let kind = Kind(path) else { return false }
    return kind == .whole || parts.contains(.documents)
  }

  private static let accountsFolder = "auth_export"
  private static let filesFolder = "storage_export"

  /// The kinds of files by which an export is found, the preferred one first.
  private enum Kind: CaseIterable {
    case whole
    case documents
    case collection
    case output

    init?(_ path: String) {
      let name = String(Substring(path.utf8.suffix(while: { $0 != UInt8(ascii: "/") })))
      if name == ExportFolder.metadataFile {
        self = .whole
      } else if name.utf8.hasSuffix(ExportMetadata.overallSuffix) {
        self = .documents
      } else if name.utf8.hasSuffix(ExportMetadata.kindSuffix) {
        self = .collection
      } else if name.utf8.starts(with: "output-".utf8), Int(name.dropFirst("output-".count)) != nil {
        self = .output
      } else {
        return nil
      }
    }
  }

  private static func open(_ path: String, _ kind: Kind, _ parts: ExportParts) throws(FixtureTreeError) -> ExportFolder
  {
    if kind == .whole { return try whole(path, parts) }
    var export = ExportFolder(path: path, parts: .documents)
    guard parts.contains(.documents) else { return export }
    switch kind {
    case .whole, .documents: export.documents = try documents(path)
    case .collection:
      export.documents = try ExportedDocuments(name: path, outputs: try outputs(ofKind: path), expectedCount: nil)
    case .output: export.documents = try ExportedDocuments(name: path, outputs: [path], expectedCount: nil)
    }
    return export
  }

  // MARK: Search

  /// Searches a folder and, level by level, those below it for a file that begins an export.
  private static func find(inFolder path: String, _ parts: ExportParts) throws(FixtureTreeError) -> ExportFolder? {
    var level = [path]
    var visited = 0
    /// The folders with accounts or files that metadata should name.
    var others: [String] = []
    for _ in 0...depthMax {
      var files: [String] = []
      var below: [String] = []
      for folder in level {
        visited += 1
        guard visited <= visitedMax else { return nil }
        for entry in try FolderEntries.list(folder) {
          if isOtherPart(entry.path, parts) { others.append(entry.path) }
          if entry.isFolder { below.append(entry.path) } else if Kind(entry.path) != nil { files.append(entry.path) }
        }
      }
      for kind in [Kind.whole, .documents, .collection] {
        let found = files.filter { Kind($0) == kind }
        if let link = found.first(where: isUnusable) {
          throw FixtureTreeError(
            file: link, message: "is not a regular file; the import follows no symbolic links here, so copy the file")
        }
        guard let first = found.first else { continue }
        guard found.count == 1 else {
          throw FixtureTreeError(
            file: path,
            message: "the folder contains several exports; name one of them: \(found.prefix(5).joined(separator: ", "))"
          )
        }
        if kind == .documents, let part = others.first {
          throw FixtureTreeError(
            file: path,
            message: "the folder contains accounts or files (\(part)), but not \(metadataFile), which names them; "
              + "restore that file, or name the documents to import only them: \(folder(of: first))")
        }
        return try open(first, kind, parts)
      }
      level = below
    }
    return nil
  }

  /// Whether a path has the name that the Emulator Suite gives to the wanted accounts or files of an export.
  private static func isOtherPart(_ path: String, _ parts: ExportParts) -> Bool {
    let name = path.utf8.suffix(while: { $0 != UInt8(ascii: "/") })
    return name.elementsEqual(accountsFolder.utf8) && parts.contains(.accounts)
      || name.elementsEqual(filesFolder.utf8) && parts.contains(.files)
  }

  /// Whether a path is a link or a special file.
  private static func isUnusable(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
  }

  // MARK: Metadata

  private static func whole(_ path: String, _ parts: ExportParts) throws(FixtureTreeError) -> ExportFolder {
    let root = try JSONTree.read(ByteSource(file: path), bytesMax: ExportLimits.metadataBytesMax)
    let folder = folder(of: path)
    var export = ExportFolder(path: folder)
    guard case .object(let members) = root.kind else {
      throw FixtureTreeError(file: path, message: "is not the metadata of a Firebase export, which is a JSON object")
    }
    for member in members where member.name != "version" {
      switch member.name {
      case "firestore":
        export.parts.insert(.documents)
        guard parts.contains(.documents) else { continue }
        let file = try text("metadata_file", of: member.value, path)
        export.documents = try documents(try place(file, in: folder, namedBy: path))
      case "auth":
        export.parts.insert(.accounts)
        guard parts.contains(.accounts) else { continue }
        let part = try place(try text("path", of: member.value, path), in: folder, namedBy: path)
        export.accountsFile = "\(part)/accounts.json"
        // A missing folder is reported together with the file.
        for entry in isFolder(part) ? try FolderEntries.list(part) : [] where !entry.isFolder {
          let name = String(Substring(entry.path.utf8.suffix(while: { $0 != UInt8(ascii: "/") })))
          if name.hasPrefix("accounts-"), name.hasSuffix(".json") { export.tenantFiles.append(entry.path) }
        }
      case "storage":
        export.parts.insert(.files)
        guard parts.contains(.files) else { continue }
        export.storageFolder = try place(try text("path", of: member.value, path), in: folder, namedBy: path)
      default: export.otherParts.append(member.name)
      }
    }
    guard members.contains(where: { $0.name != "version" }) else {
      throw FixtureTreeError(
        file: path, message: "names no part of an export; make the export again, or restore the file")
    }
    return export
  }

  private static func text(_ name: String, of value: JSONTree, _ path: String) throws(FixtureTreeError) -> String {
    guard let text = value.member(name)?.text else {
      throw FixtureTreeError(file: path, line: value.line, column: value.column, message: "the part lacks \"\(name)\"")
    }
    return text
  }

  private static func documents(_ path: String) throws(FixtureTreeError) -> ExportedDocuments {
    let folder = folder(of: path)
    var files: [String] = []
    var expected: Int? = 0
    for pointer in try ExportMetadata.overall(try bytes(of: path), name: path) {
      files += try outputs(ofKind: try place(pointer.file, in: folder, namedBy: path))
      expected = expected.flatMap { sum in
        pointer.documents.flatMap { more in
          let (total, isTooLarge) = sum.addingReportingOverflow(more)
          return isTooLarge ? nil : total
        }
      }
      guard files.count <= ExportLimits.outputFilesMax else {
        throw FixtureTreeError(
          file: path, message: "the export has more than \(ExportLimits.outputFilesMax) output files")
      }
    }
    return try ExportedDocuments(name: path, outputs: files, expectedCount: expected)
  }

  private static func outputs(ofKind path: String) throws(FixtureTreeError) -> [String] {
    let folder = folder(of: path)
    var paths: [String] = []
    for name in try ExportMetadata.outputs(try bytes(of: path), name: path) {
      paths.append(try place(name, in: folder, namedBy: path))
    }
    return paths
  }

  /// Returns the path of a file that metadata name relative to their folder.
  /// - Throws: ``FixtureTreeError`` if it is not below that folder.
  private static func place(
    _ relative: String, in folder: String, namedBy file: String
  ) throws(FixtureTreeError) -> String {
    let parts = relative.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let isInside = parts.allSatisfy { part in
      !part.isEmpty && !part.elementsEqual("..".utf8) && !part.contains(0)
    }
    guard isInside else {
      throw FixtureTreeError(file: file, message: "names the file \"\(relative)\", which is not below its own folder")
    }
    return "\(folder)/\(relative)"
  }

  private static func bytes(of path: String) throws(FixtureTreeError) -> [UInt8] {
    let file = try StampedFile(path)
    guard file.stamp.size <= ExportLimits.metadataBytesMax else {
      throw FixtureTreeError(file: path, message: "is longer than \(ExportLimits.metadataBytesMax) bytes")
    }
    var bytes = [UInt8](repeating: 0, count: file.stamp.size)
    var count = 0
    var failure: FixtureTreeError?
    bytes.withUnsafeMutableBytes { buffer in
      do throws(FixtureTreeError) { count = try file.read(into: buffer) } catch { failure = error }
    }
    if let failure { throw failure }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Returns the folder of a file.
  private static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.utf8.startIndex ? "/" : String(Substring(path.utf8[..<slash]))
  }
}

extension String.UTF8View {
  fileprivate func hasSuffix(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }

  /// Returns the longest end of the text whose bytes all satisfy a condition.
  fileprivate func suffix(while isPart: (UInt8) -> Bool) -> SubSequence {
    let start = lastIndex { !isPart($0) }.map { index(after: $0) } ?? startIndex
    return self[start...]
  }
}
