/// The paths of requests in the log.
enum LoggedPath {
  /// Returns a path as the client wrote it, except that the parentheses of `(default)` are not percent-encoded.
  static func text(_ path: [UInt8]) -> String {
    String(decoding: path, as: UTF8.self).replacing("%28default%29", with: "(default)")
  }
}
