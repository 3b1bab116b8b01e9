import DocumentModel
import Foundation
import RulesEngine
import TestSupport
import WireFormat

/// The document and the requests that the expressions in `fixtures/rules` use.
enum RulesFixture {
  /// The root directory of the repository.
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  static let time = Timestamp(uncheckedMicroseconds: 1_790_000_000_123_456)

  /// The document at `t/x`.
  static let document = EncodedFields(
    MapValue([
      ("a", .integer(1)), ("s", .string("str")), ("n", .null), ("f", .double(1.5)),
      ("l", .array([.integer(1), .string("z")])), ("m", .map(MapValue([("k", .integer(5))]))),
      ("t", .timestamp(Timestamp(uncheckedMicroseconds: 1_582_979_696_789_123))), ("b", .bytes(Array("hello".utf8))),
      ("g", .geoPoint(GeoPoint(latitude: 10.5, longitude: -20.25))),
      ("r", .reference("projects/p/databases/(default)/documents/t/y")),
    ]))

  static func path(_ text: String) -> ResourcePath {
    ResourcePath(uncheckedBytes: Array(text.utf8))
  }

  /// A get of `t/x` without credentials.
  static var request: RulesRequest {
    var request = RulesRequest(.get, path("t/x"), time: time)
    request.resource = document
    return request
  }

  /// Returns a ruleset with one condition.
  static func rules(_ condition: String, functions: String = "", methods: String = "get") -> String {
    """
    rules_version = '2';
    service cloud.firestore { match /databases/{database}/documents {
    \(functions)
    match /t/{id} { allow \(methods): if \(condition)
    ; } } }
    """
  }
}

/// Documents by path, before and after a request.
final class Documents: DocumentLookup {
  var before: [String: MapValue] = [:]
  /// The documents that the request writes; `nil` for those that it deletes.
  var changes: [String: MapValue?] = [:]
  var lookedUpPaths: [String] = []

  init(_ before: [String: MapValue] = [:]) { self.before = before }

  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome {
    let name = String(decoding: path, as: UTF8.self)
    lookedUpPaths.append(name)
    var found = before[name]
    if isAfter, let change = changes[name] {
      guard let change else { return .deleted }
      found = change
    }
    guard let found else { return .missing }
    EncodedFields(found).bytes.withUnsafeBytes(body)
    return .found
  }
}
