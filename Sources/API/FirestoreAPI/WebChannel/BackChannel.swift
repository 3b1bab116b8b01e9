import DatabaseService
import GatewayCore
import Synchronization
import Transport

/// The back channel: the long-lived response that carries chunks to the client. It requests a chunk after the
/// client has read the one before.
///
/// Use it on the loop of its exchange only, which may differ from the channel's loop.
final class BackChannel: BodySource {
  private static let numbers = Atomic<Int>(0)

  /// Identifies the response, so that the channel can ignore events of an earlier back channel.
  let number = BackChannel.numbers.wrappingAdd(1, ordering: .relaxed).newValue
  private let responder: Responder
  private let channel: LoopBound<Channel>
  private var pending: [UInt8] = []
  private var isAsking = false
  private var isLast = false

  /// Creates the response to a request, on the request's loop.
  init(_ responder: Responder, of channel: LoopBound<Channel>) {
    self.responder = responder
    self.channel = channel
    let number = number
    responder.exchange.onClose { channel.onLoop { $0.backChannelClosed(number) } }
    responder.exchange.onShutdown { channel.onLoop { $0.shutDown() } }
  }

  /// Starts the response.
  func begin() { responder.streamChannel(from: self) }

  /// Rejects the request.
  func refuse(_ fault: ChannelFault) { responder.sendFault(fault) }

  /// Sends a requested chunk. The last one ends the response.
  func send(_ chunk: [UInt8], isLast: Bool) {
    pending = chunk
    isAsking = false
    self.isLast = isLast
    responder.exchange.resume()
  }

  /// Logs a status if the server is at fault.
  func logFailure(of status: Status) { responder.exchange.logFailure(of: status) }

  /// Ends the response, because another has replaced it or the channel has ended.
  func finish() {
    isLast = true
    responder.exchange.resume()
  }

  var heldBytes: Int { pending.count }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if pending.isEmpty, !isLast, !isAsking {
      isAsking = true
      let number = number
      // On the same loop this call may already send the chunk.
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
