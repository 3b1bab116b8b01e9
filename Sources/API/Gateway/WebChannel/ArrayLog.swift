/// What the server says on a channel: numbered arrays, each kept until the client says that it has it
/// (listen-and-webchannel.md, section 3.5).
///
/// They lie one after the other as they go over the wire, `[1,[…]],[2,[…]],`, so that a chunk is a copy of a range.
struct ArrayLog {
  /// Memory that an empty log may keep: most channels say little at a time.
  private static let bytesKept = 4 << 10

  /// The number of the first array kept; the one before is the last that the client has.
  private(set) var first = 1
  private var bytes: [UInt8] = []
  /// Where the first array kept begins.
  private var start = 0
  /// Where each array ends, behind its comma; those before `head` were dropped.
  private var ends: [Int] = []
  private var head = 0

  /// The number of the last array.
  var last: Int { first + ends.count - head - 1 }
  /// Whether the client has everything.
  var isEmpty: Bool { ends.count == head }
  /// Bytes kept.
  var keptBytes: Int { bytes.count - start }

  /// Bytes of the arrays that follow a number, which is not below ``first`` by more than one.
  func bytes(above number: Int) -> Int { bytes.count - end(of: number) }

  /// Adds an array with one message, given as JSON; what is not ASCII is escaped, so that lengths in bytes and in
  /// UTF-16 agree and no character lies across two reads.
  mutating func append(_ message: UnsafeRawBufferPointer) {
    let number = last + 1
    bytes.append(UInt8(ascii: "["))
    bytes.append(decimal: number)
    bytes.append(UInt8(ascii: ","))
    bytes.append(UInt8(ascii: "["))
    bytes.append(escapingJSON: message)
    bytes.append(UInt8(ascii: "]"))
    bytes.append(UInt8(ascii: "]"))
    bytes.append(UInt8(ascii: ","))
    ends.append(bytes.count)
  }

  /// Drops the arrays up to a number. Harmless for one that was dropped, or that is not there yet.
  mutating func drop(through number: Int) {
    let count = min(number, last) - first + 1
    guard count > 0 else { return }
    start = ends[head + count - 1]
    head += count
    first += count
    if isEmpty {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.bytesKept)
      ends.removeAll(keepingCapacity: ends.capacity <= Self.bytesKept / 8)
      (start, head) = (0, 0)
    } else if start > bytes.count / 2 {
      // As many bytes are moved as were dropped, at most.
      bytes.removeFirst(start)
      ends.removeFirst(head)
      for index in ends.indices { ends[index] -= start }
      (start, head) = (0, 0)
    }
  }

  /// Appends a chunk with the arrays that follow a number, up to about `bytesMax` bytes and at least one.
  /// - Returns: the number of the last of them, or `nil` where there is none.
  func appendChunk(above number: Int, bytesMax: Int, to out: inout [UInt8]) -> Int? {
    guard number < last else { return nil }
    let begin = end(of: number)
    var index = head + number - first + 1
    while index + 1 < ends.count, ends[index + 1] - begin <= bytesMax { index += 1 }
    // One comma less, two brackets more.
    out.append(decimal: ends[index] - begin + 1)
    out.append(UInt8(ascii: "\n"))
    out.append(UInt8(ascii: "["))
    out.append(contentsOf: bytes[begin..<(ends[index] - 1)])
    out.append(UInt8(ascii: "]"))
    return first + index - head
  }

  private func end(of number: Int) -> Int {
    precondition(number >= first - 1 && number <= last, "an array that is not kept")
    return number < first ? start : ends[head + number - first]
  }
}

extension [UInt8] {
  /// Appends a number in decimal.
  mutating func append(decimal number: Int) {
    var rest = number.magnitude
    if number < 0 { append(UInt8(ascii: "-")) }
    let start = count
    repeat {
      append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    self[start...].reverse()
  }

  /// Appends JSON text with every character beyond ASCII written `\uXXXX`; bytes that are no UTF-8 become U+FFFD.
  /// Text that is ASCII already is copied.
  mutating func append(escapingJSON text: UnsafeRawBufferPointer) {
    var rest = text[...]
    while let stop = rest.firstIndex(where: { $0 >= 0x80 }) {
      append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<stop]).assumingMemoryBound(to: UInt8.self))
      let end = rest[stop...].firstIndex { $0 < 0x80 } ?? rest.endIndex
      for unit in String(decoding: rest[stop..<end], as: UTF8.self).utf16 {
        append(UInt8(ascii: "\\"))
        append(UInt8(ascii: "u"))
        for shift in [12, 8, 4, 0] as [UInt16] {
          let digit = UInt8(truncatingIfNeeded: unit >> shift & 15)
          append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
      }
      rest = rest[end...]
    }
    append(contentsOf: UnsafeRawBufferPointer(rebasing: rest).assumingMemoryBound(to: UInt8.self))
  }
}
