/// Paths of this machine, read by bytes as the system does: a slash and a combining mark behind it are one `Character`.
enum LocalPath {
  private static let slash = UInt8(ascii: "/")

  /// The folder that holds what a path names: `.` for a name alone, `/` for one below it.
  static func folder(of path: String) -> String {
    guard let end = path.utf8.lastIndex(of: slash) else { return "." }
    return end == path.utf8.startIndex ? "/" : String(Substring(path.utf8[..<end]))
  }

  /// A path without the slashes at its end; all slashes are `/`.
  static func withoutLastSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
    return String(Substring(bytes))
  }
}
