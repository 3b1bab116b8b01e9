import Transport

/// A cookie that contains the ticket of a sign-in. Only this server receives it, and scripts cannot read it. The
/// browser sends it when the provider returns the user, but not with requests that another site's page makes.
struct Cookie: Sendable {
  private let name: String
  private let value: String
  private let seconds: Int64
  private let isSecure: Bool

  /// Creates a cookie. With a lifetime of 0 seconds, it removes the cookie from the browser.
  /// - Parameter isSecure: whether browsers reach the server by `https`.
  init(_ name: String, _ value: String, seconds: Int64, isSecure: Bool) {
    self.name = Self.prefixed(name, isSecure)
    self.value = value
    self.seconds = seconds
    self.isSecure = isSecure
  }

  /// With the prefix, no other host of the domain can set the cookie (RFC 6265bis, section 4.1.3.2).
  private static func prefixed(_ name: String, _ isSecure: Bool) -> String { isSecure ? "__Host-\(name)" : name }

  /// The value of the header `Set-Cookie`.
  var header: String {
    "\(name)=\(value); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Lax\(isSecure ? "; Secure" : "")"
  }

  /// Returns the value of a cookie of a request, or `nil` if the browser has none, or several of that name.
  static func value(_ name: String, isSecure: Bool, _ request: borrowing HTTPRequest) -> String? {
    let prefix = Array("\(prefixed(name, isSecure))=".utf8)
    var found: [String] = []
    // HTTP/2 splits the header into several fields.
    for index in 0..<request.headerCount {
      let field = request.header(at: index)
      guard field.name.count == 6, String(decoding: field.name, as: UTF8.self).lowercased() == "cookie" else {
        continue
      }
      for part in field.value.split(separator: UInt8(ascii: ";")) {
        let part = part.drop { $0 == UInt8(ascii: " ") }
        if part.starts(with: prefix) { found.append(String(decoding: part.dropFirst(prefix.count), as: UTF8.self)) }
      }
    }
    return found.count == 1 ? found.first : nil
  }
}
