import Accounts
import Dispatch
import HearthServer
import IdentityService
import WebClient

/// Fetches documents of the web for a server: the keys of trusted issuers, and the responses of identity providers.
/// Loads libcurl with the first fetch.
enum DocumentFetch {
  /// The time without a byte after which a fetch fails, in milliseconds.
  private static let stallMilliseconds = 10_000
  /// The time after which a fetch fails even if bytes still arrive, in milliseconds.
  private static let totalMilliseconds = 30_000

  /// Fetches a document. Follows no redirect.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the document cannot be fetched.
  static func get(_ url: String, authoritiesFile: String?) throws -> FetchedDocument {
    let (server, target) = WebHost.parts(of: url)
    let (host, port, isSecure) = try ServerClient.address(server)
    var options = HTTPClient.Options()
    options.authoritiesFile = authoritiesFile
    options.stallMilliseconds = stallMilliseconds
    options.totalMilliseconds = totalMilliseconds
    options.bodyBytesMax = TrustedIssuers.keysBytesMax
    let client = HTTPClient(host: host, port: port, isSecure: isSecure, options: options)
    let response = try client.send("GET", target)
    guard response.status == 200 else { throw CommandFailure.failed("\(url) responded \(response.status)") }
    return FetchedDocument(
      bytes: response.body, maxAgeSeconds: maxAge(response.header("cache-control") ?? ""))
  }

  /// The time after which a request to an identity provider fails, in milliseconds. A user waits meanwhile.
  private static let providerMilliseconds = 15_000

  /// Sends a request to an identity provider. Follows no redirect.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if no complete response arrives within the time.
  static func send(
    _ request: ProviderRequest, authoritiesFile: String?, milliseconds: Int = providerMilliseconds
  ) throws -> ProviderResponse {
    let (server, target) = WebHost.parts(of: request.url)
    let (host, port, isSecure) = try ServerClient.address(server)
    var options = HTTPClient.Options()
    options.authoritiesFile = authoritiesFile
    options.stallMilliseconds = stallMilliseconds
    options.bodyBytesMax = TrustedIssuers.keysBytesMax
    let client = HTTPClient(host: host, port: port, isSecure: isSecure, options: options)
    // A provider that sends a byte now and then does not stall.
    let cancellation = client.cancellation
    let deadline = DispatchWorkItem { cancellation.cancel() }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: deadline)
    defer { deadline.cancel() }
    var headers = [("Accept", "application/json")]
    if let authorization = request.authorization { headers.append(("Authorization", authorization)) }
    if request.body != nil { headers.append(("Content-Type", "application/x-www-form-urlencoded")) }
    let response = try client.send(
      request.body == nil ? "GET" : "POST", target, headers: headers, body: request.body)
    return ProviderResponse(
      status: response.status, body: response.body, maxAgeSeconds: maxAge(response.header("cache-control") ?? ""))
  }

  /// Returns the seconds of `max-age` in a header `Cache-Control` (RFC 9111, section 5.2.2.1).
  private static func maxAge(_ header: String) -> Int? {
    for directive in header.lowercased().split(separator: ",") {
      let parts = directive.split(separator: "=").map { $0.filter { $0 != " " && $0 != "\"" } }
      if parts.count == 2, parts[0] == "max-age" { return Int(parts[1]) }
    }
    return nil
  }

  /// Whether the keys of an issuer may be fetched from a URL: with TLS, or on this machine.
  static func isSafe(_ url: String) -> Bool {
    if url.hasPrefix("https://") { return true }
    guard url.hasPrefix("http://"), let address = try? ServerClient.address(WebHost.parts(of: url).server) else {
      return false
    }
    return HearthConfiguration.isLoopback(address.host)
  }
}
