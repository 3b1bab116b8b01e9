import DatabaseService
import DocumentModel
import Transport

/// The compression and deadline in the header of a call (firestore-api.md, section 1.6).
struct GRPCRequestHead {
  /// Whether the request's messages may be compressed with gzip. Then the response's are too.
  let isGzip: Bool
  /// The client's deadline, or `nil` if it sets none.
  let timeoutMilliseconds: Int?
  private let failure: Status?

  /// Reads the header fields of a request. ``check()`` reports errors in them.
  init(_ request: borrowing HTTPRequest) {
    let encoding = request.header("grpc-encoding")
    let timeout = request.header("grpc-timeout").map { GRPCTimeout.milliseconds($0) }
    isGzip = encoding?.elementsEqual("gzip".utf8) ?? false
    timeoutMilliseconds = timeout ?? nil
    if timeout == .some(nil) {
      failure = Status(.invalidArgument, "The grpc-timeout is malformed.")
    } else if timeout == 0 {
      failure = Status(.deadlineExceeded, "The deadline passed before the call started.")
    } else if let encoding, !isGzip, !encoding.elementsEqual("identity".utf8) {
      failure = Status(
        .unimplemented, "The compression \(String(decoding: encoding, as: UTF8.self)) is not supported. Use gzip.")
    } else {
      failure = nil
    }
  }

  /// Creates a head for tests and for calls without special fields.
  init(isGzip: Bool = false, timeoutMilliseconds: Int? = nil) {
    self.isGzip = isGzip
    self.timeoutMilliseconds = timeoutMilliseconds
    failure = nil
  }

  /// Rejects a call that the server cannot serve.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the deadline is malformed, `DEADLINE_EXCEEDED` if it has passed,
  ///   `UNIMPLEMENTED` if the compression is not supported.
  func check() throws(Status) {
    if let failure { throw failure }
  }
}
