import DocumentModel
package import KeyValue
import WireFormat

/// The rights of an operator in the console. Each role includes those before it.
package enum OperatorRole: String, CaseIterable, Comparable, Sendable {
  /// Reads everything, and changes nothing.
  case viewer
  /// Also changes documents, accounts of users, and files.
  case editor
  /// Everything that an administrator may do, also with keys, operators and backups.
  case owner

  package static func < (one: OperatorRole, other: OperatorRole) -> Bool { one.rank < other.rank }

  private var rank: Int {
    switch self {
    case .viewer: 0
    case .editor: 1
    case .owner: 2
    }
  }
}

/// An account for the console of a production server. Operators are not users of apps: they have a table
/// of their own, and no API for users sees them.
package struct Operator: Sendable {
  package let name: String
  package var role: OperatorRole
  /// The hash of the password. Treat it as a secret.
  package var passwordHash: PasswordHash
  /// The creation time, in seconds since 1970.
  package let createdSeconds: Int64

  init(name: String, role: OperatorRole, passwordHash: PasswordHash, createdSeconds: Int64) {
    self.name = name
    self.role = role
    self.passwordHash = passwordHash
    self.createdSeconds = createdSeconds
  }

  /// Reads a row. Returns `nil` if it is not valid.
  init?(name: String, row: [UInt8]) {
    guard let map = MapValue(json: row), let role = map.text("role").flatMap(OperatorRole.init(rawValue:)),
      let hash = map.text("password").flatMap({ PasswordHash(text: $0) }), let created = map.integer("created")
    else { return nil }
    self.init(name: name, role: role, passwordHash: hash, createdSeconds: created)
  }

  /// The row in the store.
  var row: [UInt8] {
    MapValue([
      ("role", .string(role.rawValue)), ("password", .string(passwordHash.text)), ("created", .integer(createdSeconds)),
    ]).json
  }

  /// Returns whether `name` is valid: 1 to 64 lower-case letters, digits and `.`, `-`, `_`, `@`, and begins with a
  /// letter.
  package static func isName(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    func isLetter(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") }
    return (1...64).contains(bytes.count) && isLetter(bytes[0])
      && bytes.allSatisfy {
        isLetter($0) || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) || ".-_@".utf8.contains($0)
      }
  }
}

/// The reason why an operator cannot be added or changed.
package enum OperatorError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The name, the password or the role is not acceptable. The text says why.
  case refused(String)
  /// No operator has the name.
  case unknown(String)
  case storage(StorageError)

  /// The reason, as text for people.
  package var description: String {
    switch self {
    case .refused(let text): text
    case .unknown(let name): "no operator is named \(name)"
    case .storage(let error): error.description
    }
  }
}
