package import DatabaseService
import DocumentModel
import Glibc
import Transport
import WireFormat

/// The parameters of a request's query, with names in lowerCamelCase (firestore-api.md, section 1.2).
package struct QueryParameters {
  private var parameters: [(name: String, value: String)] = []

  private init() {}

  /// Parses the part of a target after the `?`. Names in snake_case become lowerCamelCase.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the percent-encoding is malformed or the text is not UTF-8.
  package init(_ query: UnsafeRawBufferPointer) throws {
    var rest = query
    while !rest.isEmpty {
      var part = Self.take(before: UInt8(ascii: "&"), from: &rest)
      guard !part.isEmpty else { continue }
      let name = try Self.text(Self.take(before: UInt8(ascii: "="), from: &part))
      parameters.append((Self.lowerCamel(name), try Self.text(part)))
    }
  }

  /// Removes the bytes up to the first separator, or all, and returns those before it.
  private static func take(
    before separator: UInt8, from bytes: inout UnsafeRawBufferPointer
  ) -> UnsafeRawBufferPointer {
    var end = 0
    while end < bytes.count, bytes[end] != separator { end += 1 }
    let taken = UnsafeRawBufferPointer(rebasing: bytes[..<end])
    bytes = UnsafeRawBufferPointer(rebasing: bytes[min(end + 1, bytes.count)...])
    return taken
  }

  /// All parameters in order.
  package var all: [(name: String, value: String)] { parameters }

  /// The parameters with one of the names.
  package func only(_ names: StaticString...) -> QueryParameters {
    var few = QueryParameters()
    few.parameters = parameters.filter { parameter in names.contains { Self.isEqual(parameter.name, $0) } }
    return few
  }

  /// Checks that every parameter is one of the names or a system parameter.
  ///
  /// - Throws: `INVALID_ARGUMENT` with the name of the first other parameter.
  package func allowOnly(_ names: StaticString...) throws {
    for (name, _) in parameters {
      guard !names.contains(where: { Self.isEqual(name, $0) }), !Self.systemNames.contains(name),
        name != "requestOptions.requestTags"
      else { continue }
      throw Status(
        .invalidArgument,
        "Invalid JSON payload received. Unknown name \"\(name)\": Cannot bind query parameter. "
          + "Field '\(name)' could not be found in request message.")
    }
  }

  /// The last value of a parameter, or `nil`.
  package func value(_ name: StaticString) -> String? {
    parameters.last { Self.isEqual($0.name, name) }?.value
  }

  /// All values of a repeated parameter, in order.
  package func values(_ name: StaticString) -> [String] {
    parameters.filter { Self.isEqual($0.name, name) }.map(\.value)
  }

  /// A Boolean parameter, or `nil` if it is missing.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the value is neither true nor false.
  package func boolean(_ name: StaticString) throws -> Bool? {
    guard let text = value(name) else { return nil }
    switch text {
    case "true", "1", "": return true
    case "false", "0": return false
    default: throw Self.invalid(name, "TYPE_BOOL", text)
    }
  }

  /// A 32-bit integer parameter, or `nil` if it is missing.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the value is not a 32-bit integer.
  package func int32(_ name: StaticString) throws -> Int? {
    guard let text = value(name) else { return nil }
    guard let number = Int32(text) else { throw Self.invalid(name, "TYPE_INT32", text) }
    return Int(number)
  }

  /// Whether to indent the response, which is the default.
  package var wantsPrettyPrint: Bool {
    let value = value("prettyPrint") ?? value("$.prettyPrint") ?? "true"
    return value != "false" && value != "0"
  }

  /// The error for a value that a parameter cannot have.
  package static func invalid(_ name: StaticString, _ type: String, _ text: String) -> Status {
    Status(.invalidArgument, "Invalid value at '\(name)' (\(type)), \"\(text)\"")
  }

  /// System parameters, which every method accepts.
  private static let systemNames: Set<String> = [
    "alt", "$alt", "key", "$key", "accessToken", "access_token", "oauthToken", "fields", "$fields", "prettyPrint",
    "$prettyPrint", "$.prettyPrint", "quotaUser", "$quotaUser", "callback", "$callback", "uploadType", "uploadProtocol",
    "$.xgafv", "$Xgafv",
  ]

  private static func text(_ bytes: UnsafeRawBufferPointer) throws -> String {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    guard PercentEncoding.decode(bytes, plusIsSpace: true, into: &decoded),
      PercentEncoding.isUTF8(decoded)
    else { throw Status(.invalidArgument, "Malformed percent-encoding in the query of the URL.") }
    return String(decoding: decoded, as: UTF8.self)
  }

  private static func isEqual(_ name: String, _ known: StaticString) -> Bool {
    var name = name
    return name.withUTF8 { name in
      guard name.count == known.utf8CodeUnitCount, let start = name.baseAddress else { return false }
      return memcmp(start, known.utf8Start, name.count) == 0
    }
  }

  /// Converts `update_mask.field_paths` to `updateMask.fieldPaths`.
  private static func lowerCamel(_ name: String) -> String {
    guard name.utf8.contains(UInt8(ascii: "_")) else { return name }
    var result = ""
    var isUpper = false
    for character in name.unicodeScalars {
      if character == "_" {
        isUpper = true
      } else {
        result += isUpper ? String(character).uppercased() : String(character)
        isUpper = false
      }
    }
    return result
  }
}
