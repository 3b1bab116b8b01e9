import Foundation
import Testing
import TestSupport

/// A difference between Hearth and Firestore or its emulator, from `fixtures/known-differences.json`.
struct Difference: Sendable, CustomTestStringConvertible {
  /// The system that Hearth differs from.
  enum Origin: String { case production, emulator }

  /// The expected response.
  struct Shown: Sendable {
    var status: Int
    /// The name of the error's code.
    var code: String?
    /// A regular expression that the body must match, and one that it must not.
    var matches: String?
    var lacks: String?

    init(_ json: JSONNode) {
      status = json["status"]?.intValue ?? 0
      code = json["code"]?.stringValue
      matches = json["matches"]?.stringValue
      lacks = json["lacks"]?.stringValue
    }
  }

  /// The requests that show the difference, on a database of their own. The test compares the response to the last
  /// one.
  struct Probe: Sendable {
    var requests: [JSONNode]
    var emulator: Shown
    var hearth: Shown
  }

  let origin: Origin
  let topic: String
  let firestore: String
  let emulator: String
  let hearth: String
  /// The rows of `KnownDifference` that allow this difference for random requests.
  let rows: [String]
  let probe: Probe?
  /// The reason for the missing probe.
  let noProbe: String?

  var testDescription: String { topic }

  static let file = repository.appending(path: "fixtures/known-differences.json")
  static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Every entry of the file, in its order.
  static let all: [Difference] = {
    guard let data = try? Data(contentsOf: file), let json = try? JSONNode(parsing: Array(data)) else { return [] }
    return json.elements.map(Difference.init)
  }()

  private init(_ json: JSONNode) {
    func text(_ name: String) -> String { json[name]?.stringValue ?? "" }
    origin = Origin(rawValue: text("from")) ?? .emulator
    (topic, firestore, emulator, hearth) = (text("topic"), text("firestore"), text("emulator"), text("hearth"))
    rows = json["rows"]?.elements.compactMap(\.stringValue) ?? []
    noProbe = json["noProbe"]?.stringValue
    if let requests = json["probe"]?.elements, let emulator = json["emulatorShows"], let hearth = json["hearthShows"] {
      probe = Probe(requests: requests, emulator: Shown(emulator), hearth: Shown(hearth))
    } else {
      probe = nil
    }
  }
}

extension JSONNode {
  fileprivate var intValue: Int? {
    if case .number(let text) = self { Int(text) } else { nil }
  }
}
