/// The place of shared content, as an option names it: a folder, `postgres`, or a bucket.
package enum SharedContentChoice: Equatable, Sendable {
  /// A folder on a file system that all nodes mount. The path is absolute.
  case folder(String)
  /// The PostgreSQL database of the cluster.
  case postgres
  /// A bucket with the API of Amazon S3. The prefix is empty or ends with a slash.
  case s3(bucket: String, prefix: String)
  /// A bucket of Cloud Storage. The prefix is empty or ends with a slash.
  case cloudStorage(bucket: String, prefix: String)

  /// A text that names no place. It describes the problem and the remedy.
  package struct Invalid: Error, Equatable, Sendable, CustomStringConvertible {
    /// A text for the user.
    package let description: String
  }

  /// The forms, for help texts.
  package static let forms = "DIR|postgres|s3://BUCKET/PREFIX|gs://BUCKET/PREFIX"

  /// Parses the text of an option.
  /// - Throws: ``Invalid`` if the text has none of the forms.
  package init(_ text: String) throws(Invalid) {
    if text == "postgres" {
      self = .postgres
      return
    }
    guard let end = text.utf8.indices.first(where: { text.utf8[$0...].starts(with: "://".utf8) }) else {
      guard text.hasPrefix("/") else {
        throw Invalid(
          description: text.isEmpty
            ? "the place of shared files must not be empty; write \(Self.forms)"
            : "'\(text)' is not a place of shared files; write an absolute path such as /srv/\(text), postgres, "
              + "s3://BUCKET/PREFIX or gs://BUCKET/PREFIX")
      }
      var path = text
      while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
      guard path != "/" else {
        throw Invalid(description: "the shared files must not be in the folder /; name a folder of their own")
      }
      self = .folder(path)
      return
    }
    let (scheme, rest) = (text[..<end], text[text.utf8.index(end, offsetBy: 3)...])
    guard scheme == "s3" || scheme == "gs" else {
      throw Invalid(
        description: "'\(text)' is not a place of shared files: \(scheme):// is unknown; write \(Self.forms)")
    }
    let parts = rest.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let bucket = parts.first.map(String.init), !bucket.isEmpty else {
      throw Invalid(description: "'\(text)' names no bucket; write \(scheme)://BUCKET or \(scheme)://BUCKET/PREFIX")
    }
    var prefix = parts.count == 2 ? String(parts[1]) : ""
    while prefix.hasSuffix("/") { prefix.removeLast() }
    if !prefix.isEmpty { prefix += "/" }
    self = scheme == "s3" ? .s3(bucket: bucket, prefix: prefix) : .cloudStorage(bucket: bucket, prefix: prefix)
  }
}
