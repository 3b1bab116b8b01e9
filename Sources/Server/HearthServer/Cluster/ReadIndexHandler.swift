import GatewayCore
import Replication
import Transport

/// Answers the other nodes how far the log is, at the node that owns the project: `POST /index`.
///
/// The body of the request is a sequence of questions: numbers of 8 bytes, little-endian. The response is the sequence of the
/// answers, each of ``ReadIndex/answerBytes`` bytes. A node that does not own the project any more ends the response.
final class ReadIndexHandler: RequestHandler {
  /// The path of the requests.
  static let path = "/index"

  private let member: ClusterMember

  init(_ member: ClusterMember) { self.member = member }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) { exchange.refuseAsNotOwner() }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    guard let epoch = member.feed.epoch else {
      exchange.refuseAsNotOwner()
      return nil
    }
    let stream = ReadIndexStream(member, exchange, epoch: epoch)
    stream.start()
    return stream
  }
}

/// The questions of one loop of another node. Belongs to the loop of its exchange.
private final class ReadIndexStream: BodySink, BodySource {
  /// The most bytes of answers that wait. A loop has few questions at a time.
  private static let answersBytesMax = 64 * ReadIndex.answerBytes

  private let member: ClusterMember
  private let exchange: Exchange
  private let epoch: UInt64
  private var reader = QuestionReader()
  private var answers: [UInt8] = []
  private var isOver = false

  init(_ member: ClusterMember, _ exchange: Exchange, epoch: UInt64) {
    self.member = member
    self.exchange = exchange
    self.epoch = epoch
  }

  func start() {
    exchange.onShutdown { [self] in ended() }
    exchange.stream(status: 200, headers: { _ in }, from: self)
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    reader.append(bytes)
    while !isOver, let number = reader.next() {
      // An owner that serves nothing yet could name an older configuration than the former owner had.
      guard let position = member.readPosition(in: epoch), let configuration = member.feed.announced,
        answers.count < Self.answersBytesMax
      else {
        isOver = true
        break
      }
      ReadIndex(position, configuration: configuration).encode(answering: number, to: &answers)
    }
    exchange.resume()
  }

  func ended() {
    isOver = true
    exchange.resume()
  }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    out += answers
    answers.removeAll(keepingCapacity: true)
    return isOver ? .finished : .waiting
  }
}
