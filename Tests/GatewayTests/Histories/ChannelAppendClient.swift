import DocumentModel
import TestSupport

/// The messages of a channel, one after the other, as the web SDK reads them.
///
/// It throws an error if the server ends, so that a test can kill the server. It sends no credentials, because it is a
/// page of another origin, and an emulator without rules needs none.
final class ChannelMessages {
  private let client: ChannelClient
  private var waiting: [(number: Int, payload: JSONNode)] = []
  private var sent: Int
  private(set) var last = 0

  init(port: UInt16, _ method: String, _ first: String) throws {
    client = ChannelClient(port, method)
    sent = 1
    let reply = try client.open(ChannelClient.form([first], from: 0))
    guard reply.status == 200 else { throw LoopbackError("no channel: \(reply.status) \(reply.text)") }
    try client.listen("AID=0&CI=0")
  }

  func send(_ messages: [String]) throws {
    _ = try client.send(ChannelClient.form(messages, from: sent), acknowledging: last)
    sent += messages.count
  }

  /// The next message. Skips keep-alives, and opens another back channel if a response ends.
  func next() throws -> JSONNode {
    while true {
      while waiting.isEmpty {
        guard let text = try client.back?.next() else {
          try client.listen("AID=\(last)&CI=0")
          guard client.back?.status == 200 else { throw LoopbackError("the channel ended") }
          continue
        }
        for array in try JSONNode(parsing: Array(text.utf8)).elements {
          guard array.elements.count == 2, let number = array.elements[0].integerValue else {
            throw LoopbackError("unexpected message \(text)")
          }
          waiting.append((number, array.elements[1]))
        }
      }
      let (number, payload) = waiting.removeFirst()
      guard number == last + 1 else { throw LoopbackError("message \(number) after \(last)") }
      last = number
      if let message = payload.elements.first, message.stringValue == nil { return message }
    }
  }
}

/// A client with the Write stream of the web SDK. It reads only in its listeners.
final class ChannelAppendClient: AppendClient {
  private let channel: ChannelMessages
  private var token: String

  init(port: UInt16) throws {
    channel = try ChannelMessages(port: port, "Write", #"{"database":"\#(AppendWorkload.database)"}"#)
    token = try channel.next()["streamToken"]?.stringValue ?? ""
  }

  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let batches = (0..<Int.random(in: 1...4, using: &random)).map { _ in recorder.workload.appends(&random) }
    let began = recorder.workload.now
    var failure: (any Error)?
    let messages = batches.map { batch in
      let writes = JSONNode.array(batch.map { RESTAppendClient.union($0.key, $0.element) })
      return JSONNode.object([.init("streamToken", .string(token)), .init("writes", writes)]).text
    }
    do { try channel.send(messages) } catch { failure = error }
    for batch in batches {
      do {
        try recorder.record(appends: batch, began: began) {
          if let failure { throw failure }
          let message = try channel.next()
          guard let time = message["commitTime"]?.stringValue else { throw LoopbackError("Write: \(message.text)") }
          token = message["streamToken"]?.stringValue ?? token
          return .committed(Timestamp(rfc3339: time.utf8))
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
  }
}
