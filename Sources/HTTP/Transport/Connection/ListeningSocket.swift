// libuv's header declares the socket types for Swift.
import CUV
import Glibc

/// A listening socket. It is created before any loop runs, so that the caller of `start` gets the errors.
struct ListeningSocket {
  let descriptor: Int32
  let address: SocketAddress

  /// A Unix socket that listens.
  static func unix(_ descriptor: Int32) -> ListeningSocket {
    ListeningSocket(descriptor: descriptor, address: SocketAddress(host: "unix", port: 0))
  }

  /// Takes over the configured socket, or listens on the configured address.
  static func open(_ configuration: TransportConfiguration) throws(TransportError) -> ListeningSocket {
    let listening =
      if let descriptor = configuration.listeningSocket {
        try adopt(descriptor)
      } else {
        try open(host: configuration.host, port: configuration.port, backlog: configuration.backlog)
      }
    listening.setVanishedSeconds(configuration.vanishedSeconds)
    return listening
  }

  /// Listens on the configured further ports, in their order. A port that is not required may fail.
  ///
  /// - Throws: ``TransportError`` if a required port fails. Then none of the sockets is open.
  static func openFurther(
    _ configuration: TransportConfiguration
  ) throws(TransportError) -> [Result<ListeningSocket, TransportError>] {
    var sockets: [Result<ListeningSocket, TransportError>] = []
    for further in configuration.furtherPorts {
      do throws(TransportError) {
        let listening = try open(
          host: configuration.host, port: further.port, backlog: configuration.backlog)
        listening.setVanishedSeconds(configuration.vanishedSeconds)
        sockets.append(.success(listening))
      } catch {
        guard !further.isRequired else {
          for case .success(let listening) in sockets { close(listening.descriptor) }
          throw error
        }
        sockets.append(.failure(error))
      }
    }
    return sockets
  }

  /// Sets the time after which a client that acknowledges nothing is disconnected. Connections inherit this option.
  /// Without it, a client that lost its network counts as connected for 15 minutes.
  private func setVanishedSeconds(_ seconds: Int) {
    var milliseconds = UInt32(clamping: seconds * 1000)
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
  }

  /// Takes over a socket that another process opened and may still share. Closing it here turns no waiting client
  /// away, because the other process still accepts.
  private static func adopt(_ descriptor: Int32) throws(TransportError) -> ListeningSocket {
    func option(_ name: Int32) -> Int32? {
      var value: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
    guard option(SO_TYPE) == Int32(SOCK_STREAM.rawValue), option(SO_ACCEPTCONN) == 1,
      [AF_INET, AF_INET6].contains(option(SO_DOMAIN)), let address = SocketAddress.local(of: descriptor)
    else {
      throw .invalidConfiguration(reason: "descriptor \(descriptor) is not a listening TCP socket")
    }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    return ListeningSocket(descriptor: descriptor, address: address)
  }

  /// Listens on the first IPv4 address of `host`, or on its first address if it has no IPv4 address.
  static func open(
    host: String, port: Int, backlog: Int
  ) throws(TransportError) -> ListeningSocket {
    guard let service = UInt16(exactly: port) else {
      throw .cannotListen(host: host, port: port, reason: "a port is a number from 0 to 65535")
    }
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(service), &hints, &found)
    guard status == 0, let first = found else {
      throw .hostNotFound(host: host, reason: String(cString: gai_strerror(status)))
    }
    defer { freeaddrinfo(first) }
    let addresses = sequence(first: first) { $0.pointee.ai_next }
    let chosen = addresses.first { $0.pointee.ai_family == AF_INET } ?? first
    return try listen(on: chosen.pointee, host: host, port: port, backlog: backlog)
  }

  private static func listen(
    on info: addrinfo, host: String, port: Int, backlog: Int
  ) throws(TransportError) -> ListeningSocket {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(info.ai_family, type, info.ai_protocol)
    guard descriptor >= 0 else {
      throw .resourceExhausted(what: "a socket", reason: String(cString: strerror(errno)))
    }
    // Connections of a server that just stopped would otherwise hold the port for a minute.
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, info.ai_addr, info.ai_addrlen) == 0, Glibc.listen(descriptor, Int32(backlog)) == 0,
      let address = SocketAddress.local(of: descriptor)
    else {
      let code = errno
      close(descriptor)
      if code == EADDRINUSE { throw .addressInUse(host: host, port: port) }
      throw .cannotListen(host: host, port: port, reason: String(cString: strerror(code)))
    }
    return ListeningSocket(descriptor: descriptor, address: address)
  }
}

extension HTTPServer {
  /// Returns the numeric address of a socket that another process opened, or `nil` if it has none.
  package static func host(ofSocket descriptor: Int32) -> String? { SocketAddress.local(of: descriptor)?.host }

  /// Listens on an address for a moment, to check whether a server could.
  /// - Throws: ``TransportError`` if the server could not listen there.
  package static func checkAddress(host: String, port: Int) throws(TransportError) {
    close(try ListeningSocket.open(host: host, port: port, backlog: 1).descriptor)
  }
}
