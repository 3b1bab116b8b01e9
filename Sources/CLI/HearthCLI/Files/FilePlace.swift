import Files

/// Where a file is that a person named: in a bucket, or on this machine.
enum FilePlace: Equatable {
  /// A name, or what names begin with, in a bucket; the name may be empty.
  case stored(bucket: String, name: String)
  /// A path of this machine; `-` is standard output.
  case local(String)

  /// The option with which verbs take a bucket.
  static let bucketOption = Command.Option.value(
    "bucket", "NAME", "the bucket of names without one (default: PROJECT.appspot.com)")

  private static let scheme = "gs://"
  /// What stands between the parts of names and paths. Both are read by bytes, as the system and the server do.
  static let slash = UInt8(ascii: "/")

  /// Reads `gs://BUCKET/NAME`, `gs:///NAME` for a name in `bucket`, or a path.
  /// - Throws: ``CommandFailure`` for a bucket that cannot be one.
  init(_ text: String, bucket: String) throws {
    guard Self.isStored(text) else {
      self = .local(text)
      return
    }
    let rest = text.utf8.dropFirst(Self.scheme.utf8.count)
    let slash = rest.firstIndex(of: Self.slash) ?? rest.endIndex
    let named = String(Substring(rest[..<slash]))
    let found = named.isEmpty ? bucket : named
    guard ObjectName.isBucket(found) else {
      throw CommandFailure.usage("'\(text)' names no bucket; write gs://BUCKET/NAME")
    }
    self = .stored(bucket: found, name: String(Substring(rest[slash...].dropFirst())))
  }

  /// Whether what a person wrote names a file of a bucket.
  static func isStored(_ text: String) -> Bool { text.utf8.starts(with: scheme.utf8) }

  /// As ``init(_:bucket:)``, where what is no `gs://…` is a name in `bucket`.
  static func stored(_ text: String, bucket: String) throws -> (bucket: String, name: String) {
    if case .stored(let bucket, let name) = try FilePlace(text, bucket: bucket) { return (bucket, name) }
    return (bucket, text)
  }

  /// The bucket of names without one.
  /// - Throws: ``CommandFailure`` for a name that no bucket can have.
  static func bucket(_ arguments: Arguments, project: String) throws -> String {
    let bucket = arguments.value("bucket") ?? "\(project).appspot.com"
    guard ObjectName.isBucket(bucket) else { throw CommandFailure.usage("'\(bucket)' cannot name a bucket") }
    return bucket
  }

  /// Whether a name, or what names begin with, ends where a folder does.
  static func isFolder(_ name: String) -> Bool { name.isEmpty || name.utf8.last == slash }

  /// The part of a name or path behind its last slash.
  static func lastPart(_ name: String) -> String {
    name.utf8.split(separator: slash).last.map { String(Substring($0)) } ?? name
  }
}
