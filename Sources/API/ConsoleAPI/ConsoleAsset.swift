import CConsole
import Basics
import Compression
import Digests

/// A file that browsers load for the console. Its URL contains the digest of its content, so a browser can keep it
/// forever.
struct ConsoleAsset: Sendable {
  let name: String
  let type: StaticString
  let bytes: [UInt8]
  /// The content compressed with gzip, or `nil` if the compression failed.
  let compressed: [UInt8]?
  /// The first 16 hexadecimal digits of the content's SHA-256.
  let digest: String

  private init(_ name: String, type: StaticString, _ bytes: [UInt8]) {
    self.name = name
    self.type = type
    self.bytes = bytes
    compressed = try? Compressor(.gzip).encode(bytes, isLast: true)
    let sum = bytes.withUnsafeBytes { MessageDigest.compute(.sha256, $0) } ?? []
    digest = Hexadecimal.text(sum.prefix(8))
  }

  /// All scripts but that of the first requests, joined into one module.
  static let script = ConsoleAsset("console.js", type: "text/javascript; charset=utf-8", joinedScripts())
  /// The page, with names in double braces in place of the parts that each response fills in. It contains the style
  /// sheet and the script of the first requests, so the browser paints the frame without another request, and the data
  /// arrives while it loads the other scripts.
  static let page = text(of: "index.html")
    .replacing("{{style}}", with: text(of: "console.css"))
    .replacing("{{early}}", with: text(of: "early.js"))
    .replacing("{{script}}", with: "a/\(script.digest)/\(script.name)")

  /// Joins the scripts in the order of the embedded files, without their lines with an import and the word `export`. So
  /// a browser sends one request for all of them. Names at the top of scripts are unique.
  private static func joinedScripts() -> [UInt8] {
    var joined: [UInt8] = []
    for index in 0..<console_file_count() {
      let file = console_file_at(index)
      let name = String(cString: file.name)
      guard name.hasSuffix(".js"), name != "early.js" else { continue }
      let lines = UnsafeBufferPointer(start: file.bytes, count: file.count)
        .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      for line in lines {
        if line.starts(with: "import {".utf8), line.suffix(5).elementsEqual(".js\";".utf8) { continue }
        joined += line.starts(with: "export ".utf8) ? line.dropFirst(7) : line
        joined.append(UInt8(ascii: "\n"))
      }
    }
    return joined
  }

  private static func text(of name: String) -> String { String(decoding: content(of: name), as: UTF8.self) }

  private static func content(of name: String) -> [UInt8] {
    for index in 0..<console_file_count() {
      let file = console_file_at(index)
      if String(cString: file.name) == name { return Array(UnsafeBufferPointer(start: file.bytes, count: file.count)) }
    }
    return []
  }
}
