import DatabaseService
import DocumentModel
import Testing
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore
@testable import Transport

/// Streamed responses without a connection: slices, ends, failures and deadlines, for gRPC and REST.
@Suite struct ResponseStreamTests {
  /// Produces `left` messages, then ends or fails.
  private final class Producer: ResponseProducer {
    var left: Int
    let failure: Status?

    init(_ count: Int, failure: Status? = nil) {
      left = count
      self.failure = failure
    }

    func produce(_ emit: (RunQueryResponse) throws -> Bool) throws -> Bool {
      while left > 0 {
        left -= 1
        guard try emit(RunQueryResponse(readTime: Timestamp(uncheckedMicroseconds: 1))) else { return false }
      }
      if let failure { throw failure }
      return true
    }
  }

  private static func database() throws -> DatabaseID { try #require(DatabaseID(project: "p")) }

  private static func grpc(_ producer: Producer) throws -> ResponseStream<Producer, ProtobufResponseEncoder> {
    ResponseStream(
      producer, ProtobufResponseEncoder(GRPCCompression(exchange: nil)), database: try database())
  }

  private static func json(_ producer: Producer) throws -> ResponseStream<Producer, JSONResponseEncoder> {
    ResponseStream(producer, JSONResponseEncoder(.compact), database: try database())
  }

  private static func rest(of stream: some BodySource) -> [UInt8] {
    var out: [UInt8] = []
    while true {
      switch stream.nextSlice(into: &out) {
      case .more, .waiting: continue
      case .finished, .failed: return out
      }
    }
  }

  private static func trailers(of stream: some BodySource) -> String {
    var trailers = HeaderWriter(bytes: [])
    stream.addTrailers(to: &trailers)
    return String(decoding: trailers.bytes, as: UTF8.self)
  }

  /// The bytes of one message: its gRPC header, and a read time of one microsecond.
  private static let messageBytes = 5 + 5

  @Test(arguments: [0, 1, 100]) func shortResponsesAreSentWhole(count: Int) throws {
    let stream = try Self.grpc(Producer(count))
    #expect(try stream.whole()?.count == count * Self.messageBytes)
    #expect(Self.trailers(of: stream) == "grpc-status: 0\r\n")
    let text = try #require(try Self.json(Producer(count)).whole())
    #expect(text.first == UInt8(ascii: "[") && text.last == UInt8(ascii: "]"))
  }

  @Test func longResponsesAreSentInSlices() throws {
    let count = 3 * Exchange.sliceBytes / Self.messageBytes
    let producer = Producer(count)
    let stream = try Self.grpc(producer)
    #expect(try stream.whole() == nil)
    // The producer makes only the messages of the slices that were requested.
    #expect(producer.left > count / 2)
    var isEnded = false
    stream.onEnd = { isEnded = true }
    #expect(Self.rest(of: stream).count == count * Self.messageBytes)
    #expect(isEnded)
    #expect(Self.trailers(of: stream) == "grpc-status: 0\r\n")
  }

  @Test func failuresBeforeTheFirstSliceAreThrown() throws {
    let failure = Status(.failedPrecondition, "no")
    #expect(throws: failure) { try Self.grpc(Producer(3, failure: failure)).whole() }
    #expect(throws: failure) { try Self.json(Producer(3, failure: failure)).whole() }
  }

  @Test func laterFailuresEndTheResponse() throws {
    let failure = Status(.failedPrecondition, "no")
    let count = 2 * Exchange.sliceBytes / Self.messageBytes
    let stream = try Self.grpc(Producer(count, failure: failure))
    #expect(try stream.whole() == nil)
    #expect(Self.rest(of: stream).count == count * Self.messageBytes)
    #expect(Self.trailers(of: stream) == "grpc-status: 9\r\ngrpc-message: no\r\n")
    let json = try Self.json(Producer(count, failure: failure))
    #expect(try json.whole() == nil)
    let text = String(decoding: Self.rest(of: json), as: UTF8.self)
    #expect(text.hasSuffix(#",{"error":{"code":400,"message":"no","status":"FAILED_PRECONDITION"}}]"#))
  }

  @Test func deadlinesEndTheResponse() throws {
    let producer = Producer(.max)
    let stream = try Self.grpc(producer)
    #expect(try stream.whole() == nil)
    var out: [UInt8] = []
    #expect(stream.nextSlice(into: &out) == .more)
    stream.stop(Status(.deadlineExceeded, "late"))
    let (made, sent) = (producer.left, out.count)
    #expect(stream.nextSlice(into: &out) == .finished)
    // Nothing is produced after the deadline.
    #expect(producer.left == made && out.count == sent)
    #expect(Self.trailers(of: stream) == "grpc-status: 4\r\ngrpc-message: late\r\n")
  }
}
