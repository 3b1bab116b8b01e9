import Transport

extension HTTPRequest {
  /// Whether a browser sends the request for a page that does not come from this machine, nor from the server's own
  /// numeric address. Such a page must not get the rights that an emulator gives to every developer's tool: any site
  /// that a developer visits could use them. A host name may be under control of the site, so it is not trusted even if
  /// it leads to this machine.
  ///
  /// Programs send no `Origin`. A page without an origin, such as a file or a sandboxed frame, is foreign.
  var isFromForeignPage: Bool {
    guard let origin = header("origin") else { return false }
    guard let host = Self.host(ofOrigin: origin) else { return true }
    if Self.isLoopback(host) { return false }
    guard Self.isNumeric(host), let own = header("host") else { return true }
    let ownHost = own.prefix(host.count)
    return !(ownHost.elementsEqual(host) && (own.count == host.count || own[host.count] == UInt8(ascii: ":")))
  }

  /// Returns the host of `http://HOST:PORT`, or `nil` if the origin has another form.
  private static func host(ofOrigin origin: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard let rest = origin.dropping("http://") ?? origin.dropping("https://"), !rest.isEmpty else { return nil }
    let end = rest[0] == UInt8(ascii: "[") ? rest.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : nil
    let count = end ?? rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.count
    return UnsafeRawBufferPointer(rebasing: rest[..<count])
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
}
