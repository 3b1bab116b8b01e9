import DatabaseService
import DocumentModel
import Transport

/// A streamed answer on its way: messages are made and written slice by slice, only while the client takes them.
final class ResponseStream<Producer: ResponseProducer, Encoder: ResponseEncoder>: BodySource {
  private let producer: Producer
  private var encoder: Encoder
  private let database: DatabaseID
  private var first: [UInt8] = []
  private var isBegun = false
  private var failure: Status?
  /// Slices since the last that had something to send.
  private var emptySlices = 0
  /// So many slices take some ten milliseconds.
  private static var emptySlicesMax: Int { 64 }
  /// Called with what ends it too early.
  var onFailure: ((Status) -> Void)?
  /// Called once, when the last slice was made.
  var onEnd: (() -> Void)?

  init(_ producer: Producer, _ encoder: Encoder, database: DatabaseID) {
    self.producer = producer
    self.encoder = encoder
    self.database = database
  }

  /// Makes the first slice. Returns the answer when that is all of it; otherwise the stream goes on from there.
  ///
  /// Most answers are one slice, and what fails in it can still be answered with a status of its own.
  /// - Throws: what the producer throws.
  func whole() throws -> [UInt8]? {
    let isLast = try appendSlice(to: &first)
    return isLast ? first : nil
  }

  /// Makes the next slice the last: it tells the client why.
  func stop(_ status: Status) { failure = status }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    do {
      if let failure { throw failure }
      if !first.isEmpty {
        out.append(contentsOf: first)
        first = []
        return .more
      }
      guard try appendSlice(to: &out) else { return .more }
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

  /// Appends about a slice; returns whether it was the last.
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
