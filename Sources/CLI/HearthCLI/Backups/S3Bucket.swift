import DocumentModel
import DocumentStore
import Transport
import WebClient

/// A bucket of a store with the API of Amazon S3. Buckets are named in the path, which all such stores support.
final class S3Bucket: BucketStore {
  private let bucket: String
  /// The prefix of all names, empty or with a slash at its end.
  private let prefix: String
  private let host: String
  private let http: HTTPClient
  private let signature: S3Signature
  private let retries: Retries
  private let now: () -> Timestamp

  var text: String { "s3://\(bucket)/\(prefix)" }

  /// Creates a client for the store at a URL. It connects with the first request.
  /// - Throws: ``CommandFailure`` if the URL is invalid.
  init(
    _ bucket: String, prefix: String, at url: String, _ signature: S3Signature, authoritiesFile: String?,
    retries: Retries = Retries(),
    now: @escaping () -> Timestamp = { Timestamp(uncheckedMicroseconds: Clock.system.now()) }
  ) throws {
    let (host, port, isSecure) = try ServerClient.address(url)
    var options = HTTPClient.Options()
    options.authoritiesFile = authoritiesFile
    (self.bucket, self.prefix, self.signature, self.retries, self.now) = (bucket, prefix, signature, retries, now)
    let name = host.contains(":") ? "[\(host)]" : host
    self.host = port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    http = HTTPClient(host: host, port: port, isSecure: isSecure, options: options)
  }

  func put(_ name: String, _ content: [UInt8]) throws { _ = try send("PUT", name, [], content) }

  func putNew(_ name: String, _ content: [UInt8]) throws -> Bool {
    // Some stores ignore the condition, and some do not implement it.
    guard try get(name) == nil else { return false }
    do {
      _ = try send("PUT", name, [], content, condition: [(name: "If-None-Match", value: "*")])
      return true
    } catch let failure as CommandFailure where failure.httpStatus == 412 {
      // An earlier try of this request may have stored it, and its response was lost.
      return try get(name) == content
    } catch let failure as CommandFailure where failure.httpStatus == 501 {
      try put(name, content)
      return true
    }
  }

  func get(_ name: String) throws -> [UInt8]? { try send("GET", name) }

  func remove(_ name: String) throws { _ = try send("DELETE", name) }

  func list(_ prefix: String, _ take: ([BucketObject]) throws -> Void) throws {
    var token: String?
    repeat {
      // With this encoding, names in the response consist of characters that XML does not escape.
      var query = [
        (name: "list-type", value: "2"), (name: "encoding-type", value: "url"),
        (name: "prefix", value: self.prefix + prefix),
      ]
      if let token { query.append((name: "continuation-token", value: token)) }
      guard let body = try send("GET", nil, query) else {
        throw CommandFailure.failed("the bucket s3://\(bucket) does not exist; create it first")
      }
      let page = S3Listing(body)
      try take(
        page.objects.compactMap { object in
          guard object.name.hasPrefix(self.prefix) else { return nil }
          var object = object
          object.name = String(object.name.dropFirst(self.prefix.count))
          return object
        })
      token = page.nextToken
    } while token != nil
  }

  /// Sends a request for an object, or for the bucket if `name` is `nil`. Returns `nil` if that does not exist.
  private func send(
    _ method: String, _ name: String?, _ query: [(name: String, value: String)] = [], _ body: [UInt8] = [],
    condition: [(name: String, value: String)] = []
  ) throws -> [UInt8]? {
    let path = "/" + ServerClient.encode(bucket.utf8) + (name.map { "/" + ServerClient.encode(prefix + $0) } ?? "")
    let target = query.isEmpty ? path : "\(path)?\(S3Signature.canonical(query))"
    return try retries.run { _ in
      guard let headers = signature.headers(method, host: host, path: path, query: query, body: body, at: now()) else {
        throw CommandFailure.failed("libcrypto cannot compute SHA-256; check the OpenSSL configuration")
      }
      let response = try http.send(method, target, headers: headers + condition, body: method == "PUT" ? body : nil)
      if (200...299).contains(response.status) { return response.body }
      let error = S3Listing.error(response.body)
      if response.status == 404, error.code != "NoSuchBucket" || name == nil { return nil }
      throw failure(response.status, error)
    }
  }

  private func failure(_ status: Int, _ error: (code: String, message: String)) -> CommandFailure {
    let advice =
      switch error.code {
      case "NoSuchBucket": "create the bucket \(bucket) first"
      case "InvalidAccessKeyId", "SignatureDoesNotMatch": "check the access key and its secret"
      case "AccessDenied": "the account needs the rights to list, read, write and delete the objects of the bucket"
      case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
        "name the region of the bucket with --region"
      case "RequestTimeTooSkewed": "correct the clock of this machine"
      case "QuotaExceeded", "XMinioStorageFull": "make room in the store"
      default: ""
      }
    let code = error.code.isEmpty ? "\(status)" : "\(status) \(error.code)"
    let message = error.message.isEmpty ? "" : ": \(error.message)"
    var failure = CommandFailure.failed(
      "\(http.address) responded \(code)\(message)\(advice.isEmpty ? "" : "; \(advice)")")
    failure.httpStatus = status
    failure.isTemporary = CommandFailure.isTemporary(httpStatus: status)
    return failure
  }
}

/// A page of a listing, or an error, in the XML of S3. The reader finds elements by name. It decodes percent-encoded
/// names, so it needs no entities.
struct S3Listing {
  private(set) var objects: [BucketObject] = []
  /// The token of the next page, or `nil` if this page is the last one.
  private(set) var nextToken: String?

  init(_ body: [UInt8]) {
    let text = String(decoding: body, as: UTF8.self)
    var rest = text[...]
    while let (content, after) = Self.element("Contents", in: rest) {
      rest = after
      guard let key = Self.value("Key", in: content), let name = Self.decoded(key) else { continue }
      objects.append(
        BucketObject(
          name: name, size: Self.value("Size", in: content).flatMap { Int($0) } ?? 0,
          stored: Self.value("LastModified", in: content).flatMap { Timestamp(rfc3339: $0.utf8) }))
    }
    if Self.value("IsTruncated", in: text[...]) == "true" {
      nextToken = Self.value("NextContinuationToken", in: text[...]).map { Self.unescaped($0) }
    }
  }

  private static func decoded(_ text: String) -> String? {
    var bytes: [UInt8] = []
    let isValid = Array(text.utf8).withUnsafeBytes { PercentEncoding.decode($0, plusIsSpace: true, into: &bytes) }
    return isValid ? String(validating: bytes, as: UTF8.self) : nil
  }

  /// Returns the code and the message of an error, empty if the body has another form.
  static func error(_ body: [UInt8]) -> (code: String, message: String) {
    let text = String(decoding: body.prefix(64 << 10), as: UTF8.self)[...]
    guard let (content, _) = element("Error", in: text) else { return ("", "") }
    return (value("Code", in: content) ?? "", unescaped(value("Message", in: content) ?? ""))
  }

  private static func value(_ name: String, in text: Substring) -> String? {
    element(name, in: text).map { String($0.content) }
  }

  /// Returns the content of the first element of a name, and the text after it.
  private static func element(_ name: String, in text: Substring) -> (content: Substring, after: Substring)? {
    guard let start = text.firstRange(of: "<\(name)>"),
      let end = text[start.upperBound...].firstRange(of: "</\(name)>")
    else { return nil }
    return (text[start.upperBound..<end.lowerBound], text[end.upperBound...])
  }

  private static func unescaped(_ text: String) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
    return entities.reduce(text) { $0.replacing($1.0, with: $1.1) }
  }
}
