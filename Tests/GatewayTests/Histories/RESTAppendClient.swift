import DocumentModel
import TestSupport

/// A client of the REST API that uses every way to read and to append there.
final class RESTAppendClient: AppendClient {
  private let http: TestHTTPClient

  init(port: UInt16) { http = TestHTTPClient(port: port, timeoutSeconds: 20) }

  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<4: try transact(&recorder, &random)
    case 4..<6: try commitWithPreconditions(&recorder, &random)
    case 6: try appendBlindly(&recorder, &random)
    case 7: try readOnly(&recorder, &random)
    case 8: try readOnce(&recorder, &random)
    default: try readThePast(&recorder, &random)
    }
  }

  // MARK: - Transactions

  private func transact(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let transaction = try call("beginTransaction", ["options": ["readWrite": [:]]])["transaction"]?.stringValue ?? ""
    let keys = recorder.workload.keys(Int.random(in: 1...3, using: &random), &random)
    var time: Timestamp?
    var reads: [String: ListState] = [:]
    if random.chance(oneIn: 8) {
      let all = try query(["transaction": .string(transaction)])
      (reads, time) = (all.reads, all.time)
      for key in keys where reads[key] == nil { reads[key] = .missing }
    } else {
      // Each request must show the same state.
      for key in keys {
        let found = try batchGet([key], ["transaction": .string(transaction)])
        if let time, time != found.time { recorder.problems.append("a transaction read at \(time) and \(found.time)") }
        time = found.time
        reads.merge(found.reads) { $1 }
      }
    }
    // Some transactions write what they read, others something else.
    let appends = (random.chance(oneIn: 2) ? [keys[0]] : [keys[0], recorder.workload.keys(1, &random)[0]])
    let elements = Set(appends).map { (key: $0, element: recorder.workload.newElement()) }
    let writes = elements.map { key, element in
      if let read = reads[key] { return Self.replace(key, read.list + [element]) }
      return Self.union(key, element)
    }
    try recorder.record(reads, readAt: time, appends: elements, began: began) {
      try commit(writes, ["transaction": .string(transaction)])
    }
  }

  private func readOnly(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let transaction = try call("beginTransaction", ["options": ["readOnly": [:]]])["transaction"]?.stringValue ?? ""
    let keys = recorder.workload.keys(3, &random)
    let first = try batchGet([keys[0]], ["transaction": .string(transaction)])
    let second = try query(["transaction": .string(transaction)])
    let third = try batchGet(Array(keys.dropFirst()), ["transaction": .string(transaction)])
    if Set([first.time, second.time, third.time]).count > 1 {
      recorder.problems.append("a read-only transaction read at \(first.time), \(second.time) and \(third.time)")
    }
    for (key, state) in first.reads.merging(third.reads, uniquingKeysWith: { $1 }) {
      if state.list != second.reads[key]?.list ?? [] { recorder.problems.append("a query and a get of \(key) differ") }
    }
    let used = Set(recorder.workload.keys + keys)
    let reads = second.reads.filter { used.contains($0.key) }
      .merging(first.reads) { $1 }.merging(third.reads) { $1 }
    recorder.record(reads, began: began, at: first.time)
  }

  // MARK: - Without a transaction

  /// As the web SDK does: reads without a transaction, and a commit that requires each document to be unchanged.
  private func commitWithPreconditions(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let keys = recorder.workload.keys(2, &random)
    let found = try batchGet(keys)
    let element = recorder.workload.newElement()
    var writes: [JSONNode] = []
    for (key, state) in found.reads {
      let condition: JSONNode =
        state.updated.map { ["updateTime": .string("\($0)")] } ?? ["exists": false]
      let write =
        key == keys[0] ? Self.replace(key, state.list + [element]) : ["verify": .string(AppendWorkload.name(key))]
      writes.append(.object(write.members + [.init("currentDocument", condition)]))
    }
    try recorder.record(found.reads, readAt: found.time, appends: [(keys[0], element)], began: began) {
      try commit(writes)
    }
  }

  private func appendBlindly(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let appends = recorder.workload.appends(&random)
    let began = recorder.workload.now
    try recorder.record(appends: appends, began: began) { try commit(appends.map { Self.union($0.key, $0.element) }) }
  }

  private func readOnce(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let began = recorder.workload.now
    let found = try batchGet(recorder.workload.keys)
    recorder.record(found.reads, began: began, at: found.time)
  }

  /// Reads a state that was current some commits ago, once more. It may be older than what other clients know.
  private func readThePast(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let keys = recorder.workload.keys(2, &random)
    let time = try batchGet([keys[0]]).time
    try appendBlindly(&recorder, &random)
    let found = try batchGet(keys, ["readTime": .string("\(time)")])
    if found.time != time { recorder.problems.append("a read at \(time) shows \(found.time)") }
    recorder.record(found.reads, began: .min, at: found.time)
  }

  /// Reads all lists.
  func readAll(_ recorder: inout AppendRecorder) throws {
    let began = recorder.workload.now
    let all = try query([:])
    recorder.record(all.reads, began: began, at: all.time)
  }

  /// Appends one element to a list.
  func append(_ key: String, _ recorder: inout AppendRecorder) throws {
    let element = recorder.workload.newElement()
    try recorder.record(appends: [(key, element)], began: recorder.workload.now) {
      try commit([Self.union(key, element)])
    }
  }

  // MARK: - Requests

  private func send(_ verb: String, _ body: JSONNode) throws -> (status: Int, json: JSONNode) {
    let response = try http.send(
      "POST", "/v1/\(AppendWorkload.root):\(verb)",
      headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")], body: Array(body.text.utf8))
    return (response.status, try JSONNode(parsing: response.body))
  }

  private func call(_ verb: String, _ body: JSONNode) throws -> JSONNode {
    let (status, json) = try send(verb, body)
    guard status == 200 else { throw LoopbackError("\(verb): \(status) \(json.text)") }
    return json
  }

  private func batchGet(_ keys: [String], _ more: JSONNode = [:]) throws -> (
    reads: [String: ListState], time: Timestamp
  ) {
    let names = JSONNode.array(keys.map { .string(AppendWorkload.name($0)) })
    let json = try call("batchGet", .object([.init("documents", names)] + more.members))
    var reads: [String: ListState] = [:]
    var time: Timestamp?
    for element in json.elements {
      time = element["readTime"]?.stringValue.flatMap { Timestamp(rfc3339: $0.utf8) } ?? time
      if let document = element["found"], let (key, state) = Self.state(of: document) { reads[key] = state }
      if let name = element["missing"]?.stringValue { reads[AppendWorkload.key(ofName: name)] = .missing }
    }
    guard let time, reads.count == keys.count else { throw LoopbackError("batchGet: \(json.text)") }
    return (reads, time)
  }

  private func query(_ more: JSONNode) throws -> (reads: [String: ListState], time: Timestamp) {
    let query: JSONNode = ["from": [["collectionId": .string(AppendWorkload.collection)]]]
    let json = try call("runQuery", .object([.init("structuredQuery", query)] + more.members))
    var reads: [String: ListState] = [:]
    var time: Timestamp?
    for element in json.elements {
      time = element["readTime"]?.stringValue.flatMap { Timestamp(rfc3339: $0.utf8) } ?? time
      if let document = element["document"], let (key, state) = Self.state(of: document) { reads[key] = state }
    }
    guard let time else { throw LoopbackError("runQuery: \(json.text)") }
    return (reads, time)
  }

  private func commit(_ writes: [JSONNode], _ more: JSONNode = [:]) throws -> AppendReply {
    let (status, json) = try send("commit", .object([.init("writes", .array(writes))] + more.members))
    switch (status, json["error"]?["status"]?.stringValue ?? "") {
    case (200, _): return .committed(json["commitTime"]?.stringValue.flatMap { Timestamp(rfc3339: $0.utf8) })
    case (_, "ABORTED"), (_, "FAILED_PRECONDITION"), (_, "NOT_FOUND"), (_, "ALREADY_EXISTS"): return .aborted
    default: return .unexpected("\(status) \(json.text)")
    }
  }

  // MARK: - JSON

  /// The key and the list of a document.
  static func state(of document: JSONNode) -> (key: String, state: ListState)? {
    guard let name = document["name"]?.stringValue else { return nil }
    let values = document["fields"]?["l"]?["arrayValue"]?["values"]?.elements ?? []
    let list = values.compactMap { $0["integerValue"]?.stringValue.flatMap { Int($0) } }
    let updated = document["updateTime"]?.stringValue.flatMap { Timestamp(rfc3339: $0.utf8) }
    let count = document["fields"]?["n"]?["integerValue"]?.stringValue.flatMap { Int($0) } ?? 0
    return (AppendWorkload.key(ofName: name), ListState(list: list, count: count, updated: updated))
  }

  private static func replace(_ key: String, _ list: [Int]) -> JSONNode {
    let values = JSONNode.array(list.map { ["integerValue": .string("\($0)")] })
    let fields: JSONNode = [
      "l": ["arrayValue": ["values": values]], "n": ["integerValue": .string("\(list.count)")],
    ]
    return ["update": ["name": .string(AppendWorkload.name(key)), "fields": fields]]
  }

  static func union(_ key: String, _ element: Int) -> JSONNode {
    let transform: JSONNode = [
      "fieldPath": "l", "appendMissingElements": ["values": [["integerValue": .string("\(element)")]]],
    ]
    let counted: JSONNode = ["fieldPath": "n", "increment": ["integerValue": "1"]]
    return ["transform": ["document": .string(AppendWorkload.name(key)), "fieldTransforms": [transform, counted]]]
  }
}
