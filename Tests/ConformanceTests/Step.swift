import TestSupport

/// One request of a sequence, the same for both servers but for what each of them made up itself.
///
/// `${name}` in the target or in a string of the body stands for a variable: a transaction id or a time that the server
/// gave in an earlier answer.
struct Step: Sendable {
  enum Body: Sendable {
    case none
    case json(JSONNode)
    /// Bytes that need not be JSON.
    case text(String)
  }

  /// What is asked for.
  enum Reading: Sendable {
    case answer
    /// All pages of a list, put together; `member` holds the items of a page.
    case pages(member: String, size: Int)
  }

  var method: String
  /// Path and query, escaped but for variables.
  var target: String
  var body = Body.none
  var reading = Reading.answer
  /// The pages of a list go into the query (GET) or into the body (POST).
  var captures: [Capture] = []
  /// The document of each write of a commit, or `nil` where the time in its result is not comparable.
  var written: [String?] = []
  /// Names the row of `KnownDifference` that this step is meant to meet.
  var expectedDifference: KnownDifference?
}

/// Keeps a string of an answer for later steps.
struct Capture: Sendable {
  var variable: String
  /// Names of members; a number selects an element of an array.
  var path: [String]
}

/// Steps that only make sense together, such as those of one transaction; shrinking takes or leaves them as one.
typealias StepGroup = [Step]

/// The database that a sequence works on.
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

  /// The URL of a custom verb on the root (`path` empty) or a document.
  func url(_ path: String, verb: String) -> String { (path.isEmpty ? "/v1/\(root)" : url(path)) + ":" + verb }

  /// Empties the database.
  var clear: Step { Step(method: "DELETE", target: "/emulator/v1/\(root)") }
}

/// `bytes` with everything but letters, digits and `-._~` escaped.
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

/// A query string of `items`, or nothing for none.
func queryString(_ items: [(String, String)]) -> String {
  items.isEmpty ? "" : "?" + items.map { "\($0)=\(percentEncoded($1.utf8))" }.joined(separator: "&")
}
