import Accounts
import DocumentModel

extension AccountsService {
  /// The domains to which links in emails may lead, and whose pages may open the sign-in pages: `localhost`, that of
  /// the page that the links open, that of the public URL, and the authorized ones.
  package var authorizedDomains: [String] {
    var domains = ["localhost"]
    for url in [options.actionURL, options.publicURL] {
      if let host = url.flatMap({ ContinueURL.host(of: $0) }), !domains.contains(host) { domains.append(host) }
    }
    return domains + options.authorizedDomains
  }

  /// Whether a host is one of the authorized domains or below one.
  func isAuthorized(host: String) -> Bool {
    authorizedDomains.contains { domain in
      let domain = domain.lowercased()
      return host == domain || host.hasSuffix("." + domain)
    }
  }

  /// Whether the sign-in pages may give the result of a sign-in to a page of an app: an HTTP URL of an authorized
  /// domain or of this machine. Without TLS, only a page on this machine may have it, unless this server has no TLS
  /// either.
  ///
  /// - Parameter own: the URL of this server, as the browser sees it.
  package func maySignIn(page url: String, own: String) -> Bool {
    guard let host = ContinueURL.host(of: url), url.utf8.count <= ProviderLimits.pageURLBytesMax else { return false }
    if accounts.mode == .emulator || ContinueURL.isLoopback(host) { return true }
    return isAuthorized(host: host) && (url.hasPrefix("https://") || !own.hasPrefix("https://"))
  }

  /// Returns the URL of this server for a browser: the public one, or the one that the browser uses, if its host is an
  /// authorized domain or this machine. Returns `nil` for other hosts, because a stranger could have chosen the name.
  package func ownURL(host: String, isSecure: Bool) -> String? {
    if let url = options.publicURL { return url.hasSuffix("/") ? String(url.dropLast()) : url }
    let url = "\(isSecure ? "https" : "http")://\(host)"
    guard let name = ContinueURL.host(of: url) else { return nil }
    return accounts.mode == .emulator || ContinueURL.isLoopback(name) || isAuthorized(host: name) ? url : nil
  }

  /// Returns the URL to open after the link of an email, if it is an HTTP URL without characters that could escape
  /// from their context, and its domain is authorized. Otherwise a stranger could let this server send mails that lead
  /// to a page of theirs. Administrators may use every domain, and so may all callers of an emulator.
  ///
  /// - Throws: `INVALID_CONTINUE_URI` if it is not such a URL, `UNAUTHORIZED_DOMAIN` if the domain is not authorized.
  func checkContinueURL(_ url: String, _ caller: AccountsCaller) throws -> String {
    guard let host = ContinueURL.host(of: url), url.utf8.count <= UserLimits.textBytesMax else {
      throw AccountError(.invalidContinueURI)
    }
    if caller.isAdmin || accounts.mode == .emulator { return url }
    guard isAuthorized(host: host) else {
      throw AccountError(
        .unauthorizedDomain, "The domain \(host) is not authorized. Start the server with --authorized-domain \(host).")
    }
    return url
  }
}

/// The part of a URL that names a server.
enum ContinueURL {
  /// Whether a host of a URL is this machine.
  static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
      || host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
  }

  /// Returns the host of an HTTP URL in lower case and without its port, or `nil` if the URL is malformed or browsers
  /// and servers could read its host differently: with a user name, a backslash, or other characters outside ASCII.
  static func host(of url: String) -> String? {
    let rest = url.hasPrefix("https://") ? url.dropFirst(8) : url.hasPrefix("http://") ? url.dropFirst(7) : ""
    guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "<") }) else {
      return nil
    }
    var host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    if let colon = host.lastIndex(of: ":"), host.last != "]" {
      guard host[colon...].dropFirst().allSatisfy(\.isNumber) else { return nil }
      host = host[..<colon]
    }
    let isNumeric = host.hasPrefix("[") && host.hasSuffix("]")
    let isValid = host.utf8.allSatisfy { byte in
      byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || (isNumeric ? "[]:." : "-._").utf8.contains(byte)
    }
    return host.isEmpty || !isValid ? nil : host.lowercased()
  }
}
