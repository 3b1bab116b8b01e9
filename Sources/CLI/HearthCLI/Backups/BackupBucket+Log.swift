extension BackupBucket {
  var appendsToLogFiles: Bool { false }

  /// The common part of the names of the files, which a removal of the backup removes with its other data.
  private static func folder(_ name: BackupName) -> String { "data/\(name.text)/log/" }

  func logFiles(of name: BackupName) throws -> [String] {
    let folder = Self.folder(name)
    var files: [String] = []
    try store.list(folder) { page in
      for object in page where object.name.hasPrefix(folder) {
        files.append(String(object.name.dropFirst(folder.count)))
      }
    }
    return files.sorted()
  }

  func logFile(_ file: String, of name: BackupName) throws -> [UInt8]? { try store.get(Self.folder(name) + file) }

  func writeLogFile(_ file: String, _ content: [UInt8], of name: BackupName) throws {
    try store.put(Self.folder(name) + file, content)
  }

  func appendToLogFile(_ file: String, _ content: [UInt8], at offset: Int, of name: BackupName) throws {
    guard offset == 0 else { throw CommandFailure.failed("objects of \(text) cannot be appended to") }
    try store.put(Self.folder(name) + file, content)
  }
}
