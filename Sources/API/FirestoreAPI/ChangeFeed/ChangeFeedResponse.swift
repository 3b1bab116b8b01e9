import DatabaseService
import DocumentModel
import GatewayCore
import Transport

/// A producer of a feed's events. Use it on one loop's thread only.
protocol ChangeFeedProducer: AnyObject {
  /// Whether the caller is certainly authorized for the feed. An error before that becomes a response with its own
  /// status.
  var isAdmitted: Bool { get }
  /// Writes events until about `bytesMax` bytes wait in `writer`, or no event is available. After
  /// ``BodyProgress/waiting`` the producer wakes the feed.
  func produce(into writer: inout ChangeFeedWriter, bytesMax: Int) throws -> BodyProgress
  /// Releases its resources. It is not used afterwards.
  func end()
}

/// A feed as the response to a request. It starts after the caller was authorized and then runs as fast as the
/// client reads, until the client disconnects, the feed ends or the server stops.
///
/// It produces nothing while the client does not read. The producer limits the changes that wait meanwhile.
final class ChangeFeedResponse: BodySource {
  /// The longest time without data to the client.
  static let keepAliveMilliseconds = 25_000

  private enum State { case admitting, streaming, ended }

  private let responder: Responder
  private let database: DatabaseID
  private let producer: any ChangeFeedProducer
  private let waker: Waker
  private var writer: ChangeFeedWriter
  private var state = State.admitting
  /// Events written before the response started.
  private var early: [UInt8] = []
  private var isStopping = false
  private var isKeepAliveDue = false
  private var lastSentMilliseconds = 0
  private var timer: LoopTimer?

  private var exchange: Exchange { responder.exchange }

  private init(
    _ responder: Responder, _ format: ChangeFeedFormat, _ database: DatabaseID, _ producer: any ChangeFeedProducer,
    _ waker: Waker
  ) {
    self.responder = responder
    self.waker = waker
    self.database = database
    self.producer = producer
    writer = ChangeFeedWriter(format)
    writer.begin()
  }

  /// Starts a feed as the response to a request. Call it on the loop's thread.
  ///
  /// - Parameter open: creates the producer. After ``BodyProgress/waiting`` the producer calls `wake`, on any
  ///   thread, if an event is available.
  /// - Throws: the errors of `open`.
  static func start(
    _ responder: Responder, _ format: ChangeFeedFormat, of database: DatabaseID,
    _ open: (_ wake: @escaping @Sendable () -> Void) throws -> any ChangeFeedProducer
  ) throws {
    let waker = Waker()
    let onLoop = LoopBound(waker, to: responder.exchange.loop)
    let producer = try open { onLoop.later { $0.feed?.advance() } }
    let feed = ChangeFeedResponse(responder, format, database, producer, waker)
    waker.feed = feed
    responder.exchange.onClose { feed.end() }
    responder.exchange.onShutdown { feed.stop() }
    feed.admit()
  }

  /// The target of the producer's wake-ups. It exists before the feed, and ignores wake-ups after the feed has
  /// ended.
  private final class Waker {
    var feed: ChangeFeedResponse?
  }

  // MARK: - Admission

  /// Continues, because an event may be available.
  private func advance() {
    switch state {
    case .admitting: exchange.loop.atNextTurn { [self] in if state == .admitting { admit() } }
    case .streaming: exchange.resume()
    case .ended: break
    }
  }

  private func admit() {
    do {
      let progress = try producer.produce(into: &writer, bytesMax: Exchange.sliceBytes)
      if producer.isAdmitted || progress == .finished {
        begin(isWhole: progress == .finished)
      } else if progress == .more {
        advance()
      }
    } catch {
      end()
      responder.sendError(Status(error, database: database))
    }
  }

  private func begin(isWhole: Bool) {
    writer.swapBytes(&early)
    state = .streaming
    if isWhole { isStopping = true }
    lastSentMilliseconds = exchange.loop.nowMilliseconds
    if writer.format == .events { scheduleKeepAlive(afterMilliseconds: Self.keepAliveMilliseconds) }
    responder.stream(writer.format, from: self)
  }

  // MARK: - Events

  var heldBytes: Int { early.count }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    let sentBytes = out.count
    writer.swapBytes(&out)
    defer {
      writer.swapBytes(&out)
      if out.count > sentBytes { lastSentMilliseconds = exchange.loop.nowMilliseconds }
    }
    return appendSlice(after: sentBytes)
  }

  private func appendSlice(after sentBytes: Int) -> BodyProgress {
    if !early.isEmpty {
      writer.append(early)
      early = []
      if !isStopping { return .more }
    }
    if isKeepAliveDue {
      isKeepAliveDue = false
      writer.keepAlive()
    }
    do {
      guard !isStopping else { return finish() }
      switch try producer.produce(into: &writer, bytesMax: sentBytes + Exchange.sliceBytes) {
      case .more: return .more
      case .waiting: return .waiting
      case .finished, .failed: return finish()
      }
    } catch {
      let status = Status(error, database: database)
      exchange.logFailure(of: status)
      writer.error(status)
      return finish()
    }
  }

  private func finish() -> BodyProgress {
    end()
    return .finished
  }

  // MARK: - Timeouts and end

  private func scheduleKeepAlive(afterMilliseconds milliseconds: Int) {
    timer = exchange.loop.schedule(afterMilliseconds: milliseconds) { [unowned self] in
      let silence = exchange.loop.nowMilliseconds - lastSentMilliseconds
      guard silence >= Self.keepAliveMilliseconds else {
        return scheduleKeepAlive(afterMilliseconds: Self.keepAliveMilliseconds - silence)
      }
      scheduleKeepAlive(afterMilliseconds: Self.keepAliveMilliseconds)
      isKeepAliveDue = true
      exchange.resume()
    }
  }

  /// Ends the feed because the server stops. The client reconnects with its resume token.
  private func stop() {
    isStopping = true
    if state == .admitting {
      end()
      responder.sendError(Status(.unavailable, "The server is stopping. Try again."))
    } else {
      exchange.resume()
    }
  }

  private func end() {
    guard state != .ended else { return }
    state = .ended
    timer?.cancel()
    timer = nil
    waker.feed = nil
    producer.end()
  }
}
