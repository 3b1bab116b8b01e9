/// The reason for which the transport itself rejects a request, without calling the handler.
struct Refusal: Error, Equatable {
  let status: Int
  let message: StaticString

  static func == (left: Refusal, right: Refusal) -> Bool { left.status == right.status }

  /// The message as text.
  var text: String { message.withUTF8Buffer { String(decoding: $0, as: UTF8.self) } }
}

extension Refusal {
  static let malformed = Self(status: 400, message: "malformed request")
  static let headTooLarge = Self(status: 431, message: "the request's header fields are too large")
  static let bodyTooLarge = Self(status: 413, message: "the request body is too large")
  static let unknownMethod = Self(status: 501, message: "the method is not known")
  static let badChunk = Self(status: 400, message: "malformed chunked body")
  static let unknownCoding = Self(status: 415, message: "the only content coding supported is gzip")
  static let badGzip = Self(status: 400, message: "the body is not valid gzip")
  static let timedOut = Self(status: 408, message: "the request did not arrive in time")
  static let noMemory = Self(status: 429, message: "the server holds too many large requests; try again")
}

extension Refusal {
  /// Creates the refusal of a compressed body that cannot be decoded.
  init(_ error: GzipError) {
    switch error {
    case .malformed: self = .badGzip
    case .tooLarge: self = .bodyTooLarge
    }
  }
}
