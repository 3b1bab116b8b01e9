import Accounts
import GatewayCore
import IdentityService
import Transport
import WireFormat

/// The fields of a request to the Identity Toolkit API.
struct IdentityRequest: Sendable {
  /// The members of the body, which was JSON or a form.
  let fields: JSONTree
  /// The parameters of the URL.
  let parameters: QueryParameters
  /// The name and port that the client uses for the server.
  let host: String

  /// Parses the query, and the body: JSON or a form. A body that begins with `{` is JSON regardless of its content
  /// type.
  ///
  /// - Throws: `WireError` or `Status` if the query or the body is malformed.
  init(_ request: borrowing HTTPRequest) throws {
    parameters = try QueryParameters(request.target.pathAndQuery.query)
    let name = request.header("host").map { Array($0) } ?? []
    let isName =
      !name.isEmpty && name.count <= 255
      && name.allSatisfy { PercentEncoding.isAlphanumeric($0) || "-.:[]_".utf8.contains($0) }
    host = isName ? String(decoding: name, as: UTF8.self) : "localhost"
    let body = request.body
    guard let first = body.first(where: { $0 > 0x20 }) else {
      fields = JSONTree(.object([]))
      return
    }
    let isForm = request.header("content-type")?.starts(with: "application/x-www-form-urlencoded".utf8) ?? false
    guard first != UInt8(ascii: "{"), isForm else {
      fields = try JSONTree(parsing: Array(body))
      guard fields.members != nil else { throw WireError.invalidJSON("Root element must be a message.") }
      return
    }
    fields = JSONTree(
      .object(
        try QueryParameters(body).all.map { JSONTree.Member(name: $0.name, value: JSONTree(.string($0.value))) }))
  }

  subscript(_ field: StaticString) -> JSONTree? { fields[field] }

  /// The string in a field, or `nil` if it is missing or empty.
  func text(_ field: StaticString) -> String? { fields.text(field) }

  /// The strings in a repeated field, which may also be a single string, or `nil` if the field is missing.
  func texts(_ field: StaticString) -> [String]? {
    fields[field].map { value in value.text.map { [$0] } ?? value.elements.compactMap(\.text) }
  }

  /// The code with which a provider returned the user to a page of the app, with the session to which it belongs, or
  /// `nil` if the request has none.
  var returned: (session: String, ProviderSignIn.Return)? {
    guard let session = text("sessionId"), let uri = text("requestUri"),
      let mark = uri.utf8.firstIndex(of: UInt8(ascii: "?"))
    else { return nil }
    let query = Array(uri.utf8[uri.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") })
    guard let parameters = try? query.withUnsafeBytes({ try QueryParameters($0) }),
      let state = parameters.value("state")
    else { return nil }
    let back = ProviderSignIn.Return(
      state: state, code: parameters.value("code"), error: parameters.value("error"), issuer: parameters.value("iss"))
    return (session, back)
  }

  /// The value of a Boolean field, or `nil` if it is missing.
  func flag(_ field: StaticString) -> Bool? { fields[field]?.flag }

  /// The value of a URL parameter, or `nil` if it is missing or empty.
  func parameter(_ name: StaticString) -> String? { parameters.value(name).flatMap { $0.isEmpty ? nil : $0 } }

  /// A number from the URL or the body, or `nil` if both lack it. It is negative if the URL has another text.
  func number(_ name: StaticString) -> Int? {
    parameters.value(name).map { Int($0) ?? -1 } ?? fields[name]?.int64.map { Int($0) }
  }
}

extension JSONTree {
  /// The string in a field, or `nil` if it is missing or empty.
  func text(_ field: StaticString) -> String? { self[field]?.text.flatMap { $0.isEmpty ? nil : $0 } }
}
