import TestSupport

/// One request of a sequence, the same for both servers except for values that a server generated.
///
/// `${name}` in the target or in a string of the body is replaced with a variable: a transaction ID or a time from an
/// earlier response.
struct Step: Sendable {
  enum Body: Sendable {
    case none
    case json(JSONNode)
    /// Any bytes, not necessarily JSON.
    case text(String)
  }

  /// The content of the response to compare.
  enum Reading: Sendable {
    case answer
    /// All pages of a list, concatenated. `member` contains the items of a page. The page parameters go into the
    /// query (GET) or the body (POST).
    case pages(member: String, size: Int)
  }

  var method: String
  /// Path and query, escaped except for variables.
  var target: String
  var body = Body.none
  var reading = Reading.answer
  /// Strings of the response to keep as variables.
  var captures: [Capture] = []
  /// The document of each write of a commit, or `nil` if the time in its result is not comparable.
  var written: [String?] = []
  /// The row of `KnownDifference` that this step may meet.
  var expectedDifference: KnownDifference?
}

/// Keeps a string of a response for later steps.
struct Capture: Sendable {
  var variable: String
  /// Names of members. A number selects an element of an array.
  var path: [String]
}

/// Steps that belong together, such as those of one transaction. Shrinking keeps or removes them as one.
typealias StepGroup = [Step]

/// The database that a sequence uses.
struct TestDatabase: Sendable {
  let project: String

  /// `projects/P/databases/(default)/documents`
  var root: String { "projects/\(project)/databases/(default)/documents" }

  func name(_ path: String) -> String { "\(root)/\(path)" }

  /// The URL path of a document or collection, with each segment escaped.
  func url(_ path: String) -> String {
    let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return "/v1/\(root)" + segments.map { "/" + percentEncoded($0) }.joined()
  }

  /// The URL of a custom verb on a document, or on the root if `path` is empty.
  func url(_ path: String, verb: String) -> String { (path.isEmpty ? "/v1/\(root)" : url(path)) + ":" + verb }

  /// Empties the database.
  var clear: Step { Step(method: "DELETE", target: "/emulator/v1/\(root)") }
}

/// `bytes` with all characters escaped except letters, digits and `-._~`.
func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
  var text = ""
  for byte in bytes {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
      text.unicodeScalars.append(Unicode.Scalar(byte))
    default:
      let digits = String(byte, radix: 16, uppercase: true)
      text += "%" + (digits.utf8.count == 1 ? "0" : "") + digits
    }
  }
  return text
}

/// A query string of `items`, or an empty string if there are no items.
func queryString(_ items: [(String, String)]) -> String {
  items.isEmpty ? "" : "?" + items.map { "\($0)=\(percentEncoded($1.utf8))" }.joined(separator: "&")
}
