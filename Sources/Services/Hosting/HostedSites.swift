import Synchronization

/// The sites of a server, by the hosts of their requests. They can be replaced while the server runs.
package final class HostedSites: Sendable {
  /// The sites at one moment.
  package struct Snapshot: Sendable {
    /// The number of replacements so far.
    package let generation: Int
    package let sites: [Site]
    /// The names of the hosts in lower case, and the numbers of their sites.
    private let hosts: [(name: [UInt8], number: Int)]
    /// The number of the site for all other hosts.
    private let standard: Int?

    fileprivate init(generation: Int, _ sites: [(host: String?, site: Site)]) {
      self.generation = generation
      self.sites = sites.map(\.site)
      hosts = sites.enumerated().compactMap { number, entry in
        entry.host.map { (Array($0.lowercased().utf8), number) }
      }
      standard = sites.firstIndex { $0.host == nil }
    }

    /// Returns the number of the site for the value of a `Host` field, or `nil` if the host has none. A port and a dot
    /// at the end of the name are ignored.
    package func number(ofHost host: UnsafeRawBufferPointer?) -> Int? {
      guard !hosts.isEmpty, let host else { return standard }
      let isBracketed = host.first == UInt8(ascii: "[")
      let end =
        isBracketed ? host.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : host.firstIndex(of: UInt8(ascii: ":"))
      var count = end ?? host.count
      if count > 0, host[count - 1] == UInt8(ascii: ".") { count -= 1 }
      for (name, number) in hosts where name.count == count {
        if zip(name, host).allSatisfy({ $0 == ($1 &- 0x41 < 26 ? $1 | 0x20 : $1) }) { return number }
      }
      return standard
    }
  }

  private let state = Mutex(Snapshot(generation: 0, []))

  /// Creates a server without sites.
  package init() {}

  /// The sites now.
  package var current: Snapshot { state.withLock { $0 } }

  /// Whether the server has no site.
  package var isEmpty: Bool { state.withLock { $0.sites.isEmpty } }

  /// Replaces all sites. `host` is `nil` for the site of all other hosts.
  package func replace(with sites: [(host: String?, site: Site)]) {
    state.withLock { $0 = Snapshot(generation: $0.generation + 1, sites) }
  }
}
