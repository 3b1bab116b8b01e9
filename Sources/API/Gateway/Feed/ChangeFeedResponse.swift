import DatabaseService
import DocumentModel
import Transport

/// What a feed tells, event by event. Belongs to one loop's thread.
protocol ChangeFeedProducer: AnyObject {
  /// Whether it is certain that the caller may have the feed: errors before are answered with a status of their own.
  var isAdmitted: Bool { get }
  /// Writes events until about `bytesMax` bytes wait in `writer`, or until there is nothing to tell now.
  func produce(into writer: inout ChangeFeedWriter, bytesMax: Int) throws -> FeedProgress
  /// Lets go of what it holds; nothing is asked of it any more.
  func end()
}

/// How far a ``ChangeFeedProducer`` came.
enum FeedProgress {
  /// There may be more.
  case more
  /// There is nothing to tell until it wakes the feed.
  case waiting
  /// That was the last event.
  case ended
}

/// A feed as the answer to a request: begun once the caller was admitted, then as fast as the client takes events,
/// until one of the two leaves or the server stops.
///
/// Nothing is produced for a client that does not read; what waits for it is the producer's business and bounded there.
final class ChangeFeedResponse: BodySource {
  /// A client hears something at least this often, also when nothing happens.
  static let keepAliveMilliseconds = 25_000

  private enum State { case admitting, streaming, ended }

  private let responder: Responder
  private let database: DatabaseID
  private let producer: any ChangeFeedProducer
  private let waker: Waker
  private var writer: ChangeFeedWriter
  private var state = State.admitting
  /// Events made before the answer was begun.
  private var early: [UInt8] = []
  private var isStopping = false
  private var isKeepAliveDue = false
  private var lastSentMilliseconds = 0
  private var timer: LoopTimer?

  private var exchange: Exchange { responder.exchange }

  private init(
    _ responder: Responder, _ format: FeedFormat, _ database: DatabaseID, _ producer: any ChangeFeedProducer, _ waker: Waker
  ) {
    self.responder = responder
    self.waker = waker
    self.database = database
    self.producer = producer
    writer = ChangeFeedWriter(format)
    writer.begin()
  }

  /// Answers a request with the feed that `open` makes; the producer calls the closure it is given, on any thread, when
  /// there is something to tell after ``FeedProgress/waiting``. On the loop's thread.
  /// - Throws: what `open` throws.
  static func start(
    _ responder: Responder, _ format: FeedFormat, of database: DatabaseID,
    _ open: (_ wake: @escaping @Sendable () -> Void) throws -> any ChangeFeedProducer
  ) throws {
    let waker = Waker()
    let onLoop = LoopBound(waker, to: responder.exchange.loop)
    let producer = try open { onLoop.later { $0.feed?.advance() } }
    let feed = ChangeFeedResponse(responder, format, database, producer, waker)
    waker.feed = feed
    responder.exchange.onClose { feed.end() }
    responder.exchange.onShutdown { feed.stop() }
    feed.advance()
  }

  /// What a producer calls: it is there before the feed, and leads nowhere once the feed has ended.
  private final class Waker {
    var feed: ChangeFeedResponse?
  }

  // MARK: - Admission

  /// Goes on with whatever comes next: there may be something to tell.
  private func advance() {
    switch state {
    case .admitting: admit()
    case .streaming: exchange.resume()
    case .ended: break
    }
  }

  private func admit() {
    do {
      let progress = try producer.produce(into: &writer, bytesMax: Exchange.sliceBytes)
      if producer.isAdmitted || progress == .ended {
        begin(isWhole: progress == .ended)
      } else if progress == .more {
        LoopBound(self, to: exchange.loop).later { $0.advance() }
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

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    let sentBytes = out.count
    writer.swapBytes(&out)
    defer {
      writer.swapBytes(&out)
      if out.count > sentBytes { lastSentMilliseconds = exchange.loop.nowMilliseconds }
    }
    return appendSlice(behind: sentBytes)
  }

  private func appendSlice(behind sentBytes: Int) -> BodyProgress {
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
      case .ended: return finish()
      }
    } catch {
      let status = Status(error, database: database)
      exchange.tell(status)
      writer.error(status)
      return finish()
    }
  }

  private func finish() -> BodyProgress {
    end()
    return .finished
  }

  // MARK: - Time, and the end

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

  /// The server stops: the feed ends, and its client comes back with its token.
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
