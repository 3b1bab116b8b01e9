import Testing
import TestSupport

/// The client side of a channel, with a connection for each direction. It can also send requests that no browser
/// sends.
final class ChannelClient {
  /// The prefix of the paths of channels.
  static let root = "/google.firestore.v1.Firestore/"
  /// The headers that a browser sends with a form.
  static let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Origin", "http://page.test")]

  /// The connection for POSTs.
  let posts: TestHTTPClient
  /// The back channel.
  private(set) var back: ChunkReader?
  /// The session's ID, once the channel is open.
  private(set) var id = ""
  private let port: UInt16
  private let path: String

  init(_ port: UInt16, _ method: String = "Listen") {
    self.port = port
    path = "\(Self.root)\(method)/channel?VER=8&"
    posts = TestHTTPClient(port: port, timeoutSeconds: 20)
  }

  /// Sends a form.
  func post(_ query: String, _ form: String, headers: [(String, String)] = []) throws -> HTTPResponse {
    try posts.send("POST", path + query, headers: Self.form + headers, body: Array(form.utf8))
  }

  /// Opens the channel.
  @discardableResult
  func open(
    _ form: String = "count=0", query: String = "RID=1&CVER=22", headers: [(String, String)] = []
  ) throws -> HTTPResponse {
    let reply = try post(query, form, headers: headers)
    id = reply.text.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
    return reply
  }

  /// Sends messages, or only acknowledges the arrays up to a number.
  func send(_ form: String = "count=0", acknowledging number: Int) throws -> String {
    try post("SID=\(id)&RID=2&AID=\(number)", form).text
  }

  /// Opens a back channel.
  func listen(_ query: String) throws {
    back = try ChunkReader(port: port, target: "\(path)RID=rpc&SID=\(id)&TYPE=xmlhttp&\(query)")
  }

  /// Closes the back channel without reading the rest.
  func breakOff() { back = nil }

  /// The text of the next chunk on the back channel.
  func next() throws -> String { try #require(try back?.next(), "the response ended") }

  /// A form with messages in JSON, numbered from `offset`.
  static func form(_ messages: [String], from offset: Int, headers: String? = nil) -> String {
    var parts = headers.map { ["headers=" + escape($0)] } ?? []
    parts += ["count=\(messages.count)", "ofs=\(offset)"]
    parts += messages.enumerated().map { "req\($0.offset)___data__=" + escape($0.element) }
    return parts.joined(separator: "&")
  }

  private static func escape(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var escaped: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        escaped.append(byte)
      default:
        escaped += [UInt8(ascii: "%"), digits[Int(byte / 16)], digits[Int(byte % 16)]]
      }
    }
    return String(decoding: escaped, as: UTF8.self)
  }
}
