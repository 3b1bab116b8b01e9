import WireFormat

/// A request of this server to an identity provider.
package struct ProviderRequest: Sendable {
  package var url: String
  /// The form to post, or `nil` for a GET.
  package var form: [(name: String, value: String)]?
  /// The header `Authorization`.
  package var authorization: String?

  /// Creates a GET of a document.
  package init(_ url: String) { self.url = url }

  /// The form as a body (`application/x-www-form-urlencoded`), or `nil` for a GET.
  package var body: [UInt8]? { form.map { Array(FormText.text($0).utf8) } }
}

/// The response of an identity provider.
package struct ProviderResponse: Sendable {
  package var status: Int
  package var body: [UInt8]
  /// The time for which a document stays valid, as its header `Cache-Control` contains it.
  package var maxAgeSeconds: Int?

  package init(status: Int, body: [UInt8], maxAgeSeconds: Int? = nil) {
    self.status = status
    self.body = body
    self.maxAgeSeconds = maxAgeSeconds
  }
}

/// Sends a request to an identity provider and waits for the response. It follows no redirects, verifies certificates,
/// and ends within a limited time. The server itself has no HTTP client, so its program passes this function.
package typealias ProviderFetch = @Sendable (ProviderRequest) throws -> ProviderResponse

/// The text of forms and of queries.
package enum FormText {
  /// Returns `name=value&…`, encoded.
  package static func text(_ fields: [(name: String, value: String)]) -> String {
    fields.map { "\(encode($0.name))=\(encode($0.value))" }.joined(separator: "&")
  }

  /// Returns a text in which all characters but the unreserved ones of RFC 3986 are escaped.
  package static func encode(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var out: [UInt8] = []
    for byte in text.utf8 {
      if byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._~".utf8.contains(byte) {
        out.append(byte)
      } else {
        out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Returns a URL with further parameters.
  static func url(_ url: String, _ fields: [(name: String, value: String)]) -> String {
    "\(url)\(url.contains("?") ? "&" : "?")\(text(fields))"
  }
}
