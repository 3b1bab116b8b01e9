import Accounts
import DocumentModel

extension AccountsService {
  /// The domains to which links in emails may lead: `localhost`, that of the page that the links open, and the
  /// authorized ones.
  package var authorizedDomains: [String] {
    ["localhost"] + (options.actionURL.flatMap { ContinueURL.host(of: $0) }.map { [$0] } ?? [])
      + options.authorizedDomains
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
    let isAuthorized = authorizedDomains.contains { domain in
      let domain = domain.lowercased()
      return host == domain || host.hasSuffix("." + domain)
    }
    guard isAuthorized else {
      throw AccountError(
        .unauthorizedDomain, "The domain \(host) is not authorized. Start the server with --authorized-domain \(host).")
    }
    return url
  }
}

/// The part of a URL that names a server.
enum ContinueURL {
  /// Returns the host of an HTTP URL in lower case and without its port, or `nil` if the URL is malformed or browsers and
  /// servers could read its host differently: with a user name, a backslash, or other characters outside ASCII.
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
