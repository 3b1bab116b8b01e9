/// An SQL statement with parameters, which a connection prepares when it first uses it.
struct PostgresStatement: Sendable {
  /// The name of the prepared statement, unique in a connection.
  let name: StaticString
  let text: StaticString

  init(_ name: StaticString, _ text: StaticString) {
    self.name = name
    self.text = text
  }
}

/// A parameter in PostgreSQL's binary form. The statement names its type with a cast.
enum PostgresValue: Sendable {
  case integer(Int64)
  case bytes([UInt8])
  case null

  /// An unsigned number, as a `bigint` with the same bits.
  static func bits(_ number: UInt64) -> PostgresValue { .integer(Int64(bitPattern: number)) }

  /// An unsigned number, as a `bigint` with the same order.
  static func ordered(_ number: UInt64) -> PostgresValue { .integer(Int64(bitPattern: number ^ 1 << 63)) }

  /// A `text`, which must have no zero byte.
  static func text(_ text: String) -> PostgresValue { .bytes(Array(text.utf8)) }

  /// A `boolean`.
  static func boolean(_ flag: Bool) -> PostgresValue { .bytes([flag ? 1 : 0]) }

  /// The bytes to send, or `nil` for NULL.
  var encoded: [UInt8]? {
    switch self {
    case .integer(let number): withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
    case .bytes(let bytes): bytes
    case .null: nil
    }
  }
}
