/// Entry points for fuzzing: they accept any bytes, and must neither trap nor hang.
package enum HostingFuzz {
  private static let paths = ["/", "/a/b.html", "/blog/2024/post", "/\\x", "/.env", "/a//b/", "/%"].compactMap {
    SitePath($0)
  }

  /// Reads a `firebase.json`, and matches paths with its rules.
  package static func configuration(_ bytes: UnsafeRawBufferPointer) {
    guard let entries = try? HostingFile.read(Array(bytes)) else { return }
    for entry in entries.prefix(4) {
      let site = Site(folder: "/nonexistent", rules: entry.rules, cache: FileContentCache(bytesMax: 0))
      for path in paths {
        _ = try? site.response(to: path, .none)
        _ = entry.rules.rewrites.first(for: path.bytes) { $0 }
        entry.rules.headers.forEach(for: path.bytes) { _ in }
        _ = entry.rules.ignored.contains(path)
      }
    }
  }

  /// Decodes a path, the languages of a request, and a glob. A decoded path has no segment that leads upwards.
  package static func path(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = Languages(acceptLanguage: text, country: text, cookie: text).folders
    if let pattern = try? PathPattern(glob: String(text.prefix(256)), hasCaptures: true) {
      let target = RedirectTarget(text, source: pattern)
      for path in paths where pattern.matches(path.bytes) {
        let location = target.location(for: path.bytes)
        precondition(location?.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ?? true)
      }
    }
    guard let path = SitePath(decoding: bytes) else { return }
    precondition(path.bytes.first == UInt8(ascii: "/") && path.bytes.allSatisfy { $0 >= 0x20 })
    let segments = path.relative.split(separator: "/")
    precondition(!segments.contains("..") && !segments.contains("."))
    // The encoded form is the same path.
    let encoded = Array(path.encoded.utf8)
    precondition(encoded.withUnsafeBytes { SitePath(decoding: $0) } == path)
  }
}
