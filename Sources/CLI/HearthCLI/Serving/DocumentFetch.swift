import Accounts
import HearthServer
import WebClient

/// Fetches documents of the web for a server: the keys of trusted issuers. Loads libcurl with the first fetch.
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
