import Foundation
import Glibc

/// A Markdown page with commands that a test runs the way a reader would type them.
///
/// A mark on its own line gives the kind of the next fenced block:
///
/// - `<!-- run -->`: shell commands. All of a page's blocks run in one shell and folder.
/// - `<!-- run python -->`: a program for the Python of ``PythonClients``. It is skipped if Python is not installed.
/// - `<!-- serve -->`: a `hearth serve …` command, which keeps running for the blocks after it. Those run in a new
///   shell in the same folder, as in a second terminal. The test uses another port than the page's 8080. It replaces
///   `127.0.0.1:8080` and `localhost:8080` in all commands of the page, including those before this block, and in
///   their output.
///
/// A fenced block directly after a block to run is its expected output, except for times, tokens and IDs from the
/// server. A block without expected output must succeed.
package struct GuidePage: Sendable {
  /// The kind of a marked block.
  package enum Kind: Sendable { case shell, python, serve }

  /// A marked block and the expected output that follows it, if any.
  package struct Block: Sendable {
    package var kind: Kind
    /// The line of the mark, from 1.
    package var line: Int
    package var commands: String
    package var output: String?
  }

  /// The path of the page, relative to the repository's root.
  package let path: String
  package let blocks: [Block]
  /// Lines of command blocks without a mark, which no test runs.
  package let unmarkedLines: [Int]

  package static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .path

  /// Reads the page at `path`, relative to the repository's root.
  /// - Throws: the error of the file system if the page cannot be read.
  package init(path: String) throws {
    self.path = path
    let lines = try String(contentsOfFile: "\(Self.root)/\(path)", encoding: .utf8).components(separatedBy: "\n")
    var blocks: [Block] = []
    var unmarkedLines: [Int] = []
    var index = 0
    while index < lines.count {
      let kind = Self.marks[lines[index]]
      if let kind, index + 1 < lines.count {
        let (commands, next) = Self.block(lines, at: index + 1)
        let hasOutput = kind != .serve && next < lines.count && lines[next].hasPrefix("```")
        let output = hasOutput ? Self.block(lines, at: next) : nil
        blocks.append(Block(kind: kind, line: index + 1, commands: commands, output: output?.text))
        index = output?.next ?? next
      } else if lines[index].hasPrefix("```") {
        if ["```sh", "```bash", "```python", "```console"].contains(lines[index]) { unmarkedLines.append(index + 1) }
        index = Self.block(lines, at: index).next
      } else {
        index += 1
      }
    }
    self.blocks = blocks
    self.unmarkedLines = unmarkedLines
  }

  private static let marks: [String: Kind] = [
    "<!-- run -->": .shell, "<!-- run python -->": .python, "<!-- serve -->": .serve,
  ]

  /// Returns the text between two fences and the number of the line after them.
  private static func block(_ lines: [String], at start: Int) -> (text: String, next: Int) {
    let inside = lines[(start + 1)...].prefix { !$0.hasPrefix("```") }
    return (inside.joined(separator: "\n"), start + inside.count + 2)
  }
}

/// A run of a page's commands in a separate folder that contains `fixtures` and `rules`, with `hearth` on the path.
package struct GuideRun: Sendable {
  /// One message for each block that failed or whose output differs from the page.
  package private(set) var problems: [String] = []
  /// The number of blocks skipped because Python is not installed.
  package private(set) var skippedCount = 0
  private let mayFail: Bool

  /// Runs the blocks of `page` in order. Blocks before the first `<!-- serve -->` use `server`, if it is not `nil`.
  /// `mayFail` allows blocks without expected output to fail.
  ///
  /// - Throws: ``ServerProcessError`` if a server does not start or the commands do not end within `timeoutSeconds`.
  package init(
    _ page: GuidePage, server: HearthProcess? = nil, mayFail: Bool = false, timeoutSeconds: Double = 150
  ) throws {
    self.mayFail = mayFail
    let folder = try TemporaryDirectory()
    let files = FileManager.default
    try files.createDirectory(atPath: folder.path + "/bin", withIntermediateDirectories: false)
    for name in ["fixtures", "rules"] {
      try files.createSymbolicLink(
        atPath: "\(folder.path)/\(name)", withDestinationPath: "\(GuidePage.root)/\(name)")
    }
    guard let hearth = HearthBinary.path else { throw ServerProcessError(description: "no hearth binary") }
    try files.createSymbolicLink(atPath: folder.path + "/bin/hearth", withDestinationPath: hearth)

    let reserved = try ReservedPort()
    var address = Address(port: server?.port ?? reserved.number)
    var serving: ServerProcess?
    defer { serving?.stop() }
    var pending: [GuidePage.Block] = []
    for block in page.blocks {
      guard block.kind == .serve else {
        pending.append(block)
        continue
      }
      try run(pending, of: page, at: address, in: folder.path, timeoutSeconds: timeoutSeconds)
      pending = []
      serving?.stop()
      reserved.listen()
      address.port = reserved.number
      // The server takes over the reserved socket, as it does from systemd, and then ignores its own --port.
      let serve = address.replacingPagePort(in: block.commands.trimmed)
      let command = Self.environment(folder.path, address) + "LISTEN_FDS=1 LISTEN_PID=$$ exec \(serve)\n"
      let process = try ServerProcess(
        executable: "/bin/bash", arguments: ["-c", command], socket: reserved.descriptor)
      serving = process
      let rest = try process.waitForLine(prefix: "hearth: listening on http", timeoutSeconds: 30)
      address.scheme = rest.hasPrefix("s") ? "https" : "http"
    }
    try run(pending, of: page, at: address, in: folder.path, timeoutSeconds: timeoutSeconds)
  }

  private static func environment(_ folder: String, _ address: Address) -> String {
    """
    cd '\(folder)'
    export PATH="$PWD/bin:$PATH" HEARTH_SERVER='\(address.url)' PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
    unset HEARTH_PROJECT GOOGLE_CLOUD_PROJECT FIRESTORE_EMULATOR_HOST FIREBASE_AUTH_EMULATOR_HOST
    python3() { '\(PythonClients.interpreter ?? "/usr/bin/python3")' "$@"; }

    """
  }

  /// Runs blocks in one shell and compares what each prints.
  private mutating func run(
    _ blocks: [GuidePage.Block], of page: GuidePage, at address: Address, in folder: String, timeoutSeconds: Double
  ) throws {
    let ran = blocks.filter { $0.kind != .python || PythonClients.interpreter != nil }
    skippedCount += blocks.count - ran.count
    guard !ran.isEmpty else { return }
    var script = Self.environment(folder, address)
    for block in ran {
      let text = address.replacingPagePort(in: block.commands)
      script += "printf '\\036'\n"
      script += block.kind == .python ? "python3 - <<'END OF PROGRAM'\n\(text)\nEND OF PROGRAM\n" : text + "\n"
      // Keep the exit status of a block for the next one, as a terminal does.
      script += "status=$?; printf '\\037%d' $status; (exit $status)\n"
    }
    let shell = try ServerProcess(executable: "/bin/bash", arguments: ["-c", script])
    guard shell.waitForExit(timeoutSeconds: timeoutSeconds) != nil else {
      shell.stop()
      throw ServerProcessError(description: "the commands of \(page.path) do not end:\n\(shell.output)")
    }
    // The part before the first mark is output of the shell itself.
    let parts = shell.output.components(separatedBy: "\u{1E}")
    guard parts.count == ran.count + 1, parts[0].isEmpty else {
      throw ServerProcessError(description: "the shell of \(page.path) stopped early:\n\(shell.output)")
    }
    for (block, part) in zip(ran, parts.dropFirst()) {
      let (printed, status) = Self.statusCut(part)
      let place = "\(page.path):\(block.line): "
      if let expected = block.output {
        let (actual, shown) = (Self.normalized(printed, address), Self.normalized(expected, address))
        if actual != shown {
          problems.append("\(place)\(block.commands)\n--- shown\n\(shown)\n--- printed\n\(actual)")
        }
      } else if status != 0, !mayFail {
        problems.append("\(place)exits with \(status): \(block.commands)\n\(printed)")
      }
    }
  }

  /// Splits the output of a block from the exit status after it.
  private static func statusCut(_ part: String) -> (printed: String, status: Int) {
    guard let mark = part.lastIndex(of: "\u{1F}") else { return (part, 0) }
    return (String(part[..<mark]), Int(part[part.index(after: mark)...].trimmed) ?? 0)
  }

  /// Replaces values that differ from run to run: times from the server, its address, tokens and random IDs. Times
  /// that commands write have no fraction. The number of index entries depends on the storage format.
  private static func normalized(_ text: String, _ address: Address) -> String {
    address.restoringPagePort(in: text)
      .replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/, with: "TIME")
      .replacing(/"nextPageToken": "[^"]+"/, with: "\"nextPageToken\": TOKEN")
      .replacing(/"resumeToken":"[^"]+"/, with: "\"resumeToken\":TOKEN")
      .replacing(/id: [A-Za-z0-9+\/=]{12,}/, with: "id: TOKEN")
      .replacing(/\b[A-Za-z0-9]{28}\b/, with: "UID")
      .replacing(/\b[A-Za-z0-9]{20}\b/, with: "ID")
      .replacing(/W\/"[0-9a-v-]+"/, with: "ETAG")
      .replacing(/\(\d+\.\d ms\)/, with: "(N ms)")
      .replacing(/\d+ index entries/, with: "N index entries")
      .trimmed
  }
}

/// The address of a page's server in this run. The page itself uses port 8080.
private struct Address {
  var scheme = "http"
  var port: UInt16

  private static let hosts = ["127.0.0.1", "localhost"]

  var url: String { "\(scheme)://127.0.0.1:\(port)" }

  /// Replaces the port of the page with the port of this run.
  func replacingPagePort(in text: String) -> String {
    Self.hosts.reduce(text) { $0.replacingOccurrences(of: "\($1):8080", with: "\($1):\(port)") }
  }

  /// Replaces the port of this run with the port of the page.
  func restoringPagePort(in text: String) -> String {
    Self.hosts.reduce(text) { $0.replacingOccurrences(of: "\($1):\(port)", with: "\($1):8080") }
  }
}

/// A port of 127.0.0.1, reserved while a page runs. Commands can name it before a server listens on it, for example to
/// create a key with `--url`.
private final class ReservedPort {
  let number: UInt16
  /// The bound socket. Connections are refused until ``listen()`` is called.
  let descriptor: Int32

  /// Reserves a port.
  /// - Throws: ``LoopbackError`` if the system has no free port.
  init() throws {
    (descriptor, number) = try LoopbackAddress.bind()
  }

  deinit { close(descriptor) }

  /// Makes the socket listen, so that a server can take it over. Further calls have no effect.
  func listen() { _ = Glibc.listen(descriptor, 512) }
}

extension StringProtocol {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
