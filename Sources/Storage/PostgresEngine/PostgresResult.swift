import CPostgres

/// The rows that a statement returned, in binary form.
final class PostgresResult {
  private let result: OpaquePointer

  /// Takes over a result of libpq.
  init(_ result: OpaquePointer) { self.result = result }

  deinit { hearth_PQclear(result) }

  var rows: Int { Int(hearth_PQntuples(result)) }

  /// The number of rows that the statement inserted, changed or removed.
  var changedRows: Int { hearth_PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

  /// Returns the bytes of a field, or `nil` if it is NULL or does not exist.
  func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
    guard (0..<rows).contains(row), (0..<Int(hearth_PQnfields(result))).contains(column),
      hearth_PQgetisnull(result, Int32(row), Int32(column)) == 0,
      let start = hearth_PQgetvalue(result, Int32(row), Int32(column))
    else { return nil }
    let count = Int(hearth_PQgetlength(result, Int32(row), Int32(column)))
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Returns a `text`, or `nil` if the field is NULL or does not exist.
  func text(_ row: Int, _ column: Int) -> String? {
    bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns a `boolean`, or `nil` if the field is NULL, does not exist or has another type.
  func boolean(_ row: Int, _ column: Int) -> Bool? {
    guard let bytes = bytes(row, column), bytes.count == 1 else { return nil }
    return bytes[0] == 1
  }

  /// Returns a `bigint`, or `nil` if the field is NULL, does not exist or has another type.
  func integer(_ row: Int, _ column: Int) -> Int64? {
    guard let bytes = bytes(row, column), bytes.count == 8 else { return nil }
    return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// Returns an unsigned number that was stored as ``PostgresValue/bits(_:)``.
  func bits(_ row: Int, _ column: Int) -> UInt64? { integer(row, column).map { UInt64(bitPattern: $0) } }

  /// Returns an unsigned number that was stored as ``PostgresValue/ordered(_:)``.
  func ordered(_ row: Int, _ column: Int) -> UInt64? { bits(row, column).map { $0 ^ 1 << 63 } }
}
