import Foundation
import TestSupport

/// Sends the requests of a difference to one server.
///
/// In targets, headers and bodies, `ROOT` means the name of the database's documents, `${name}` for a member of
/// an earlier response (a transaction, a time, a page token, the `etag`), `@3(x#)@` for `x0,x1,x2`, and `~3(x)~` for
/// `xxx`.
struct DifferenceProbe {
  private let client: TestHTTPClient
  private let root: String
  private var variables: [String: String]

  init(port: UInt16, project: String) {
    client = TestHTTPClient(port: port, timeoutSeconds: 30)
    root = "projects/\(project)/databases/(default)/documents"
    variables = ["project": project]
  }

  /// Returns how the last response differs from the expected one, or `nil` if it does not.
  mutating func mismatch(_ requests: [JSONNode], to shown: Difference.Shown) throws -> String? {
    var status = 0
    var text = ""
    for request in requests { (status, text) = try send(request) }
    let json = try? JSONNode(parsing: Array(text.utf8))
    let code = (json?["error"] ?? json?.elements.first?["error"])?["status"]?.stringValue
    let answer = "\(status) \(text.prefix(400))"
    if status != shown.status { return "not \(shown.status): \(answer)" }
    if let wanted = shown.code, wanted != code { return "not \(wanted): \(answer)" }
    if let pattern = shown.matches, try !text.contains(Regex(pattern)) { return "does not match \(pattern): \(answer)" }
    if let pattern = shown.lacks, try text.contains(Regex(pattern)) { return "matches \(pattern): \(answer)" }
    return nil
  }

  private mutating func send(_ request: JSONNode) throws -> (status: Int, text: String) {
    let method = request["method"]?.stringValue ?? "GET"
    var target = expanded(request["target"]?.stringValue ?? "", escaping: true)
    if target.hasPrefix("/d") || target.hasPrefix(":") { target = "/v1/\(root)\(target)" }
    var headers = [("Content-Type", "application/json")]
    if request["nobody"] == nil { headers.append(("Authorization", "Bearer owner")) }
    for header in request["headers"]?.members ?? [] {
      headers.append((header.name, expanded(header.value.stringValue ?? "", escaping: false)))
    }
    var body: [UInt8]?
    if let json = request["body"] { body = Array(expanded(json.stringValue ?? json.text, escaping: false).utf8) }
    let response = try client.send(method, target, headers: headers, body: body)
    if let tag = response.header("etag") { variables["etag"] = tag }
    if let json = try? JSONNode(parsing: Array(response.text.utf8)) { remember(json) }
    return (response.status, response.text)
  }

  private static let remembered = ["transaction", "updateTime", "commitTime", "readTime", "nextPageToken"]

  private mutating func remember(_ json: JSONNode) {
    for member in json.members {
      if let text = member.value.stringValue, Self.remembered.contains(member.name) {
        variables[member.name] = text
      } else {
        remember(member.value)
      }
    }
    for element in json.elements { remember(element) }
  }

  private func expanded(_ text: String, escaping: Bool) -> String {
    // Replaces the long repetitions last, so that no later replacement searches them.
    text.replacing("ROOT", with: root)
      .replacing(/\$\{(\w+)\}/) { match in
        let value = variables[String(match.output.1)] ?? "unknown"
        return escaping && match.output.1 != "project" ? percentEncoded(value.utf8) : value
      }
      .replacing(/@(\d+)\((.*?)\)@/) { match in
        (0..<(Int(match.output.1) ?? 0)).map { match.output.2.replacing("#", with: "\($0)") }.joined(separator: ",")
      }
      .replacing(/~(\d+)\((.*?)\)~/) { String(repeating: String($0.output.2), count: Int($0.output.1) ?? 0) }
  }
}
