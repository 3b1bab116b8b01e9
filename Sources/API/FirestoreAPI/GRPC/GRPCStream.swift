import DatabaseService
import DocumentModel
import GatewayCore
import Transport

/// The implementation of a bidirectional method. Use it on the loop's thread of its call only.
protocol GRPCStreamMethod: AnyObject {
  /// Whether the method can accept another message now. If not, it can after responses were pulled.
  var hasRoom: Bool { get }
  /// Whether the stream may end after the client has closed its side, once nothing is left to pull.
  var isSettled: Bool { get }
  /// Handles a message.
  ///
  /// - Throws: an error that ends the call.
  func receive(_ message: UnsafeRawBufferPointer) throws
  /// Appends about a slice of framed messages. Returns whether more may be available now.
  ///
  /// - Throws: an error that ends the call after the appended messages.
  func pull(into out: inout [UInt8]) throws -> Bool
  /// Ends the call with an error at the next point where no accepted work is lost.
  func stop(_ status: Status)
  /// Releases the resources of a call that is over.
  func end()
}

/// A bidirectional stream. It reads messages as they arrive, and produces responses only as fast as the client
/// reads them.
///
/// While the method cannot accept messages, they stay with the client, limited by the HTTP/2 window. When the
/// client closes its side, the stream sends the remaining responses and ends.
final class GRPCStream: BodySink, BodySource {
  private let call: GRPCCall
  private let method: any GRPCStreamMethod
  private var reader = GRPCFrameReader(messageBytesMax: Limits.enterpriseRequestBytesMax)
  /// The number of unread bytes that count toward the loop's memory budget.
  private var chargedBytes = 0
  private var isPaused = false
  private var isClientDone = false
  private var isOver = false
  private var failure: Status?
  /// Runs once, after the last message was produced.
  var onEnd: (() -> Void)?

  /// The number of unread bytes that do not count toward the budget. It covers the incomplete message after most
  /// pieces.
  private static let bytesFree = 16 << 10

  init(_ call: GRPCCall, _ method: any GRPCStreamMethod) {
    self.call = call
    self.method = method
  }

  /// Ends the call with an error: at the next safe point if `isOrderly`, otherwise at once.
  func stop(_ status: Status, isOrderly: Bool = false) {
    guard !isOver else { return }
    if isOrderly { method.stop(status) } else { failure = failure ?? status }
    call.exchange.resume()
  }

  /// Releases all resources.
  func close() {
    guard !isOver else { return }
    isOver = true
    method.end()
    reader = GRPCFrameReader(messageBytesMax: 0)
    charge()
    onEnd?()
    onEnd = nil
  }

  // MARK: Requests

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard failure == nil, !isOver else { return }
    reader.append(bytes)
    takeMessages()
  }

  func ended() {
    guard failure == nil, !isOver else { return }
    isClientDone = true
    takeMessages()
  }

  private func takeMessages() {
    do {
      while method.hasRoom, try reader.next(receive) {}
      if !charge() { throw Status(.resourceExhausted, "The server is processing too many large requests. Try again.") }
      if method.hasRoom, isClientDone, reader.unreadBytes > 0 {
        throw Status(.internal, "The last message of the request is cut short.")
      }
    } catch { failure = Status(error, database: call.database) }
    if isPaused != !method.hasRoom {
      isPaused.toggle()
      if isPaused { call.exchange.pauseBody() } else { call.exchange.resumeBody() }
    }
    call.exchange.resume()
  }

  private func receive(_ message: UnsafeRawBufferPointer, _ isCompressed: Bool) throws {
    guard isCompressed else { return try method.receive(message) }
    try call.decompress(message).withUnsafeBytes { try method.receive($0) }
  }

  /// Updates the charge of the budget to the unread bytes. Returns `false` if the loop's budget is exceeded.
  @discardableResult
  private func charge() -> Bool {
    let bytes = max(reader.unreadBytes - Self.bytesFree, 0)
    if bytes < chargedBytes {
      call.exchange.release(chargedBytes - bytes)
    } else if bytes > chargedBytes, !call.exchange.reserve(bytes - chargedBytes) {
      return false
    }
    chargedBytes = bytes
    return true
  }

  // MARK: Responses

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard !isOver else { return .finished }
    do {
      if let failure { throw failure }
      let mayHaveMore = try method.pull(into: &out)
      // Pulling responses may have made room for messages.
      if isPaused, method.hasRoom { takeMessages() }
      if mayHaveMore { return .more }
      guard failure == nil else { return .more }
      guard isClientDone, reader.unreadBytes == 0, method.isSettled else { return .waiting }
    } catch {
      let status = Status(error, database: call.database)
      call.exchange.logFailure(of: status)
      failure = status
    }
    close()
    return .finished
  }

  func addTrailers(to trailers: inout HeaderWriter) {
    if let failure {
      GRPCStatus.add(failure, to: &trailers)
    } else {
      GRPCStatus.addOK(to: &trailers)
    }
  }
}
