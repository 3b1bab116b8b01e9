import DatabaseService
import DocumentModel
import Transport

/// What the head of a call says of its messages and its time (firestore-api.md, section 1.6).
struct GRPCRequestHead {
  /// Whether messages may be compressed with gzip; answers are then too.
  let isGzip: Bool
  /// The client's deadline; `nil` for none.
  let timeoutMilliseconds: Int?
  private let failure: Status?

  /// Reads the fields of a request.
  init(_ request: borrowing HTTPRequest) {
    let encoding = request.header("grpc-encoding")
    let timeout = request.header("grpc-timeout").map { GRPCTimeout.milliseconds($0) }
    isGzip = encoding?.elementsEqual("gzip".utf8) ?? false
    timeoutMilliseconds = timeout ?? nil
    if timeout == .some(nil) {
      failure = Status(.invalidArgument, "The grpc-timeout is malformed.")
    } else if timeout == 0 {
      failure = Status(.deadlineExceeded, "The deadline passed before the call began.")
    } else if let encoding, !isGzip, !encoding.elementsEqual("identity".utf8) {
      failure = Status(
        .unimplemented, "Messages compressed with \(String(decoding: encoding, as: UTF8.self)) are not understood.")
    } else {
      failure = nil
    }
  }

  /// A head that asks for nothing.
  init(isGzip: Bool = false, timeoutMilliseconds: Int? = nil) {
    self.isGzip = isGzip
    self.timeoutMilliseconds = timeoutMilliseconds
    failure = nil
  }

  /// Refuses a call that cannot be served.
  /// - Throws: `INVALID_ARGUMENT`, `DEADLINE_EXCEEDED`, or `UNIMPLEMENTED` for another compression.
  func check() throws(Status) {
    if let failure { throw failure }
  }
}
