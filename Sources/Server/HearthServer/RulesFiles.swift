import DatabaseService
import Dispatch
import DocumentModel
import Glibc
import RulesEngine
import Synchronization

/// The rules files of a configuration. They are read at the start, and again when they change.
///
/// If a changed file cannot be read or does not compile, its previous rules stay in force and a warning is logged.
final class RulesFiles: Sendable {
  let files: [HearthConfiguration.RulesFile]
  private let registry: RulesRegistry
  /// The file of rules for files, if any, and the destination of its rules.
  private let storagePath: String?
  private let fileRules: FileRules
  private let storageStamp: Mutex<FileStamp>
  private let configuration: HearthConfiguration
  private let stamps: Mutex<[FileStamp]>
  /// The files whose current content is not in force.
  private let stale = Mutex<Set<String>>([])

  /// Reads the files into the registries.
  /// - Throws: ``HearthError/data(_:)`` for the first file that does not compile, with every mistake and its
  ///   location; ``HearthError/configuration(_:)`` if a database has two files.
  init(_ configuration: HearthConfiguration, _ registry: RulesRegistry, _ fileRules: FileRules) throws(HearthError) {
    files = configuration.rules
    storagePath = configuration.storageRules
    self.fileRules = fileRules
    storageStamp = Mutex(FileStamp(configuration.storageRules ?? ""))
    self.registry = registry
    self.configuration = configuration
    stamps = Mutex(files.map { FileStamp($0.path) })
    for (index, file) in files.enumerated() {
      guard !files[..<index].contains(where: { $0.database == file.database }) else {
        let owner = file.database.map { "database \($0) has" } ?? "there are"
        throw .configuration("\(owner) two rules files; specify only one")
      }
      registry.set(try Self.compile(file.path), forDatabase: file.database)
    }
    if let storagePath { fileRules.set(try Self.compile(storagePath, service: FileRules.service)) }
  }

  /// The number of files whose current content is not in force because it does not compile.
  var staleCount: Int { stale.withLock { $0.count } }

  /// Whether there are no files to watch.
  var isEmpty: Bool { files.isEmpty && storagePath == nil }

  /// Reads the files that changed since the last call, or every file if `all` is set.
  func reload(all: Bool = false) {
    reloadStorage(all: all)
    stamps.withLock { stamps in
      for (index, file) in files.enumerated() {
        let stamp = FileStamp(file.path)
        guard all || stamp != stamps[index] else { continue }
        stamps[index] = stamp
        do throws(HearthError) {
          registry.set(try Self.compile(file.path), forDatabase: file.database)
          log(file.path, nil)
        } catch { log(file.path, error) }
      }
    }
  }

  private func reloadStorage(all: Bool) {
    guard let path = storagePath else { return }
    storageStamp.withLock { stamp in
      let now = FileStamp(path)
      guard all || now != stamp else { return }
      stamp = now
      do throws(HearthError) {
        fileRules.set(try Self.compile(path, service: FileRules.service))
        log(path, nil)
      } catch { log(path, error) }
    }
  }

  private func log(_ path: String, _ error: HearthError?) {
    stale.withLock { stale in
      if error == nil { stale.remove(path) } else { stale.insert(path) }
    }
    guard let error else {
      return configuration.log(
        .info, "rules.reloaded", "\(path): the rules were reloaded", [("file", .text(path))])
    }
    configuration.log(
      .warn, "rules.refused",
      "\(error.description)\nWARNING: \(path) is NOT in force; the previous rules of this file stay in force",
      [("file", .text(path))])
  }

  private static func compile(_ path: String, service: String = "cloud.firestore") throws(HearthError) -> Ruleset {
    let bytes = try read(path)
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .data("\(path): not UTF-8") }
    do throws(RulesetError) { return try Ruleset(compiling: text, service: service) } catch {
      let errors = error.diagnostics.filter { $0.severity == .error }
      throw .data(errors.map { $0.rendered(file: path) }.joined(separator: "\n"))
    }
  }

  static func read(_ path: String) throws(HearthError) -> [UInt8] {
    guard let file = fopen(path, "re") else { throw .data("\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    // Reads one byte more than the limit, so that the compiler reports the limit.
    var bytes = [UInt8](repeating: 0, count: SourceText.bytesMax + 1)
    let count = fread(&bytes, 1, bytes.count, file)
    guard ferror(file) == 0 else { throw .data("\(path): cannot be read") }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
