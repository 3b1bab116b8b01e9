import DatabaseService
import Synchronization
import Transport

/// The hanging response of a channel: carries chunks, each asked for when the client took the one before.
///
/// Belongs to the loop of its exchange, which need not be the channel's.
final class BackChannel: BodySource {
  private static let numbers = Atomic<Int>(0)

  /// Tells the channel whether what it hears of is still its back channel.
  let number = BackChannel.numbers.wrappingAdd(1, ordering: .relaxed).newValue
  private let responder: Responder
  private let channel: LoopBound<Channel>
  private var pending: [UInt8] = []
  private var isAsking = false
  private var isLast = false

  /// Makes the response to a request that waits for one, on its loop.
  init(_ responder: Responder, of channel: LoopBound<Channel>) {
    self.responder = responder
    self.channel = channel
    let number = number
    responder.exchange.onClose { channel.onLoop { $0.lost(number) } }
    responder.exchange.onShutdown { channel.onLoop { $0.shutDown() } }
  }

  /// Begins the response.
  func begin() { responder.streamChannel(from: self) }

  /// Refuses the request.
  func refuse(_ fault: ChannelFault) { responder.sendFault(fault) }

  /// Sends a chunk that was asked for; the last one ends the response.
  func send(_ chunk: [UInt8], isLast: Bool) {
    pending = chunk
    isAsking = false
    self.isLast = isLast
    responder.exchange.resume()
  }

  /// Tells the log of a status that is a fault of the server's.
  func tell(_ status: Status) { responder.exchange.tell(status) }

  /// Ends the response: another took its place, or the channel is over.
  func finish() {
    isLast = true
    responder.exchange.resume()
  }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if pending.isEmpty, !isLast, !isAsking {
      isAsking = true
      let number = number
      // On the same loop the chunk may be here when this returns.
      channel.onLoop { $0.wantsChunk(number) }
    }
    if !pending.isEmpty {
      out.append(contentsOf: pending)
      pending = []
      return isLast ? .finished : .more
    }
    return isLast ? .finished : .waiting
  }
}
