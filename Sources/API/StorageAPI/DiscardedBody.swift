import GatewayCore
import Transport

/// Reads a body to its end and responds then. A client that reads only after it has sent everything would miss an
/// earlier response.
final class DiscardedBody: BodySink {
  /// The longest body that the server reads before it responds. To a longer one it responds at once, which closes
  /// an HTTP/1 connection.
  static let bytesMax = 16 << 20

  private let respond: () -> Void

  init(respond: @escaping () -> Void) { self.respond = respond }

  /// Responds when the body has ended, or at once if the body is longer than ``bytesMax`` or has no
  /// `Content-Length`. Returns `nil` if it responded at once.
  static func responding(_ request: borrowing HTTPRequest, _ respond: @escaping () -> Void) -> DiscardedBody? {
    let length = request.text("content-length").flatMap { Int($0) }
    if let length, length <= bytesMax { return DiscardedBody(respond: respond) }
    respond()
    return nil
  }

  func received(_ bytes: UnsafeRawBufferPointer) {}
  func ended() { respond() }
}
