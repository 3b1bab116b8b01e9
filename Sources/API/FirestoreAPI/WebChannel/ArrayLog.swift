/// The messages of the server on a channel: numbered arrays, each kept until the client acknowledges it
/// (listen-and-webchannel.md, section 3.5).
///
/// They are stored one after the other in their wire format, `[1,[…]],[2,[…]],`, so that a chunk is a copy of a
/// range.
struct ArrayLog {
  /// The largest buffer that an empty log keeps, in bytes. Most channels send little at a time.
  private static let bytesKept = 4 << 10

  /// The number of the first array kept. The client has acknowledged all before it.
  private(set) var first = 1
  private var bytes: [UInt8] = []
  /// The position of the first array kept.
  private var start = 0
  /// The end of each array, after its comma. Those before index `head` were dropped.
  private var ends: [Int] = []
  private var head = 0

  /// The number of the last array.
  var last: Int { first + ends.count - head - 1 }
  /// Whether the client has acknowledged every array.
  var isEmpty: Bool { ends.count == head }
  /// The number of bytes kept.
  var keptBytes: Int { bytes.count - start }

  /// Returns the number of bytes in the arrays after a number, which must be at least ``first`` minus one.
  func bytes(above number: Int) -> Int { bytes.count - end(of: number) }

  /// Appends an array with one message in JSON. Non-ASCII characters are escaped, so that the lengths in bytes and
  /// in UTF-16 are equal and no character is split between two reads.
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

  /// Drops the arrays up to a number. Has no effect for arrays that were dropped already or do not exist yet.
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
      // At most as many bytes are moved as were dropped.
      bytes.removeFirst(start)
      ends.removeFirst(head)
      for index in ends.indices { ends[index] -= start }
      (start, head) = (0, 0)
    }
  }

  /// Appends a chunk with the arrays after a number, at least one and up to about `bytesMax` bytes. Returns the
  /// number of the last array in it, or `nil` if no array follows the number.
  func appendChunk(above number: Int, bytesMax: Int, to out: inout [UInt8]) -> Int? {
    guard number < last else { return nil }
    let begin = end(of: number)
    var index = head + number - first + 1
    while index + 1 < ends.count, ends[index + 1] - begin <= bytesMax { index += 1 }
    // One comma fewer, two brackets more.
    out.append(decimal: ends[index] - begin + 1)
    out.append(UInt8(ascii: "\n"))
    out.append(UInt8(ascii: "["))
    out.append(contentsOf: bytes[begin..<(ends[index] - 1)])
    out.append(UInt8(ascii: "]"))
    return first + index - head
  }

  private func end(of number: Int) -> Int {
    precondition(number >= first - 1 && number <= last, "the array is not in the log")
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

  /// Appends JSON text in which every non-ASCII character is written as `\uXXXX`. Bytes that are not UTF-8 become
  /// U+FFFD. ASCII text is copied.
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
