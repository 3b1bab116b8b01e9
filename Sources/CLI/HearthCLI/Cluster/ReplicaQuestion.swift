import Dispatch
import HearthServer
import Replication
import Synchronization
import Transport

/// The answer of a node to a question about its replica.
enum ReplicaAnswer: Equatable, Sendable {
  /// The replica is at a sequence.
  case at(UInt64)
  case digest(ReplicaDigest)
  /// It was after the position already, at this sequence.
  case passed(UInt64)
  /// It did not get to the position in time.
  case late(UInt64)
  case busy
  case failed(String)
  /// The node does not answer, or runs a version without digests.
  case silent
}

/// Questions to several nodes at the same time.
final class ReplicaQuestion: Sendable {
  private struct State {
    var answers: [UInt32: ReplicaAnswer] = [:]
    var bytes: [UInt32: Int] = [:]
    var partial: [UInt32: (line: [UInt8], stores: [ReplicaDigest.Store])] = [:]
    var streams: [UInt32: NodeStream] = [:]
    /// The time at which each node was heard last, in milliseconds.
    var heard: [UInt32: Int64] = [:]
    var isCancelled = false
  }

  /// The time after which a node that sends nothing is given up, in milliseconds. One that reads its data sends a line twice a
  /// second, after a wait of five seconds at most.
  private static let silenceMilliseconds: Int64 = 30_000
  /// The most stores that a node can have.
  private static let storesMax = 10_000

  private let state = Mutex(State())
  private let changed = DispatchSemaphore(value: 0)

  /// Asks each node, and waits until all have answered, or one says that it cannot take part. Calls `show` with the bytes
  /// that all have read together, ten times a second. Returns the answers; ``ReplicaAnswer/silent`` for a node that had none.
  static func ask(
    _ nodes: [(number: UInt32, address: NodeAddress)], at sequence: UInt64?, by client: NodeClient,
    show: (Int) -> Void
  ) -> [UInt32: ReplicaAnswer] {
    let question = ReplicaQuestion()
    for (number, address) in nodes {
      let stream = client.makeStream(
        receive: { question.receive($0, from: number) }, end: { question.ended(number) })
      question.state.withLock { state in
        (state.streams[number], state.heard[number]) = (stream, Progress.now())
      }
      client.open(stream, sequence.map(DigestMessage.target) ?? DigestMessage.path, at: address)
    }
    while question.state.withLock({ $0.answers.count }) < nodes.count {
      _ = question.changed.wait(timeout: .now() + .milliseconds(100))
      show(question.state.withLock { $0.bytes.values.reduce(0, +) })
      question.cancelIfVain()
    }
    return question.state.withLock { $0.answers }
  }

  /// Ends the questions to nodes that are silent, and all if the digests can no longer be compared.
  private func cancelIfVain() {
    let now = Progress.now()
    let silent = state.withLock { state in
      state.streams.filter { now - (state.heard[$0.key] ?? now) > Self.silenceMilliseconds }.map(\.value)
    }
    for stream in silent { stream.close() }
    let streams = state.withLock { state -> [NodeStream] in
      let isVain = state.answers.values.contains { answer in
        switch answer {
        case .passed, .late, .busy: true
        case .at, .digest, .failed, .silent: false
        }
      }
      guard isVain, !state.isCancelled else { return [] }
      state.isCancelled = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.close() }
  }

  // MARK: On the thread of the client

  private func receive(_ bytes: UnsafeRawBufferPointer, from node: UInt32) {
    let stream = state.withLock { state in
      state.heard[node] = Progress.now()
      for byte in bytes {
        guard byte == UInt8(ascii: "\n") else {
          if state.partial[node, default: ([], [])].line.count < DigestMessage.bytesMax {
            state.partial[node, default: ([], [])].line.append(byte)
          }
          continue
        }
        let received = state.partial[node]?.line ?? []
        let line = received.count < DigestMessage.bytesMax ? String(decoding: received, as: UTF8.self) : ""
        state.partial[node, default: ([], [])].line = []
        Self.take(DigestMessage(line), from: node, &state)
      }
      return state.streams[node]
    }
    stream?.consumed(bytes.count)
  }

  private static func take(_ message: DigestMessage?, from node: UInt32, _ state: inout State) {
    switch message {
    case .at(let sequence): state.answers[node] = .at(sequence)
    case .passed(let sequence): state.answers[node] = .passed(sequence)
    case .late(let sequence): state.answers[node] = .late(sequence)
    case .busy: state.answers[node] = .busy
    case .failed(let text): state.answers[node] = .failed(text)
    case .bytes(let count): state.bytes[node] = count
    case .store(let store):
      guard state.partial[node]?.stores.count ?? 0 < storesMax else { return }
      state.partial[node, default: ([], [])].stores.append(store)
    case .end(let position):
      state.answers[node] = .digest(ReplicaDigest(position: position, stores: state.partial[node]?.stores ?? []))
    // A later version may send more.
    case nil: break
    }
  }

  private func ended(_ node: UInt32) {
    state.withLock { state in
      state.streams[node] = nil
      if state.answers[node] == nil { state.answers[node] = .silent }
    }
    changed.signal()
  }
}
