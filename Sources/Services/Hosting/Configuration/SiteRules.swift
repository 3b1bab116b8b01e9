/// The compiled rules of a site: one entry of `hosting` in `firebase.json`.
package struct SiteRules: Sendable {
  /// How requests with and without a slash at the end of the path are redirected.
  enum TrailingSlash: Sendable { case asStored, always, never }

  struct Redirect: Sendable {
    let target: RedirectTarget
    let status: Int
  }

  enum Rewrite: Sendable {
    /// To a file of the site.
    case file(SitePath)
    /// To a service that the server does not have, such as `function`.
    case unserved(String)
  }

  /// The files that are not part of the site.
  var ignored = IgnoredFiles.standard
  var redirects = RuleList<Redirect>()
  var rewrites = RuleList<Rewrite>()
  var headers = RuleList<[SiteHeader]>()
  var hasCleanURLs = false
  var trailingSlash = TrailingSlash.asStored
  /// The folder of translated content, with a slash at its start and none at its end, or `nil` if the site has none.
  var translations: [UInt8]?

  /// Creates the rules of a site without configuration.
  package init() {}
}

/// A header field that the configuration adds to responses.
package struct SiteHeader: Sendable, Equatable {
  package let name: String
  package let value: String

  /// Fields that describe the message or its validators, which the server writes itself.
  private static let reserved: Set<String> = [
    "connection", "content-encoding", "content-length", "content-range", "date", "etag", "keep-alive", "last-modified",
    "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// Checks a field. Returns `nil` if the name is not a token or is reserved, or the value contains a control
  /// character.
  init?(name: String, value: String) {
    let isToken = name.utf8.allSatisfy {
      $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || "!#$%&'*+-.^_`|~".utf8.contains($0)
    }
    guard !name.isEmpty, isToken, !Self.reserved.contains(name.lowercased()),
      value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { return nil }
    (self.name, self.value) = (name, value)
  }
}

/// The files below a site's folder that requests cannot reach, as patterns of `ignore`.
///
/// A pattern without a slash matches names in every folder. A pattern that matches a folder also covers its content.
struct IgnoredFiles: Sendable {
  private var patterns: [PathPattern] = []

  /// The patterns that Firebase's tools write into a new `firebase.json`.
  static let standard: IgnoredFiles = {
    var files = IgnoredFiles()
    for pattern in ["firebase.json", "**/.*", "**/node_modules/**"] { try? files.append(pattern) }
    return files
  }()

  /// Creates a list that covers only the logs that Firebase's tools write.
  init() {
    for pattern in ["firebase-debug.log", "firebase-debug.*.log", ".firebase"] { try? append(pattern) }
  }

  /// Adds a pattern.
  /// - Throws: ``PathPattern/Failure`` if it is not valid.
  mutating func append(_ text: String) throws(PathPattern.Failure) {
    let isName = !text.utf8.dropLast().contains(UInt8(ascii: "/"))
    var text = text.utf8.last == UInt8(ascii: "/") ? String(text.dropLast()) : text
    // `a/**` covers the content of `a`, and so does `a`.
    if text.hasSuffix("/**"), text.utf8.count > 3 { text = String(text.dropLast(3)) }
    patterns.append(try PathPattern(glob: isName ? "**/" + text : text))
  }

  /// Whether the file, or a folder that contains it, matches.
  func contains(_ path: SitePath) -> Bool {
    guard !patterns.isEmpty else { return false }
    let bytes = path.bytes
    for end in bytes.indices.dropFirst() where bytes[end] == UInt8(ascii: "/") {
      let folder = Array(bytes[..<end])
      if patterns.contains(where: { $0.matches(folder) }) { return true }
    }
    return patterns.contains { $0.matches(bytes) }
  }
}

extension SiteRules {
  /// The rules of a folder whose files never change, because their paths contain a version.
  package static var immutable: SiteRules {
    var rules = SiteRules()
    if let pattern = try? PathPattern(glob: "**"),
      let header = SiteHeader(name: "Cache-Control", value: "public, max-age=31536000, immutable")
    {
      rules.headers.append([header], when: pattern)
    }
    return rules
  }
}
