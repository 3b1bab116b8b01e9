package import Transport

extension HTTPRequest {
  /// Whether a browser may have sent the request for a page that does not come from this machine, nor from the server's
  /// own numeric address. Such a page must not get the rights that an emulator gives to every developer's tool: any
  /// site that a developer visits could use them.
  ///
  /// A request with an `Origin` is from the page of that origin. A host name in it may be under control of the site, so
  /// it is not trusted even if it leads to this machine. A page without an origin, such as a file or a sandboxed frame,
  /// is foreign.
  ///
  /// Programs send no `Origin`, but neither do browsers for a GET of a page on its own host. A site can let its host
  /// name lead to this machine (DNS rebinding) and so become the server's own page. The `Host` of such a request is the
  /// site's name, so without an `Origin` the `Host` must be a name that no site can have, or `hostName`, the name on
  /// which the operator lets the server listen.
  ///
  /// Browsers send no `Origin` either if a page loads a picture, a script or a frame from another site, but they say so
  /// in `Sec-Fetch-Site`. A link to the server that a person follows is not a request of the page.
  package func isFromForeignPage(hostName: String?) -> Bool {
    let own = header("host").map(Self.name)
    guard let origin = header("origin") else {
      if let site = header("sec-fetch-site"), !isNavigation {
        // Pages of this machine under another port are of the same site as the server, like all names of one domain.
        if site.elementsEqual("cross-site".utf8) { return true }
        if site.elementsEqual("same-site".utf8), !(own.map { Self.isLoopback($0) || Self.isNumeric($0) } ?? false) {
          return true
        }
      }
      guard let own else { return false }
      return !Self.isOutOfReach(own) && !(hostName.map { Self.matches(own, $0) } ?? false)
    }
    guard let host = Self.host(ofOrigin: origin) else { return true }
    if Self.isLoopback(host) { return false }
    guard Self.isNumeric(host), let own else { return true }
    return !own.elementsEqual(host)
  }

  /// Whether the request names the server by a name that no site of the Internet can have, or by `hostName`, and a
  /// browser sent it for a page of the same origin, if for any. The fields that proxies add are not read, because a
  /// script can set them.
  ///
  /// A proxy may send the name of this machine as `Host`. Therefore the origin may also be `https://PROXY_NAME`, without
  /// a port.
  package func isFromOwnPage(hostName: String, proxyName: String?) -> Bool {
    guard let named = header("host") ?? header(":authority"), !named.isEmpty else { return false }
    let own = Self.name(named)
    guard Self.matches(own, hostName) || Self.isOutOfReach(own) else { return false }
    guard let origin = header("origin") else { return true }
    if let proxyName, let rest = origin.dropping("https://"), Self.matches(rest, proxyName) { return true }
    guard let rest = origin.dropping("http://") ?? origin.dropping("https://") else { return false }
    return rest.elementsEqual(named)
  }

  /// Whether a person opens the URL in a window of the browser, by a link for example.
  private var isNavigation: Bool {
    guard method == .get || method == .head else { return false }
    return header("sec-fetch-dest")?.elementsEqual("document".utf8) ?? false
  }

  /// Returns the host of `http://HOST:PORT`, or `nil` if the origin has another form.
  private static func host(ofOrigin origin: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard let rest = origin.dropping("http://") ?? origin.dropping("https://"), !rest.isEmpty else { return nil }
    return name(rest)
  }

  /// Returns the host of `HOST:PORT`.
  private static func name(_ host: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let end = host.first == UInt8(ascii: "[") ? host.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : nil
    let count = end ?? host.firstIndex(of: UInt8(ascii: ":")) ?? host.count
    return UnsafeRawBufferPointer(rebasing: host[..<count])
  }

  private static func isLoopback(_ host: UnsafeRawBufferPointer) -> Bool {
    if host.elementsEqual("localhost".utf8) || host.elementsEqual("[::1]".utf8) { return true }
    // Browsers resolve the names below `localhost` to this machine themselves.
    if host.suffix(10).elementsEqual(".localhost".utf8) { return true }
    return isNumeric(host) && host.dropping("127.") != nil
  }

  /// Whether a host is an IP address.
  private static func isNumeric(_ host: UnsafeRawBufferPointer) -> Bool {
    if host.first == UInt8(ascii: "[") { return true }
    return host.allSatisfy { $0 == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// The top-level domains that are reserved for private use. No site of the Internet can have a name below them.
  private static let privateDomains: [StaticString] = [".localhost", ".internal", ".local", ".test"]

  /// Whether no site of the Internet can have a host: it is an address, a name without dots such as that of a
  /// container, or a name below a domain for private use such as `host.docker.internal`.
  private static func isOutOfReach(_ host: UnsafeRawBufferPointer) -> Bool {
    // A name may end with a dot.
    if isNumeric(host) || !host.dropLast().contains(UInt8(ascii: ".")) { return true }
    return privateDomains.contains { domain in
      domain.withUTF8Buffer { domain in
        host.count > domain.count && zip(host.suffix(domain.count), domain).allSatisfy { lowercased($0) == $1 }
      }
    }
  }

  private static func matches(_ host: UnsafeRawBufferPointer, _ name: String) -> Bool {
    host.count == name.utf8.count && zip(host, name.utf8).allSatisfy { lowercased($0) == lowercased($1) }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
