import Foundation

/// The compiler, with the modules that this build has made.
enum Compiler {
  static let path: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return folders.map { "\($0)/swiftc" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  /// The folder of this build, `.build/debug`.
  private static let build = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  /// The name under which the build made the modules, by which the compiler recognizes parts of the same package.
  private static let packageName: String = {
    let plan = build.deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("debug.yaml")
    let text = (try? String(contentsOf: plan, encoding: .utf8)) ?? ""
    let name = text.firstMatch(of: /"-package-name","([^"]+)"/).map { String($0.output.1) }
    return name ?? URL(fileURLWithPath: Repository.root).lastPathComponent.lowercased()
  }()

  /// Checks the types of a program.
  static func check(_ code: String) throws -> (status: Int32, output: String) {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appendingPathComponent("hearth-typecheck-\(UUID().uuidString)")
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? files.removeItem(at: folder) }
    let source = folder.appendingPathComponent("Program.swift")
    try Data(code.utf8).write(to: source)
    let cModules = Repository.paths.filter { $0.hasPrefix("Sources/C/") && $0.hasSuffix("/module.modulemap") }
      .map { "\(Repository.root)/\($0)" }
    let builtModules = ["CICU", "CRE2", "CSimdjson", "CStemmer"].map { "\(build.path)/\($0).build/module.modulemap" }
    let output = Pipe()
    let process = Process()
    process.executableURL = path.map { URL(fileURLWithPath: $0) }
    process.arguments =
      [
        "-typecheck", "-swift-version", "6", "-enable-upcoming-feature", "MemberImportVisibility",
        "-enable-upcoming-feature", "InternalImportsByDefault", "-package-name", packageName,
        "-I", "\(build.path)/Modules",
      ]
      + (cModules + builtModules).filter { files.fileExists(atPath: $0) }.flatMap {
        ["-Xcc", "-fmodule-map-file=\($0)"]
      }
      + [source.path]
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
}
