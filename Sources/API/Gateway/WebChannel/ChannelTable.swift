import Synchronization
import Transport

/// The channels that are open, by their session ids: requests of one may come on any loop.
final class ChannelTable: Sendable {
  /// How many there may be.
  struct Limits: Sendable {
    /// In all. A channel that says nothing takes a few KiB.
    var channelsMax = 50_000
    /// From one address, which may be that of a proxy.
    var addressChannelsMax = 20_000
    /// Bytes that all of them hold for their clients.
    var heldBytesMax = 256 << 20
  }

  private struct Entry {
    let method: ChannelMethod
    let address: String
    /// Comes a moment later: the channel is made on its loop.
    var channel: LoopBound<Channel>?
  }

  private struct Entries {
    var channels: [SessionID: Entry] = [:]
    var countByAddress: [String: Int] = [:]
  }

  /// The memory they share.
  let budget: ChannelBudget
  private let limits: Limits
  private let entries = Mutex(Entries())

  init(_ limits: Limits = Limits()) {
    self.limits = limits
    budget = ChannelBudget(bytesMax: limits.heldBytesMax)
  }

  /// How many channels are open.
  var count: Int { entries.withLock { $0.channels.count } }

  /// Takes a place for a channel; `nil` where there is none.
  func reserve(_ method: ChannelMethod, from address: String) -> SessionID? {
    let id = SessionID()
    return entries.withLock { entries in
      let count = entries.countByAddress[address] ?? 0
      guard entries.channels.count < limits.channelsMax, count < limits.addressChannelsMax else { return nil }
      entries.channels[id] = Entry(method: method, address: address)
      entries.countByAddress[address] = count + 1
      return id
    }
  }

  /// Puts a channel in the place taken for it.
  func put(_ channel: LoopBound<Channel>, at id: SessionID) {
    entries.withLock { $0.channels[id]?.channel = channel }
  }

  /// The channel of an id as a client sends it.
  /// - Throws: ``ChannelFault/unknownSession``, also for one that carries another method.
  func find(_ text: String, _ method: ChannelMethod) throws(ChannelFault) -> LoopBound<Channel> {
    let entry = SessionID(text).flatMap { id in entries.withLock { $0.channels[id] } }
    guard let entry, entry.method == method, let channel = entry.channel else { throw .unknownSession }
    return channel
  }

  /// Gives a place free. Harmless where it is.
  func remove(_ id: SessionID) {
    let removed = entries.withLock { entries -> Entry? in
      guard let entry = entries.channels.removeValue(forKey: id) else { return nil }
      let count = entries.countByAddress[entry.address, default: 1] - 1
      entries.countByAddress[entry.address] = count == 0 ? nil : count
      return entry
    }
    // Released here, and not under the lock.
    _ = removed
  }
}
