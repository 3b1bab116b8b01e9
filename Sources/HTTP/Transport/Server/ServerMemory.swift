import Basics

/// The memory that the connections of all loops of a server use together.
struct ServerMemory {
  /// Partly received requests: ``TransportConfiguration/bufferedBytesMax``.
  let requests: MemoryShare
  /// Responses that wait for their clients: ``TransportConfiguration/unsentBytesMax``.
  let responses: MemoryShare

  init(_ configuration: TransportConfiguration) {
    requests = MemoryShare(bytesMax: configuration.bufferedBytesMax)
    responses = MemoryShare(bytesMax: configuration.unsentBytesMax)
  }
}
