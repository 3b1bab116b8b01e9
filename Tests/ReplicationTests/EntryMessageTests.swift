@testable import Replication
import LogEngine
import SharedLog
import Testing
import TestSupport

/// The messages of the stream between nodes come from the network.
@Suite struct EntryMessageTests {
  private let messages: [EntryMessage] = [
    .configuration(3),
    .entry(SharedEntry(kind: .batch, position: LogPosition(sequence: 1, epoch: 2, chain: .max), body: [7, 8])),
    .entry(SharedEntry(kind: .handover, position: LogPosition(sequence: 2, epoch: 2, chain: 9), body: [])),
    .answer(.max, sequence: 7, configuration: -1), .behind,
  ]

  private var encoded: [UInt8] {
    var bytes: [UInt8] = []
    for message in messages { message.encode(into: &bytes) }
    return bytes
  }

  @Test func theFormOfAnEntry() {
    var bytes: [UInt8] = []
    messages[1].encode(into: &bytes)
    #expect(
      bytes == [28, 0, 0, 0, 1, 1] + [1, 0, 0, 0, 0, 0, 0, 0] + [2, 0, 0, 0, 0, 0, 0, 0]
        + Array(repeating: 255, count: 8) + [7, 8])
  }

  @Test(arguments: [1, 2, 3, 5, 7, 30, 1000])
  func messagesArriveInPieces(of count: Int) throws {
    var reader = EntryMessageReader()
    var read: [EntryMessage] = []
    var rest = encoded[...]
    while !rest.isEmpty {
      Array(rest.prefix(count)).withUnsafeBytes { reader.append($0) }
      rest = rest.dropFirst(count)
      while let message = try reader.next() { read.append(message) }
    }
    #expect(read == messages)
  }

  @Test(
    arguments: [
      [0, 0, 0, 0], [1, 0, 0, 0, 9], [1, 0, 0, 0, 2], [2, 0, 0, 0, 4, 0], [9, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
      [26, 0, 0, 0, 1, 77] + Array(repeating: 0, count: 24), [255, 255, 255, 255],
    ] as [[UInt8]])
  func malformedMessagesAreRefused(_ bytes: [UInt8]) {
    var reader = EntryMessageReader()
    bytes.withUnsafeBytes { reader.append($0) }
    #expect(throws: EntryMessageReader.Malformed()) { try reader.next() }
  }

  @Test func changedBytesNeverTrap() {
    let seed: UInt64 = 1
    var random = SplitMix(seed: seed)
    for _ in 0..<3000 {
      var bytes = encoded
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      var reader = EntryMessageReader()
      bytes.withUnsafeBytes { reader.append($0) }
      while let message = try? reader.next() {
        var again: [UInt8] = []
        message.encode(into: &again)
        #expect(!again.isEmpty, "seed \(seed)")
      }
    }
  }
}
