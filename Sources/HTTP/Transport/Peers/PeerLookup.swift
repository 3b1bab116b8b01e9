import CUV
import Glibc

/// The search for the address of a host: at once if it is numeric, otherwise on a thread of libuv.
final class PeerLookup {
  struct Address {
    var storage: sockaddr_storage
    var length: socklen_t
  }

  private let request: UnsafeMutablePointer<uv_getaddrinfo_t>
  private let receive: (Address?) -> Void

  private init(_ receive: @escaping (Address?) -> Void) {
    request = .allocate(capacity: 1)
    self.receive = receive
  }

  deinit {
    request.deallocate()
  }

  /// Calls `receive` once on the loop, now or later, with the address of a node, or with `nil` if it has none.
  static func run(_ node: NodeAddress, on loop: EventLoop, _ receive: @escaping (Address?) -> Void) {
    guard let service = UInt16(exactly: node.port) else { return receive(nil) }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST
    var found: UnsafeMutablePointer<addrinfo>?
    if getaddrinfo(node.host, String(service), &hints, &found) == 0, let first = found {
      defer { freeaddrinfo(first) }
      return receive(address(first))
    }
    hints.ai_flags = AI_NUMERICSERV
    let lookup = PeerLookup(receive)
    lookup.request.pointee.data = Unmanaged.passRetained(lookup).toOpaque()
    let status = uv_getaddrinfo(
      loop.raw, lookup.request,
      { request, status, found in
        defer { uv_freeaddrinfo(found) }
        guard let data = request?.pointee.data else { return }
        let lookup = Unmanaged<PeerLookup>.fromOpaque(data).takeRetainedValue()
        lookup.receive(status == 0 ? found.flatMap { PeerLookup.address($0) } : nil)
      }, node.host, String(service), &hints)
    if status != 0 {
      Unmanaged.passUnretained(lookup).release()
      receive(nil)
    }
  }

  /// Returns the first IPv4 address, or the first one of any kind, as a server listens on it.
  private static func address(_ first: UnsafeMutablePointer<addrinfo>) -> Address? {
    let all = sequence(first: first) { $0.pointee.ai_next }
    let chosen = (all.first { $0.pointee.ai_family == AF_INET } ?? first).pointee
    guard let source = chosen.ai_addr, Int(chosen.ai_addrlen) <= MemoryLayout<sockaddr_storage>.size else { return nil }
    var storage = sockaddr_storage()
    memcpy(&storage, source, Int(chosen.ai_addrlen))
    return Address(storage: storage, length: chosen.ai_addrlen)
  }
}
