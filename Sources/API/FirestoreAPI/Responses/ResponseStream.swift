import DatabaseService
import DocumentModel
import Transport

/// A streamed response. It produces and encodes messages slice by slice, only as fast as the client reads.
final class ResponseStream<Producer: ResponseProducer, Encoder: ResponseEncoder>: BodySource {
  private let producer: Producer
  private var encoder: Encoder
  private let database: DatabaseID
  private var first: [UInt8] = []
  private var isBegun = false
  private var failure: Status?
  /// The number of consecutive slices without output.
  private var emptySlices = 0
  /// The number of empty slices before ``ResponseEncoder/idle()``. They take some ten milliseconds.
  private static var emptySlicesMax: Int { 64 }
  /// The exchange to resume after the producer waited.
  private let exchange: Exchange?
  /// Runs with the error that ends the response early.
  var onFailure: ((Status) -> Void)?
  /// Runs once, after the last slice was produced.
  var onEnd: (() -> Void)?

  init(_ producer: Producer, _ encoder: Encoder, database: DatabaseID, on exchange: Exchange? = nil) {
    self.exchange = exchange
    self.producer = producer
    self.encoder = encoder
    self.database = database
  }

  /// Produces the first slice. Returns the whole response if one slice suffices; otherwise the stream continues
  /// after it.
  ///
  /// Most responses need only one slice. An error in it can still become a response with its own status.
  ///
  /// - Throws: the producer's errors.
  func whole() throws -> [UInt8]? {
    let isLast = try appendSlice(to: &first)
    return isLast ? first : nil
  }

  /// Ends the response with an error in its next slice.
  func stop(_ status: Status) { failure = status }

  var heldBytes: Int { first.count }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    do {
      if let failure { throw failure }
      if !first.isEmpty {
        if out.isEmpty { swap(&out, &first) } else { out.append(contentsOf: first) }
        first = []
        return .more
      }
      guard try appendSlice(to: &out) else {
        if let exchange, producer.wait(exchange.wake) { return .waiting }
        return .more
      }
    } catch {
      let status = Status(error, database: database)
      onFailure?(status)
      encoder.fail(status)
      encoder.take(into: &out)
    }
    onEnd?()
    onEnd = nil
    return .finished
  }

  func addTrailers(to trailers: inout HeaderWriter) { encoder.addTrailers(to: &trailers) }

  /// Appends about a slice. Returns whether it was the last.
  private func appendSlice(to out: inout [UInt8]) throws -> Bool {
    if !isBegun {
      isBegun = true
      encoder.begin()
    }
    let isLast = try producer.produce { message in
      try encoder.append(message)
      return encoder.byteCount < Exchange.sliceBytes
    }
    emptySlices = encoder.byteCount == 0 ? emptySlices + 1 : 0
    if isLast {
      encoder.end()
    } else if emptySlices == Self.emptySlicesMax {
      encoder.idle()
      emptySlices = 0
    }
    encoder.take(into: &out)
    return isLast
  }
}
