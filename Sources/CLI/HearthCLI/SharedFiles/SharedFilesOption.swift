import ContentSharing
import DocumentModel

/// The options that choose the place in which the nodes of a cluster share the content of files.
enum SharedFilesOption {
  /// The options of `hearth serve`.
  static let options: [Command.Option] = [
    .value(
      "shared-files", "PLACE", "where nodes share files: DIR, postgres, s3://BUCKET or gs://BUCKET (default: postgres)"),
    .value("shared-files-key", "FILE", "the key or credentials file for the bucket"),
    .value("shared-files-endpoint", "URL", "the store of the bucket (default: that of Google or Amazon)"),
    .value("shared-files-region", "NAME", "the region of a bucket of S3"),
  ]

  private static let bucketOptions = ["key", "endpoint", "region"]

  /// Returns the place that the options name, or `nil` if they name none. Nothing connects to it yet.
  /// - Parameter postgres: returns the place in the database of the cluster.
  /// - Throws: ``CommandFailure`` if an option or a credential is invalid; the errors of `postgres`.
  static func place(
    _ arguments: Arguments, postgres: () throws -> any SharedContent
  ) throws -> (any SharedContent)? {
    let given = bucketOptions.map { "shared-files-\($0)" }.filter(arguments.has)
    guard let text = arguments.value("shared-files") else {
      if !given.isEmpty { throw arguments.refusal(of: given, "needs --shared-files s3://BUCKET or gs://BUCKET") }
      return nil
    }
    let choice: SharedContentChoice
    do throws(SharedContentChoice.Invalid) { choice = try SharedContentChoice(text) } catch {
      throw CommandFailure.usage("--shared-files: \(error.description)")
    }
    switch choice {
    case .folder, .postgres:
      if !given.isEmpty {
        throw arguments.refusal(of: given, "needs a bucket, such as --shared-files s3://files/hearth")
      }
    case .s3, .cloudStorage: break
    }
    switch choice {
    case .folder(let path): return SharedFolder(path)
    case .postgres: return try postgres()
    case .s3, .cloudStorage: return try bucket(text, bucketArguments(arguments))
    }
  }

  /// Returns the options as those of `hearth backups`, which has clients for the same stores.
  private static func bucketArguments(_ arguments: Arguments) throws -> Arguments {
    var words = ["unused"]
    for name in bucketOptions {
      if let value = arguments.value("shared-files-\(name)") { words.append("--\(name)=\(value)") }
    }
    return try Arguments(words, for: .backupsList)
  }

  /// Returns the place in a bucket. The first client is made at once, so that a wrong credential is found at the start.
  private static func bucket(_ text: String, _ arguments: Arguments) throws -> any SharedContent {
    let prefix = "shared-files-"
    let place = try BackupChoice.bucketStore(text, arguments, prefix: prefix).text
    return BucketContent(place) {
      try BackupChoice.bucketStore(text, arguments, prefix: prefix, retries: Retries(tries: 3))
    }
  }
}
