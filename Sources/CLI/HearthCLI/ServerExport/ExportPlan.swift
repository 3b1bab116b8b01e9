import Accounts
import DocumentModel
import FixtureTree
import Glibc
import WireFormat

/// The parts of an export from a server, as the file `plan.json` keeps them so that the export can be resumed.
struct ExportPlan: Equatable {
  /// The server, the database and the path. An interrupted export continues only if they are the same.
  struct Source: Equatable {
    var server: String
    var database: DatabaseID
    var path: String
  }

  var source: Source
  /// The moment that all parts show, or `nil` if each document is shown as of the moment it is read.
  var readTime: Timestamp?
  /// The number of documents, if the server counted them.
  var count: Int?
  /// The names of each part, in order.
  var ranges: [NameInterval]

  /// The plan as JSON.
  var json: [UInt8] {
    var map = MapValue([
      ("server", .string(source.server)), ("project", .string(source.database.project)),
      ("database", .string(source.database.database)), ("path", .string(source.path)),
      (
        "ranges",
        .array(
          ranges.map {
            .map(
              MapValue([
                ("parent", .string($0.parent.text)), ("lower", .string($0.lower)), ("upper", .string($0.upper)),
              ]))
          })
      ),
    ])
    if let readTime { map["readTime"] = .string(readTime.description) }
    if let count { map["count"] = .integer(Int64(count)) }
    return map.json
  }

  init(source: Source, readTime: Timestamp?, count: Int?, ranges: [NameInterval]) {
    self.source = source
    self.readTime = readTime
    self.count = count
    self.ranges = ranges
  }

  /// Parses a plan. Returns `nil` if the text is not one.
  init?(json: [UInt8]) {
    guard let map = MapValue(json: json), let server = map.text("server"), let project = map.text("project"),
      let name = map.text("database"), let database = DatabaseID(project: project, database: name),
      let path = map.text("path"), case .array(let rows)? = map["ranges"]
    else { return nil }
    source = Source(server: server, database: database, path: path)
    readTime = map.text("readTime").flatMap { Timestamp(rfc3339: $0.utf8) }
    count = map.integer("count").map { Int($0) }
    ranges = []
    for case .map(let row) in rows {
      guard let text = row.text("parent"), let parent = text.isEmpty ? .root : try? ResourcePath(text),
        let lower = row.text("lower"), let upper = row.text("upper")
      else { return nil }
      ranges.append(NameInterval(parent: parent, lower: lower, upper: upper))
    }
  }
}

/// The directory with the plan and the parts of an export from a server. One process uses it at a time.
final class PartsDirectory {
  let path: String
  /// The largest plan, in bytes: many thousand parts.
  private static let planBytesMax = 64 << 20

  /// Whether an interrupted export can continue here. Otherwise the directory is temporary.
  let isLasting: Bool
  private let lock: Int32
  private var isLocked = false

  /// Opens the directory of an output file, `FILE.parts`, or makes a temporary one.
  /// - Throws: ``CommandFailure`` if the directory cannot be used, or another process uses it.
  init(of output: String?) throws {
    isLasting = output != nil
    if let output {
      path = "\(output).parts"
      guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw Self.failure(path, "cannot be created") }
    } else {
      var template = Array("\(DatabaseChoice.environment("TMPDIR") ?? "/tmp")/hearth-export-XXXXXX".utf8CString)
      guard mkdtemp(&template) != nil else { throw Self.failure("$TMPDIR", "cannot be used") }
      path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    lock = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else { throw Self.failure(path, "cannot be used") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      throw CommandFailure.failed("another export uses \(path); wait for its end, or name another file")
    }
    isLocked = true
  }

  deinit {
    // Without a plan, a later export starts again.
    if isLocked, !isLasting || access(planFile, F_OK) != 0 { remove() }
    if lock >= 0 { close(lock) }
  }

  /// Returns the file of a part.
  func part(_ name: String) -> String { "\(path)/\(name).part" }

  private var planFile: String { "\(path)/plan.json" }

  /// Returns the plan of an interrupted export, or `nil` if no plan exists.
  /// - Throws: ``CommandFailure`` if the plan cannot be read.
  func plan() throws -> ExportPlan? {
    guard access(planFile, F_OK) == 0 else { return nil }
    let bytes = try ByteSource(file: planFile).readAll(bytesMax: Self.planBytesMax)
    guard let plan = ExportPlan(json: bytes) else {
      throw CommandFailure.data("\(planFile) is damaged; remove \(path) to start the export again")
    }
    return plan
  }

  /// Stores a plan.
  /// - Throws: ``CommandFailure`` if that fails.
  func store(_ plan: ExportPlan) throws {
    let file = try OutputFile(planFile)
    try file.write(plan.json)
    try file.finish()
  }

  /// Removes the directory.
  func remove() {
    guard let directory = opendir(path) else { return }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasSuffix(".part") || ["plan.json", "lock"].contains(name) { unlink("\(path)/\(name)") }
    }
    closedir(directory)
    rmdir(path)
  }

  private static func failure(_ path: String, _ what: String) -> CommandFailure {
    .failed("\(path) \(what): \(String(cString: strerror(errno)))")
  }
}
