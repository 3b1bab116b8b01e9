import DocumentModel
import TestSupport
import WireFormat

/// A client of the gRPC API, with transactions of unary calls and a Write stream.
final class GRPCAppendClient: AppendClient {
  private let grpc: GRPCConnection
  private var writeStream: UInt32?
  private var streamToken = ""
  private static let headers = [("authorization", "Bearer owner")]

  init(port: UInt16) throws { grpc = try GRPCConnection(port: port) }

  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    switch Int.random(in: 0..<6, using: &random) {
    case 0..<3: try transact(&recorder, &random)
    case 3: try readOnly(&recorder, &random)
    default: try appendByStream(&recorder, &random)
    }
  }

  // MARK: - Transactions

  private func transact(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let keys = recorder.workload.keys(2, &random)
    // The first read begins the transaction, or a call of its own does.
    var transaction: [UInt8] = []
    if random.chance(oneIn: 2) { transaction = try begin { ProtobufWriter.message(3, to: &$0) { _ in } } }
    let isNew = transaction.isEmpty
    var first = try batchGet([keys[0]]) { out in
      if isNew {
        ProtobufWriter.message(5, to: &out) { ProtobufWriter.message(3, to: &$0) { _ in } }
      } else {
        ProtobufWriter.bytes(4, transaction, to: &out)
      }
    }
    if isNew { transaction = first.transaction }
    let second = try batchGet([keys[1]]) { ProtobufWriter.bytes(4, transaction, to: &$0) }
    if first.time != second.time { recorder.problems.append("a transaction read at \(first.time) and \(second.time)") }
    first.reads.merge(second.reads) { $1 }
    let element = recorder.workload.newElement()
    var writes = [Self.replace(keys[0], (first.reads[keys[0]]?.list ?? []) + [element])]
    var appends = [(key: keys[0], element: element)]
    if random.chance(oneIn: 3) {
      let other = recorder.workload.keys(3, &random).first { !keys.contains($0) } ?? AppendWorkload.lastKey + "2"
      appends.append((other, recorder.workload.newElement()))
      writes.append(Self.union(other, appends[1].element))
    }
    try recorder.record(first.reads, readAt: first.time, appends: appends, began: began) {
      let reply = try grpc.call(
        "Commit",
        Message { out in
          ProtobufWriter.string(1, AppendWorkload.database, to: &out)
          for write in writes { ProtobufWriter.bytes(2, write, to: &out) }
          ProtobufWriter.bytes(3, transaction, to: &out)
        }.bytes, headers: Self.headers)
      return switch reply.status {
      case 0: .committed(reply.messages.first.flatMap { Self.time(2, of: $0) })
      case 5, 6, 9, 10: .aborted
      default: .unexpected("Commit: \(reply.status ?? -1) \(reply.statusMessage)")
      }
    }
  }

  private func readOnly(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let transaction = try begin { ProtobufWriter.message(2, to: &$0) { _ in } }
    var reads: [String: ListState] = [:]
    var times: Set<Timestamp> = []
    for key in recorder.workload.keys(3, &random) {
      let found = try batchGet([key]) { ProtobufWriter.bytes(4, transaction, to: &$0) }
      reads.merge(found.reads) { $1 }
      times.insert(found.time)
    }
    if times.count > 1 { recorder.problems.append("a read-only transaction read at \(times)") }
    recorder.record(reads, began: began, at: times.first)
  }

  /// Appends with several batches under way.
  private func appendByStream(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let stream = try openedStream()
    let batches = (0..<Int.random(in: 1...3, using: &random)).map { _ in recorder.workload.appends(&random) }
    let began = recorder.workload.now
    for batch in batches {
      grpc.send(
        GRPCConnection.framed(
          Message { out in
            for (key, element) in batch { ProtobufWriter.bytes(3, Self.union(key, element), to: &out) }
            ProtobufWriter.string(4, streamToken, to: &out)
          }.bytes), on: stream)
    }
    var failure: (any Error)?
    for batch in batches {
      do {
        try recorder.record(appends: batch, began: began) {
          if let failure { throw failure }
          guard let message = try grpc.next(on: stream) else {
            throw LoopbackError("Write ended: \(try grpc.end(of: stream).statusMessage)")
          }
          streamToken = Message.texts(2, of: message).last ?? ""
          return .committed(Self.time(4, of: message))
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
  }

  private func openedStream() throws -> UInt32 {
    if let writeStream { return writeStream }
    let stream = grpc.open("Write", headers: Self.headers)
    grpc.send(
      GRPCConnection.framed(Message { ProtobufWriter.string(1, AppendWorkload.database, to: &$0) }.bytes), on: stream)
    guard let message = try grpc.next(on: stream) else { throw LoopbackError("no Write stream") }
    streamToken = Message.texts(2, of: message).last ?? ""
    writeStream = stream
    return stream
  }

  // MARK: - Calls

  private func begin(_ options: (inout [UInt8]) -> Void) throws -> [UInt8] {
    let reply = try grpc.call(
      "BeginTransaction",
      Message { out in
        ProtobufWriter.string(1, AppendWorkload.database, to: &out)
        ProtobufWriter.message(2, to: &out, options)
      }.bytes, headers: Self.headers)
    guard reply.status == 0, let message = reply.messages.first, let id = Message.fields(1, of: message).first else {
      throw LoopbackError("BeginTransaction: \(reply.statusMessage)")
    }
    return id
  }

  private func batchGet(
    _ keys: [String], _ selector: (inout [UInt8]) -> Void
  ) throws -> (reads: [String: ListState], time: Timestamp, transaction: [UInt8]) {
    let reply = try grpc.call(
      "BatchGetDocuments",
      Message { out in
        ProtobufWriter.string(1, AppendWorkload.database, to: &out)
        for key in keys { ProtobufWriter.string(2, AppendWorkload.name(key), to: &out) }
        selector(&out)
      }.bytes, headers: Self.headers)
    var reads: [String: ListState] = [:]
    var time: Timestamp?
    var transaction: [UInt8] = []
    for message in reply.messages {
      for document in Message.fields(1, of: message) {
        let (key, state) = Self.state(of: document)
        reads[key] = state
      }
      for name in Message.texts(2, of: message) { reads[AppendWorkload.key(ofName: name)] = .missing }
      transaction = Message.fields(3, of: message).last ?? transaction
      time = Self.time(4, of: message) ?? time
    }
    guard reply.status == 0, let time, reads.count == keys.count else {
      throw LoopbackError("BatchGetDocuments: \(reply.statusMessage)")
    }
    return (reads, time, transaction)
  }

  // MARK: - Protobuf

  /// The time in a field of a message, or `nil`.
  static func time(_ number: Int, of message: [UInt8]) -> Timestamp? {
    guard let bytes = Message.fields(number, of: message).last else { return nil }
    let nanos = Int32(truncatingIfNeeded: Message.number(2, of: bytes) ?? 0)
    return try? Timestamp(seconds: Message.number(1, of: bytes) ?? 0, nanos: nanos)
  }

  /// The key and the list of a document.
  static func state(of document: [UInt8]) -> (key: String, state: ListState) {
    var list: [Int] = []
    var count = 0
    for entry in Message.fields(2, of: document) {
      for value in Message.fields(2, of: entry) {
        if Message.texts(1, of: entry) == ["n"] { count = Message.number(2, of: value).map(Int.init) ?? 0 }
        for array in Message.fields(9, of: value) {
          list += Message.fields(1, of: array).compactMap { Message.number(2, of: $0).map(Int.init) }
        }
      }
    }
    let name = Message.texts(1, of: document).last ?? ""
    return (AppendWorkload.key(ofName: name), ListState(list: list, count: count, updated: time(4, of: document)))
  }

  private static func replace(_ key: String, _ list: [Int]) -> [UInt8] {
    Message { out in
      ProtobufWriter.message(1, to: &out) { document in
        ProtobufWriter.string(1, AppendWorkload.name(key), to: &document)
        ProtobufWriter.message(2, to: &document) { entry in
          ProtobufWriter.string(1, "l", to: &entry)
          ProtobufWriter.message(2, to: &entry) { value in array(9, list, to: &value) }
        }
        ProtobufWriter.message(2, to: &document) { entry in
          ProtobufWriter.string(1, "n", to: &entry)
          ProtobufWriter.message(2, to: &entry) { ProtobufWriter.int64(2, Int64(list.count), to: &$0) }
        }
      }
    }.bytes
  }

  private static func union(_ key: String, _ element: Int) -> [UInt8] {
    Message { out in
      ProtobufWriter.message(1, to: &out) { ProtobufWriter.string(1, AppendWorkload.name(key), to: &$0) }
      ProtobufWriter.message(3, to: &out) { _ in }
      ProtobufWriter.message(7, to: &out) { transform in
        ProtobufWriter.string(1, "l", to: &transform)
        array(6, [element], to: &transform)
      }
      ProtobufWriter.message(7, to: &out) { transform in
        ProtobufWriter.string(1, "n", to: &transform)
        ProtobufWriter.message(3, to: &transform) { ProtobufWriter.int64(2, 1, to: &$0) }
      }
    }.bytes
  }

  private static func array(_ number: Int, _ list: [Int], to out: inout [UInt8]) {
    ProtobufWriter.message(number, to: &out) { array in
      for element in list {
        ProtobufWriter.message(1, to: &array) { ProtobufWriter.int64(2, Int64(element), to: &$0) }
      }
    }
  }
}
