package import Basics
package import Callers
package import DatabaseService
import Glibc
import RulesEngine
package import Transport

extension RateLimiter {
  /// Counts a request of a caller: of its user or, without one, of its address. Administrators are not limited.
  /// - Throws: `RESOURCE_EXHAUSTED` if the caller has made too many.
  package func admit(_ caller: Caller, _ request: borrowing HTTPRequest) throws(Status) {
    switch caller {
    case .administrator: return
    case .user(let auth?) where auth.uid != nil: try take(.userRequests, of: auth)
    case .user:
      guard limits(.addressRequests) else { return }
      // The closure cannot borrow the request.
      var network = NetworkKey()
      request.fill(&network)
      try take(.addressRequests) { $0.combine(network) }
    }
  }
}

extension RequestQuota {
  /// Counts a request of any caller, except one over the admin socket, which only the operator of the server can open.
  /// - Throws: `RESOURCE_EXHAUSTED` if the project has received too many.
  package func admit(_ request: borrowing HTTPRequest) throws(Status) {
    guard !request.isFromAdminSocket, let refusal = refusal() else { return }
    var status = Status(.resourceExhausted, refusal.error.message)
    status.retryAfterSeconds = refusal.seconds
    throw status
  }
}

/// The network of a client in a form that needs no memory: an IPv4 address, the first 64 bits of an IPv6 address, or the
/// beginning of a text that is not an address.
struct NetworkKey: Hashable {
  private var high: UInt64 = 0
  private var low: UInt64 = 0

  /// Sets the key of a numeric address in binary form, of 4 or 16 bytes.
  mutating func set(address: UnsafeRawBufferPointer) {
    guard address.count == 16 else { return set(text: address) }
    let isIPv4 = address[..<10].allSatisfy { $0 == 0 } && address[10] == 0xFF && address[11] == 0xFF
    set(text: UnsafeRawBufferPointer(rebasing: isIPv4 ? address[12...] : address[..<8]))
  }

  private mutating func set(text: UnsafeRawBufferPointer) {
    (high, low) = (UInt64(text.count), 0)
    for (index, byte) in text.prefix(15).enumerated() {
      if index < 7 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
    }
  }

  /// Sets the key of an address as text, as a proxy forwards it.
  mutating func set(forwarded text: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 16) { buffer in
      let count = min(text.count, 45)
      guard count > 0, let start = text.baseAddress else { return set(text: text) }
      buffer.copyMemory(from: UnsafeRawBufferPointer(start: start, count: count))
      buffer[count] = 0
      guard let name = buffer.baseAddress else { return }
      let binary = UnsafeMutableRawBufferPointer(rebasing: buffer[48...])
      let string = name.assumingMemoryBound(to: CChar.self)
      if inet_pton(AF_INET, string, binary.baseAddress) == 1 {
        set(address: UnsafeRawBufferPointer(rebasing: binary[..<4]))
      } else if inet_pton(AF_INET6, string, binary.baseAddress) == 1 {
        set(address: UnsafeRawBufferPointer(binary))
      } else {
        set(text: text)
      }
    }
  }
}

extension HTTPRequest {
  /// Sets the key of the client's network. Cost: one system call, no allocation.
  borrowing func fill(_ key: inout NetworkKey) {
    if isFromProxy, let address = forwardedAddress {
      key.set(forwarded: address)
    } else {
      withPeerAddress { key.set(address: $0) }
    }
  }
}
