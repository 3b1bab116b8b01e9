import DatabaseService
import DocumentModel
import Transport

/// What a method that streams both ways does with messages. Belongs to the loop's thread of its call.
protocol GRPCStreamMethod: AnyObject {
  /// Whether it takes another message now; where not, it does after answers were pulled.
  var hasRoom: Bool { get }
  /// Whether a client that sends nothing more has all that it is due, once there is nothing to pull.
  var isSettled: Bool { get }
  /// Takes a message.
  /// - Throws: what ends the call.
  func receive(_ message: UnsafeRawBufferPointer) throws
  /// Appends about a slice of framed messages; returns whether there may be more now.
  /// - Throws: what ends the call, behind the messages that it appended.
  func pull(into out: inout [UInt8]) throws -> Bool
  /// Has the call end with an error as soon as that harms nothing.
  func stop(_ status: Status)
  /// The call is over.
  func end()
}

/// A call that streams both ways: takes messages as they come, and makes answers only as the client takes them.
///
/// Messages that the method has no room for stay with the client, up to the window of HTTP/2. A client that ends its
/// side is given what it is due, and then the end.
final class GRPCStream: BodySink, BodySource {
  private let call: GRPCCall
  private let method: any GRPCStreamMethod
  private var reader = GRPCFrameReader(messageBytesMax: Limits.enterpriseRequestBytesMax)
  /// What unread bytes take of the loop's budget.
  private var chargedBytes = 0
  private var isPaused = false
  private var isClientDone = false
  private var isOver = false
  private var failure: Status?
  /// Called once, when the last message was made.
  var onEnd: (() -> Void)?

  /// Bytes that are not charged: the rest of most pieces.
  private static let bytesFree = 16 << 10

  init(_ call: GRPCCall, _ method: any GRPCStreamMethod) {
    self.call = call
    self.method = method
  }

  /// Has the call end with an error: at once, or, where it `isOrderly`, when that harms nothing.
  func stop(_ status: Status, isOrderly: Bool = false) {
    guard !isOver else { return }
    if isOrderly { method.stop(status) } else { failure = failure ?? status }
    call.exchange.resume()
  }

  /// Lets everything go.
  func close() {
    guard !isOver else { return }
    isOver = true
    method.end()
    reader = GRPCFrameReader(messageBytesMax: 0)
    charge()
    onEnd?()
    onEnd = nil
  }

  // MARK: What the client sends

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
      if !charge() { throw Status(.unavailable, "The server holds too many large requests. Try again.") }
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

  /// Brings what is charged in line with what is unread; `false` where the loop's budget does not allow it.
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

  // MARK: What it is answered

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard !isOver else { return .finished }
    do {
      if let failure { throw failure }
      let mayHaveMore = try method.pull(into: &out)
      // Answers made room.
      if isPaused, method.hasRoom { takeMessages() }
      if mayHaveMore { return .more }
      guard failure == nil else { return .more }
      guard isClientDone, reader.unreadBytes == 0, method.isSettled else { return .waiting }
    } catch {
      let status = Status(error, database: call.database)
      call.exchange.tell(status)
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
