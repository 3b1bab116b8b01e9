import TestSupport

/// The response of a server to a step.
struct Answer: Sendable {
  var status: Int
  /// The response in the form that is compared.
  var normalized: JSONNode
  /// The response as received, for people.
  var raw: String

  /// The name of the code, such as `NOT_FOUND`, if the response is an error.
  var errorStatus: String? { normalized["error"]?.stringValue }
}

/// One of the two servers, with the variables of the current sequence.
final class Replica {
  /// Limitations of a server that the test avoids.
  struct Quirks {
    /// The emulator responds with an error 500 to every page token of an ordered list, so the test requests one page.
    var ordersOnlyOnePage = false
  }

  private let client: TestHTTPClient
  private let quirks: Quirks
  /// Keyed by the bytes of the name: names contain document IDs, which may differ although the strings are
  /// canonically equivalent.
  private var variables: [[UInt8]: String] = [:]
  private var normalizer = Normalizer()

  init(port: UInt16, quirks: Quirks) {
    self.quirks = quirks
    client = TestHTTPClient(port: port, timeoutSeconds: 15)
  }

  /// Discards the state of the previous sequence.
  func reset() {
    variables = [:]
    normalizer = Normalizer()
  }

  /// Runs `step`. A server that does not respond gives status 0.
  func run(_ step: Step) -> Answer {
    do {
      switch step.reading {
      case .answer: return try once(step)
      case .pages(let member, let size): return try allPages(step, member: member, size: size)
      }
    } catch {
      return Answer(status: 0, normalized: .string("\(error)"), raw: "\(error)")
    }
  }

  private func send(_ step: Step) throws -> (status: Int, raw: String, json: JSONNode?) {
    let target = substituted(step.target, escaping: true)
    var body: [UInt8]?
    switch step.body {
    case .none: body = step.method == "POST" || step.method == "PATCH" ? [] : nil
    case .json(let node): body = Array(substituted(node).text.utf8)
    case .text(let text): body = Array(text.utf8)
    }
    var headers = [("Authorization", "Bearer owner")]
    if body != nil { headers.append(("Content-Type", "application/json")) }
    let response = try client.send(step.method, target, headers: headers, body: body)
    var json: JSONNode?
    if response.header("content-type")?.hasPrefix("application/json") == true {
      json = try JSONNode(parsing: response.body)
    }
    return (response.status, response.text, json)
  }

  private func once(_ step: Step) throws -> Answer {
    let (status, raw, json) = try send(step)
    if status == 200, let json {
      for capture in step.captures {
        var node: JSONNode? = json
        for part in capture.path { node = Int(part).map { node?.elements.dropFirst($0).first } ?? node?[part] }
        if let value = node?.stringValue { variables[Array(capture.variable.utf8)] = value }
      }
    }
    return Answer(status: status, normalized: normalizer.normalize(json, status: status, step: step), raw: raw)
  }

  /// Follows page tokens to the end, for at most 200 pages.
  private func allPages(_ step: Step, member: String, size: Int) throws -> Answer {
    let isOrdered = step.target.contains("orderBy=")
    let size = isOrdered && quirks.ordersOnlyOnePage ? 150 : size
    var items: [JSONNode] = []
    var token: String?
    var raw = ""
    for _ in 0..<200 {
      let (status, text, json) = try send(page(of: step, size: size, token: token))
      raw += text
      guard status == 200, let json else {
        return Answer(status: status, normalized: normalizer.normalize(json, status: status, step: step), raw: raw)
      }
      let page = json[member]?.elements ?? []
      guard page.count <= size else { return Answer(status: status, normalized: "page too large", raw: raw) }
      items += page
      token = json["nextPageToken"]?.stringValue
      if token == nil {
        let whole = JSONNode.object([.init(member, .array(items))])
        return Answer(status: 200, normalized: normalizer.normalize(whole, status: 200, step: step), raw: raw)
      }
    }
    return Answer(status: 0, normalized: "pages without an end", raw: raw)
  }

  private func page(of step: Step, size: Int, token: String?) -> Step {
    var step = step
    if step.method == "GET" {
      step.target += (step.target.contains("?") ? "&" : "?") + "pageSize=\(size)"
      if let token { step.target += "&pageToken=" + percentEncoded(token.utf8) }
    } else {
      var members = [JSONNode.Member("pageSize", .number(String(size)))]
      if let token { members.append(.init("pageToken", .string(token))) }
      step.body = .json(.object(members))
    }
    return step
  }

  /// `text` with its variables replaced. A variable that was never set becomes a value that no server returned.
  private func substituted(_ text: String, escaping: Bool) -> String {
    guard text.utf8.contains(UInt8(ascii: "$")) else { return text }
    var result = ""
    var rest = text[...]
    while let start = rest.firstRange(of: "${"), let end = rest[start.upperBound...].firstIndex(of: "}") {
      let variable = String(rest[start.upperBound..<end])
      let value =
        variables[Array(variable.utf8)] ?? (variable.hasPrefix("transaction") ? "AAAA" : "2021-02-03T04:05:06Z")
      result += rest[..<start.lowerBound] + (escaping ? percentEncoded(value.utf8) : value)
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private func substituted(_ node: JSONNode) -> JSONNode {
    switch node {
    case .string(let string): .string(substituted(string, escaping: false))
    case .array(let elements): .array(elements.map(substituted))
    case .object(let members): .object(members.map { .init($0.name, substituted($0.value)) })
    default: node
    }
  }
}
