import GatewayCore
import LogEngine
import Replication
import SharedLog
import Transport

/// Serves the log of the project to the other nodes, at the node that owns it: `POST /log?after=SEQUENCE`. It also tells
/// nodes that look for the owner that they found it: `POST /owner`, whose response is the epoch, in 8 bytes.
///
/// The response is a stream of ``EntryMessage``s. The body of the request is a sequence of questions: numbers of 8 bytes,
/// little-endian. ``helloNumber`` is no question: it says that the node knows ``EntryFeed/ownerOnly``. The answer to a
/// question follows all entries that were appended before the question arrived. So the node that asks has every acknowledged
/// commit when it has applied what came before the answer.
final class LogStreamHandler: RequestHandler {
  /// The path of the stream.
  static let path = "/log"
  /// The path of the question of a node that looks for the owner.
  static let ownerPath = "/owner"

  /// The number that is no question.
  static let helloNumber = UInt64.max

  private let member: ClusterMember

  init(_ member: ClusterMember) { self.member = member }

  /// Returns the target of a request for the entries after a sequence.
  static func target(after sequence: UInt64) -> String { "\(path)?after=\(sequence)" }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { exchange.refuseAsNotOwner() }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let (path, query) = request.target.pathAndQuery
    if path.elementsEqual(Self.ownerPath.utf8) {
      answerAsOwner(exchange)
      return nil
    }
    guard path.elementsEqual(Self.path.utf8), let epoch = member.feed.epoch,
      let after = query.dropping("after=").flatMap({ UInt64(String(decoding: $0, as: UTF8.self)) })
    else {
      exchange.refuseAsNotOwner()
      return nil
    }
    let stream = LogStream(member, exchange, epoch: epoch, after: after)
    stream.start()
    return stream
  }

  /// Responds with the epoch, if this node owns the project now and serves it.
  private func answerAsOwner(_ exchange: Exchange) {
    guard let epoch = member.feed.epoch, member.feed.configuration != nil, member.readPosition(in: epoch) != nil else {
      return exchange.refuseAsNotOwner()
    }
    exchange.respond(
      status: 200, headers: { _ in }, compressible: false,
      body: { body in withUnsafeBytes(of: epoch.littleEndian) { body.append(contentsOf: $0) } })
  }
}

/// One stream to another node. Belongs to the loop of its exchange.
private final class LogStream: BodySink, BodySource {
  /// The most questions without an answer. A node has one at a time.
  private static let questionsMax = 64

  private let member: ClusterMember
  private let exchange: Exchange
  private let epoch: UInt64
  /// The sequence of the last entry that was sent.
  private var sent: UInt64
  private var sentConfiguration: Int64 = -1
  /// Whether the node knows ``EntryFeed/ownerOnly``. A node of an earlier version reads documents also while it may not.
  private var knowsOwnerOnly = false
  private var reader = QuestionReader()
  /// The questions without an answer, each with the sequence that its answer must follow.
  private var questions: [(number: UInt64, sequence: UInt64)] = []
  private var observer: Int?
  private var isOver = false

  init(_ member: ClusterMember, _ exchange: Exchange, epoch: UInt64, after: UInt64) {
    self.member = member
    self.exchange = exchange
    self.epoch = epoch
    sent = after
  }

  func start() {
    observer = member.feed.observe(exchange.wake)
    exchange.onClose { [self] in end() }
    exchange.onShutdown { [self] in
      isOver = true
      exchange.resume()
    }
    exchange.stream(status: 200, headers: { _ in }, from: self)
  }

  private func end() {
    isOver = true
    if let observer { member.feed.end(observer) }
    observer = nil
  }

  // MARK: Questions

  func received(_ bytes: UnsafeRawBufferPointer) {
    reader.append(bytes)
    while !isOver, let number = reader.next() {
      guard number != LogStreamHandler.helloNumber else {
        knowsOwnerOnly = true
        continue
      }
      // A node that is not the owner any more answers nothing.
      guard let sequence = member.readPosition(in: epoch)?.sequence, questions.count < Self.questionsMax else {
        isOver = true
        break
      }
      questions.append((number, sequence))
    }
    exchange.resume()
  }

  func ended() {
    isOver = true
    exchange.resume()
  }

  // MARK: Messages

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard !isOver else { return finish() }
    let entries: [SharedEntry]
    switch member.feed.entries(after: sent, in: epoch, bytesMax: Exchange.sliceBytes) {
    case .over: return finish()
    case .behind:
      EntryMessage.behind.encode(into: &out)
      return finish()
    case .entries(let found): entries = found
    }
    for entry in entries {
      EntryMessage.entry(entry).encode(into: &out)
      sent = entry.position.sequence
    }
    // An owner that serves nothing yet answers nothing: it could name an older configuration than the former owner had.
    let announced = knowsOwnerOnly ? member.feed.announced : member.feed.configuration
    guard let version = announced else { return entries.isEmpty ? .waiting : .more }
    while let question = questions.first, question.sequence <= sent {
      questions.removeFirst()
      EntryMessage.answer(question.number, sequence: question.sequence, configuration: version).encode(into: &out)
      sentConfiguration = version
    }
    if version != sentConfiguration {
      sentConfiguration = version
      EntryMessage.configuration(version).encode(into: &out)
    }
    return entries.isEmpty ? .waiting : .more
  }

  private func finish() -> BodyProgress {
    end()
    return .finished
  }
}
