import Foundation

/// The files of this repository.
enum Repository {
  /// The repository's root.
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// Every Swift file below `Sources`.
  static let sources = swiftFiles(below: "Sources")

  /// Every Swift file below `Tests`.
  static let tests = swiftFiles(below: "Tests")

  /// `Package.swift`.
  static let package = SwiftFile(path: "Package.swift", text: text(of: "Package.swift"))

  /// The paths of all files of the repository, relative to the root and sorted. Excludes hidden files (except `.ci`)
  /// and files that builds and servers create.
  static let paths: [String] = {
    var paths: [String] = []
    let enumerator = FileManager.default.enumerator(atPath: root)
    while let path = enumerator?.nextObject() as? String {
      let name = path.split(separator: "/").last ?? ""
      if (name.hasPrefix(".") && name != ".ci") || name == "hearth-data" {
        enumerator?.skipDescendants()
      } else if enumerator?.fileAttributes?[.type] as? FileAttributeType == .typeRegular {
        paths.append(path)
      }
    }
    return paths.sorted()
  }()

  /// The text of a file.
  static func text(of path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: "\(root)/\(path)") ?? Data(), as: UTF8.self)
  }

  private static func swiftFiles(below folder: String) -> [SwiftFile] {
    paths.filter { $0.hasPrefix("\(folder)/") && $0.hasSuffix(".swift") }.map {
      SwiftFile(path: $0, text: text(of: $0))
    }
  }
}

/// A Swift file in two forms: as written, and with comments and the contents of strings blanked out. Both have the
/// same lines.
struct SwiftFile: Sendable {
  /// Relative to the root.
  let path: String
  let lines: [Substring]
  /// The lines without comments and without the contents of strings.
  let code: [Substring]

  init(path: String, text: String) {
    self.path = path
    lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    code = SwiftFile.blanked(text).split(separator: "\n", omittingEmptySubsequences: false)
  }

  /// The file's target: in `Tests` the first folder; in `Sources` the first folder that names a target, since targets
  /// are grouped (`Sources/Storage/DocumentStore`).
  var target: String {
    let folders = path.split(separator: "/").dropFirst().dropLast().map(String.init)
    let isGrouped = path.hasPrefix("Sources/") && folders.count > 1 && !["Basics", "Watch"].contains(folders[0])
    return isGrouped ? folders[1] : folders.first ?? ""
  }

  /// The lines of code that satisfy a predicate, as `path:line: text`.
  func places(where matches: (Substring) -> Bool) -> [String] {
    code.indices.filter { matches(code[$0]) }.map { "\(path):\($0 + 1): \(lines[$0].drop { $0 == " " })" }
  }

  private enum State {
    case code
    case lineComment
    case blockComment(depth: Int)
    case string(quotes: Int, hashes: Int)
  }

  /// Replaces comments and the contents of strings with spaces. An interpolation is part of its string.
  private static func blanked(_ text: String) -> String {
    let bytes = Array(text.utf8)
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count)
    var state = State.code
    var index = 0
    func at(_ offset: Int, _ expected: String) -> Bool { bytes[offset...].starts(with: expected.utf8) }
    func skip(_ count: Int) {
      for offset in index..<min(index + count, bytes.count) {
        out.append(bytes[offset] == UInt8(ascii: "\n") ? bytes[offset] : UInt8(ascii: " "))
      }
      index += count
    }
    while index < bytes.count {
      switch state {
      case .code:
        let hashes = bytes[index...].prefix { $0 == UInt8(ascii: "#") }.count
        if at(index, "//") {
          state = .lineComment
        } else if at(index, "/*") {
          state = .blockComment(depth: 1)
          skip(2)
        } else if at(index + hashes, "\"") {
          let quotes = at(index + hashes, "\"\"\"") ? 3 : 1
          state = .string(quotes: quotes, hashes: hashes)
          skip(hashes + quotes)
        } else {
          out.append(bytes[index])
          index += 1
        }
      case .lineComment:
        if at(index, "\n") { state = .code }
        skip(1)
      case .blockComment(let depth):
        if at(index, "/*") {
          state = .blockComment(depth: depth + 1)
          skip(2)
        } else if at(index, "*/") {
          state = depth == 1 ? .code : .blockComment(depth: depth - 1)
          skip(2)
        } else {
          skip(1)
        }
      case .string(let quotes, let hashes):
        let fence = String(repeating: "#", count: hashes)
        if at(index, "\\" + fence) {
          skip(2 + hashes)
        } else if at(index, String(repeating: "\"", count: quotes) + fence) {
          state = .code
          skip(quotes + hashes)
        } else {
          skip(1)
        }
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
