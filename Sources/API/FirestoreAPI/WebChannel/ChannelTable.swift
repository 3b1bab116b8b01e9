import Synchronization
import Transport

/// The open channels by session ID. Requests for a channel may arrive on any loop.
final class ChannelTable: Sendable {
  /// The limits of open channels.
  struct Limits: Sendable {
    /// The limit in total. An idle channel takes a few KiB.
    var channelsMax = 50_000
    /// The limit per address, which may be that of a proxy.
    var addressChannelsMax = 20_000
    /// The limit of bytes that all channels together buffer for their clients.
    var heldBytesMax = 32 << 20
  }

  private struct Entry {
    let method: ChannelMethod
    let address: String
    /// Set after the reservation, because the channel is created on its loop.
    var channel: LoopBound<Channel>?
  }

  private struct Entries {
    var channels: [SessionID: Entry] = [:]
    var countByAddress: [String: Int] = [:]
  }

  let budget: ChannelBudget
  private let limits: Limits
  private let node: UInt16
  private let entries = Mutex(Entries())

  /// Creates an empty table, on a node of a cluster with the number of the node.
  init(_ limits: Limits = Limits(), node: UInt16 = 0) {
    self.limits = limits
    self.node = node
    budget = ChannelBudget(bytesMax: limits.heldBytesMax)
  }

  /// The number of open channels.
  var count: Int { entries.withLock { $0.channels.count } }

  /// Reserves an ID for a channel, or returns `nil` if a limit is reached.
  func reserve(_ method: ChannelMethod, from address: String) -> SessionID? {
    let id = SessionID(node: node)
    return entries.withLock { entries in
      let count = entries.countByAddress[address] ?? 0
      guard entries.channels.count < limits.channelsMax, count < limits.addressChannelsMax else { return nil }
      entries.channels[id] = Entry(method: method, address: address)
      entries.countByAddress[address] = count + 1
      return id
    }
  }

  /// Stores a channel under its reserved ID.
  func put(_ channel: LoopBound<Channel>, at id: SessionID) {
    entries.withLock { $0.channels[id]?.channel = channel }
  }

  /// Returns the channel with an ID that a client sent.
  ///
  /// - Throws: ``ChannelFault/unknownSession`` if the channel does not exist or carries another method.
  func find(_ text: String, _ method: ChannelMethod) throws(ChannelFault) -> LoopBound<Channel> {
    let entry = SessionID(text).flatMap { id in entries.withLock { $0.channels[id] } }
    guard let entry, entry.method == method, let channel = entry.channel else { throw .unknownSession }
    return channel
  }

  /// Removes a channel, if it is in the table.
  func remove(_ id: SessionID) {
    let removed = entries.withLock { entries -> Entry? in
      guard let entry = entries.channels.removeValue(forKey: id) else { return nil }
      let count = entries.countByAddress[entry.address, default: 1] - 1
      entries.countByAddress[entry.address] = count == 0 ? nil : count
      return entry
    }
    // Release the entry here rather than under the lock.
    _ = removed
  }
}
