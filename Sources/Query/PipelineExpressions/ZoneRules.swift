import Glibc
import Synchronization

/// The offsets of a time zone from UTC. Immutable.
///
/// The rules are those of the time zone database of the operating system (the package tzdata), so an update of that
/// package changes them without a new release of the server. Its files are read when a zone is first used.
final class ZoneRules: Sendable {
  /// The folder of the time zone database.
  private static let folder = "/usr/share/zoneinfo/"
  static let utc = ZoneRules(offset: 0)
  private static let cache = Mutex<[String: ZoneRules]>([:])

  /// The moments at which the offset changes, in seconds since 1970, ascending.
  private let transitions: [Int64]
  /// The offset after each transition, in seconds east of UTC.
  private let offsets: [Int32]
  /// The offset before the first transition.
  private let initial: Int32
  /// The rule for moments after the last transition.
  private let future: ZoneFooter?

  init(offset: Int32) {
    transitions = []
    offsets = []
    initial = offset
    future = nil
  }

  private init(transitions: [Int64], offsets: [Int32], initial: Int32, future: ZoneFooter?) {
    self.transitions = transitions
    self.offsets = offsets
    self.initial = initial
    self.future = future
  }

  /// Returns the rules of a zone by its name in the time zone database, or by an offset such as `GMT+06:32:43`. Returns
  /// `nil` if it is unknown. Cost: reads a file unless the zone was used recently.
  static func named(_ name: String) -> ZoneRules? {
    if name == "UTC" || name == "GMT" || name == "Z" { return utc }
    if let known = cache.withLock({ $0[name] }) { return known }
    guard let rules = fixedOffset(name).map({ ZoneRules(offset: $0) }) ?? stored(name) else { return nil }
    cache.withLock { zones in
      if zones.count >= ExpressionLimits.zonesKeptMax { zones.removeAll(keepingCapacity: true) }
      zones[name] = rules
    }
    return rules
  }

  /// The offset from UTC at a moment, in seconds. Cost: a binary search.
  func offset(at seconds: Int64) -> Int {
    guard let first = transitions.first, let last = transitions.last, seconds >= first else {
      return transitions.isEmpty ? future?.offset(at: seconds) ?? Int(initial) : Int(initial)
    }
    if seconds >= last, let future { return future.offset(at: seconds) }
    var low = 0
    var high = transitions.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if transitions[middle] <= seconds { low = middle } else { high = middle }
    }
    return Int(offsets[low])
  }

  /// The moment at which clocks show a local time, both in seconds since 1970: the first one if clocks show it twice.
  /// If clocks skip it, the moment that the offset before the gap gives.
  func time(ofLocal local: Int64) -> Int64 {
    let before = Int64(offset(at: local - 86_400))
    let after = Int64(offset(at: local + 86_400))
    if Int64(offset(at: local - before)) == before { return local - before }
    if Int64(offset(at: local - after)) == after { return local - after }
    return local - before
  }

  // MARK: Offsets as names

  /// Parses `GMT`, `UTC` or nothing, then `+` or `-`, then `h`, `hh`, `hh:mm` or `hh:mm:ss`.
  private static func fixedOffset(_ name: String) -> Int32? {
    var rest = Array(name.utf8)[...]
    if rest.starts(with: "GMT".utf8) || rest.starts(with: "UTC".utf8) { rest = rest.dropFirst(3) }
    guard let sign = rest.popFirst(), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
    let parts = rest.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard (1...3).contains(parts.count) else { return nil }
    var seconds: Int32 = 0
    for (index, part) in parts.enumerated() {
      guard (index == 0 ? 1...2 : 2...2).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Int32(String(decoding: part, as: UTF8.self)), number < (index == 0 ? 19 : 60)
      else { return nil }
      seconds += number * [3600, 60, 1][index]
    }
    return sign == UInt8(ascii: "-") ? -seconds : seconds
  }

  // MARK: The time zone database

  private static func stored(_ name: String) -> ZoneRules? {
    let isName = name.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "_+-/".utf8.contains(byte)
    }
    // The folders `posix` and `right` contain the same zones again, `right` with leap seconds.
    guard isName, (1...64).contains(name.utf8.count), let first = name.utf8.first, (0x41...0x5A).contains(first)
    else { return nil }
    return read(folder + name).flatMap(parse)
  }

  private static func read(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: ExpressionLimits.zoneBytesMax + 1)
    var count = 0
    while count < bytes.count {
      let read = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress! + count, $0.count - count) }
      guard read >= 0 else { return nil }
      if read == 0 { break }
      count += read
    }
    return count < bytes.count ? Array(bytes[..<count]) : nil
  }

  /// The counts in the header of a TZif file (RFC 8536).
  private struct Header {
    static let size = 44
    let version: UInt8
    let universal, standard, leaps, times, types, letters: Int

    init?(_ bytes: ArraySlice<UInt8>) {
      guard bytes.count >= Self.size, bytes.starts(with: "TZif".utf8) else { return nil }
      let start = bytes.startIndex
      version = bytes[start + 4]
      let counts = (0..<6).map { ZoneRules.number(bytes[(start + 20 + 4 * $0)...], width: 4) }
      guard counts.allSatisfy({ (0...1_000_000).contains($0) }) else { return nil }
      universal = Int(counts[0])
      standard = Int(counts[1])
      leaps = Int(counts[2])
      times = Int(counts[3])
      types = Int(counts[4])
      letters = Int(counts[5])
    }

    /// The bytes after the header, with times of this width.
    func bodySize(_ width: Int) -> Int {
      times * width + times + types * 6 + letters + leaps * (width + 4) + standard + universal
    }
  }

  private static func number(_ bytes: ArraySlice<UInt8>, width: Int) -> Int64 {
    var value: UInt64 = 0
    for byte in bytes.prefix(width) { value = value << 8 | UInt64(byte) }
    return width == 8 ? Int64(bitPattern: value) : Int64(Int32(truncatingIfNeeded: value))
  }

  /// Parses a TZif file of version 2 or later. Returns `nil` if it is malformed.
  static func parse(_ bytes: [UInt8]) -> ZoneRules? {
    guard let old = Header(bytes[...]), old.version >= UInt8(ascii: "2") else { return nil }
    let second = Header.size + old.bodySize(4)
    guard second <= bytes.count, let header = Header(bytes[second...]), header.types > 0 else { return nil }
    let times = second + Header.size
    let indexes = times + header.times * 8
    let types = indexes + header.times
    let end = second + Header.size + header.bodySize(8)
    guard end <= bytes.count else { return nil }
    var transitions: [Int64] = []
    var offsets: [Int32] = []
    func offset(_ type: Int) -> Int32 { Int32(truncatingIfNeeded: number(bytes[(types + 6 * type)...], width: 4)) }
    for index in 0..<header.times {
      let type = Int(bytes[indexes + index])
      let time = number(bytes[(times + 8 * index)...], width: 8)
      guard type < header.types, transitions.last.map({ $0 < time }) ?? true else { return nil }
      transitions.append(time)
      offsets.append(offset(type))
    }
    var footer: ZoneFooter?
    if end < bytes.count, bytes[end] == UInt8(ascii: "\n") {
      footer = ZoneFooter(bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "\n") })
    }
    return ZoneRules(transitions: transitions, offsets: offsets, initial: offset(0), future: footer)
  }
}
