import DocumentModel
import DocumentStore
import Glibc
import HearthServer

/// The options that choose a place of backups, and sign in to it.
enum BackupChoice {
  static let options: [Command.Option] =
    [
      .value("endpoint", "URL", "the store of the bucket (default: that of Google or Amazon)"),
      .value("region", "NAME", "the region of a bucket of S3 (default: $AWS_REGION or us-east-1)"),
      .value(
        "key", "FILE",
        "sign in with this key of a service account (gs://) or credentials file of AWS (s3://)"),
    ] + DatabaseChoice.credentialOptions.filter { $0.name != "key" } + [DatabaseChoice.authoritiesOption]

  /// The text of the help about places.
  static let details = """
    PLACE is a folder, or a bucket with an optional prefix:

    - `gs://BUCKET/PREFIX`: Cloud Storage, or with --endpoint a Hearth server. Sign in as with `hearth get`: with --key,
      --token-command or GOOGLE_APPLICATION_CREDENTIALS.
    - `s3://BUCKET/PREFIX`: Amazon S3, or with --endpoint another store with its API, such as MinIO, Ceph or Cloudflare
      R2. Sign in with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or with --key and a credentials file.
    """

  private static let cloudStorage = "https://storage.googleapis.com"

  /// Returns the current time.
  static func now() -> Timestamp { Timestamp(uncheckedMicroseconds: Clock.system.now()) }

  /// Returns the place that an operand names, for the backups of a data directory.
  /// - Parameter prefix: the beginning of the options' names on the command line, such as `backup-`, for messages.
  /// - Throws: ``CommandFailure`` if the operand, an option or a credential is invalid, or the place is in the directory.
  static func place(
    _ text: String, _ arguments: Arguments, of directory: String, prefix: String = ""
  ) throws -> any BackupPlace {
    if !text.contains("://") {
      let (root, place) = (futurePath(directory), futurePath(text))
      guard place != root, !place.hasPrefix(root + "/") else {
        throw CommandFailure.usage(
          "\(text) is in the data directory \(directory); a backup there is lost with it, so name a folder elsewhere")
      }
    }
    return try place(text, arguments, prefix: prefix)
  }

  /// Returns the path that a folder has when it exists: without links, and with the parts that are missing now. The
  /// server creates its data directory at the first start.
  private static func futurePath(_ path: String) -> String {
    var (existing, missing) = (LocalPath.withoutLastSlashes(path), "")
    while true {
      if let found = realPath(existing) { return found == "/" && !missing.isEmpty ? missing : found + missing }
      let parent = LocalPath.folder(of: existing)
      // Without the working directory, no relative path exists.
      guard parent != existing else { return path }
      missing = "/\(FileLocation.lastPart(existing))\(missing)"
      existing = LocalPath.withoutLastSlashes(parent)
    }
  }

  private static func realPath(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// Returns the place that an operand names.
  /// - Throws: ``CommandFailure`` if the operand, an option or a credential is invalid.
  static func place(_ text: String, _ arguments: Arguments, prefix optionPrefix: String = "") throws -> any BackupPlace
  {
    guard !text.isEmpty else { throw CommandFailure.usage("the place for backups must not be empty") }
    guard text.contains("://") else {
      let unused = options.map(\.name).filter(arguments.has)
      if !unused.isEmpty { throw arguments.refusal(of: unused, "needs a bucket, such as s3://backups/hearth") }
      return BackupFolder(text)
    }
    return BackupBucket(try bucketStore(text, arguments, prefix: optionPrefix), now: now)
  }

  /// Returns a client of the bucket that a text with a scheme names. It connects with its first request.
  /// - Throws: ``CommandFailure`` if the text, an option or a credential is invalid.
  static func bucketStore(
    _ text: String, _ arguments: Arguments, prefix optionPrefix: String = "", retries: Retries = Retries()
  ) throws -> any BucketStore {
    guard let end = text.firstRange(of: "://") else { throw CommandFailure.usage("'\(text)' names no bucket") }
    let parts = text[end.upperBound...].split(separator: "/", maxSplits: 1).map(String.init)
    guard let bucket = parts.first else { throw CommandFailure.usage("'\(text)' names no bucket") }
    var prefix = parts.count == 2 ? parts[1] : ""
    while prefix.hasSuffix("/") { prefix.removeLast() }
    if !prefix.isEmpty { prefix += "/" }
    switch text[..<end.lowerBound] {
    case "gs":
      if arguments.has("region") { throw arguments.refusal(of: ["region"], "is for s3:// only") }
      let server = try ServerClient(
        url: arguments.value("endpoint") ?? cloudStorage, arguments, option: "--\(optionPrefix)endpoint")
      return CloudStorageBucket(bucket, prefix: prefix, server, retries: retries)
    case "s3": return try s3(bucket, prefix, arguments, optionPrefix, retries)
    default:
      throw CommandFailure.usage(
        "'\(text)' is not a place for backups; write a path, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX")
    }
  }

  private static func s3(
    _ bucket: String, _ prefix: String, _ arguments: Arguments, _ optionPrefix: String, _ retries: Retries
  ) throws -> S3Bucket {
    let region = arguments.value("region") ?? DatabaseChoice.environment("AWS_REGION") ?? "us-east-1"
    let url = arguments.value("endpoint") ?? "https://s3.\(region).amazonaws.com"
    let (_, _, isSecure) = try ServerClient.address(url)
    guard isSecure || WebHost.isLoopback(url) else {
      throw CommandFailure.usage("'--\(optionPrefix)endpoint \(url)' must be https, because backups contain secrets")
    }
    return try S3Bucket(
      bucket, prefix: prefix, at: url,
      S3Signature(credentials: try credentials(arguments, optionPrefix), region: region),
      authoritiesFile: DatabaseChoice.authorities(arguments), retries: retries)
  }

  private static func credentials(_ arguments: Arguments, _ optionPrefix: String) throws -> S3Credentials {
    if let path = arguments.value("key") ?? DatabaseChoice.environment("AWS_SHARED_CREDENTIALS_FILE") {
      let profile = DatabaseChoice.environment("AWS_PROFILE") ?? "default"
      guard let credentials = S3Credentials(file: try BackupChoice.text(of: path), profile: profile) else {
        throw CommandFailure.data(
          "\(path) has no section [\(profile)] with aws_access_key_id and aws_secret_access_key")
      }
      return credentials
    }
    guard let id = DatabaseChoice.environment("AWS_ACCESS_KEY_ID"),
      let secret = DatabaseChoice.environment("AWS_SECRET_ACCESS_KEY")
    else {
      throw CommandFailure.usage(
        "s3:// needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a credentials file with "
          + "--\(optionPrefix)key")
    }
    return S3Credentials(id: id, secret: secret, token: DatabaseChoice.environment("AWS_SESSION_TOKEN"))
  }

  private static func text(of path: String) throws -> String {
    do throws(HearthError) { return String(decoding: try KeyFile.read(path), as: UTF8.self) } catch {
      throw CommandFailure.data(error.description)
    }
  }
}
