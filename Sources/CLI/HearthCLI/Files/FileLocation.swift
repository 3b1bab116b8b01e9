import Files

/// The location of a file or a folder: in a bucket, or on this machine.
enum FileLocation: Equatable {
  /// A name in a bucket, or the common prefix of several names, which may be empty.
  case stored(bucket: String, name: String)
  /// All buckets of the project. On this machine, a folder with a folder per bucket corresponds to them.
  case buckets
  /// A path of this machine; `-` is standard output.
  case local(String)

  /// The option that names the default bucket.
  static let bucketOption = Command.Option.value(
    "bucket", "NAME", "the bucket for names that do not include one (default: PROJECT.appspot.com)")

  private static let scheme = "gs://"
  /// The separator in names and paths. Both are compared as bytes, as the system and the server do it.
  static let slash = UInt8(ascii: "/")

  /// Parses `gs://BUCKET/NAME`, `gs:///NAME` (a name in `bucket`), `gs://` (all buckets), or a path.
  /// - Throws: ``CommandFailure`` if the name of the bucket is invalid.
  init(_ text: String, bucket: String) throws {
    guard Self.isStored(text) else {
      self = .local(text)
      return
    }
    guard !Self.isAllBuckets(text) else {
      self = .buckets
      return
    }
    let rest = text.utf8.dropFirst(Self.scheme.utf8.count)
    let slash = rest.firstIndex(of: Self.slash) ?? rest.endIndex
    let named = String(Substring(rest[..<slash]))
    let found = named.isEmpty ? bucket : named
    guard ObjectName.isBucket(found) else {
      throw CommandFailure.usage("'\(text)' does not name a valid bucket; write gs://BUCKET/NAME")
    }
    self = .stored(bucket: found, name: String(Substring(rest[slash...].dropFirst())))
  }

  /// Returns whether a text names a file in a bucket.
  static func isStored(_ text: String) -> Bool { text.utf8.starts(with: scheme.utf8) }

  /// Returns whether a text denotes all buckets.
  static func isAllBuckets(_ text: String) -> Bool { text == scheme }

  /// Parses `gs://BUCKET/NAME`, or a name in `bucket`.
  /// - Throws: ``CommandFailure`` if the name of the bucket is invalid, or the text denotes all buckets.
  static func stored(_ text: String, bucket: String) throws -> (bucket: String, name: String) {
    switch try FileLocation(text, bucket: bucket) {
    case .stored(let bucket, let name): return (bucket, name)
    case .local: return (bucket, text)
    case .buckets:
      throw CommandFailure.usage("'\(text)' denotes all buckets; name one as gs://BUCKET/, or the default as gs:///")
    }
  }

  /// Returns the bucket for names that do not include one.
  /// - Throws: ``CommandFailure`` if the name of the bucket is invalid.
  static func bucket(_ arguments: Arguments, project: String) throws -> String {
    let bucket = arguments.value("bucket") ?? "\(project).appspot.com"
    guard ObjectName.isBucket(bucket) else { throw CommandFailure.usage("'\(bucket)' is not a valid bucket name") }
    return bucket
  }

  /// Returns whether a name or a prefix is empty or ends with a slash, and so denotes a folder.
  static func isFolder(_ name: String) -> Bool { name.isEmpty || name.utf8.last == slash }

  /// Returns the last part of a name or a path.
  static func lastPart(_ name: String) -> String {
    name.utf8.split(separator: slash).last.map { String(Substring($0)) } ?? name
  }
}
