import DocumentModel
import FixtureTree
import Foundation
import Testing
import TestSupport

@testable import FirebaseExport

/// Exports of the official emulator and of Hearth are equal, record by record, and the emulator loads Hearth's.
@Suite(.needs(.hearth), .needs(.emulator)) struct EmulatorExportTests {
  private static let root = "/v1/projects/demo-x/databases/(default)/documents"
  private static let name = "projects/demo-x/databases/(default)/documents"
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Documents with every kind of value. Fields are in the order of their names, because Hearth writes them so.
  private static let documents: [(path: String, fields: String)] = [
    (
      "vals/scalars",
      #"""
      {"a": {"nullValue": null}, "b": {"booleanValue": true}, "c": {"booleanValue": false}, "d": {"doubleValue": 0.1},
       "e": {"doubleValue": "NaN"}, "f": {"doubleValue": "-Infinity"}, "g": {"integerValue": "-9223372036854775808"},
       "h": {"timestampValue": "0001-01-01T00:00:00Z"}, "i": {"timestampValue": "9999-12-31T23:59:59.999999Z"},
       "j": {"stringValue": "héllo"}, "k": {"stringValue": ""}, "l": {"bytesValue": "AAH/"}, "m": {"bytesValue": ""},
       "n": {"geoPointValue": {"latitude": 45.46, "longitude": -9.19}}, "o": {"geoPointValue": {}},
       "we.ird `key`": {"integerValue": "7"}}
      """#
    ),
    (
      "vals/references",
      """
      {"a": {"referenceValue": "\(name)/users/ann"}, "b": {"referenceValue": "\(name)/users/__id7__/x/y"},
       "c": {"referenceValue": "projects/other/databases/(default)/documents/users/ann"},
       "d": {"referenceValue": "projects/demo-x/databases/second/documents/a/b"}}
      """
    ),
    (
      "vals/nested",
      #"""
      {"a": {"arrayValue": {}}, "b": {"arrayValue": {"values": [{"integerValue": "1"}]}},
       "c": {"arrayValue": {"values": [{"nullValue": null}, {"mapValue": {}}, {"mapValue": {"fields": {"k":
         {"arrayValue": {}}, "l": {"arrayValue": {"values": [{"integerValue": "5"}, {"stringValue": "x"}]}}}}},
         {"timestampValue": "2025-03-27T14:30:00.123456Z"}, {"bytesValue": "AAE="}]}},
       "d": {"mapValue": {}}, "e": {"mapValue": {"fields": {"x": {"mapValue": {"fields": {"y": {"stringValue": "z"}}}}}}},
       "v": {"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values":
         [{"doubleValue": 1}, {"doubleValue": 2.5}]}}}}}}
      """#
    ),
    ("vals/empty", "{}"), ("users/__id42__", #"{"n": {"integerValue": "1"}}"#),
    ("users/%C3%BCn%C3%AF%20c%C3%B6d%C3%A9", "{}"), ("missing/parent/posts/p2", #"{"t": {"integerValue": "2"}}"#),
    ("vals/long", #"{"s": {"stringValue": "\#(String(repeating: "long text ", count: 9000))"}}"#),
  ]

  private func records(_ folder: String) throws -> [[UInt8]] {
    let export = try #require(try ExportFolder.find(directory.file(folder))?.documents)
    var records: [[UInt8]] = []
    for output in export.outputs {
      let file = try StampedFile(output.path)
      let reader = RecordLogReader(name: output.path) { (buffer) throws(FixtureTreeError) in
        try file.read(into: buffer)
      }
      while let record = try reader.next({ [UInt8]($0) }) { records.append(record) }
    }
    return records.sorted { $0.lexicographicallyPrecedes($1) }
  }

  private func documents(_ folder: String) throws -> [FixtureDocument] {
    let export = try #require(try ExportFolder.find(directory.file(folder))?.documents)
    let reader = export.makeReader(database: try #require(DatabaseID(project: "demo-x")))
    var documents: [FixtureDocument] = []
    while let document = try reader.nextDocument() { documents.append(document) }
    return documents.sorted { $0.key < $1.key }
  }

  @Test func emulatorAndHearthExchangeExports() throws {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let client = TestHTTPClient(port: emulator.port)
    func send(_ method: String, _ target: String, _ body: String = "") throws {
      let response = try client.send(
        method, target, headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")],
        body: body.isEmpty ? nil : Array(body.utf8))
      #expect(response.status == 200, "\(target): \(String(decoding: response.body, as: UTF8.self))")
    }
    func export(_ folder: String) throws {
      try FileManager.default.createDirectory(atPath: directory.file(folder), withIntermediateDirectories: true)
      let body: JSONNode = [
        "database": "projects/demo-x/databases/(default)", "export_directory": .string(directory.file(folder)),
        "export_name": "firestore_export",
      ]
      try send("POST", "/emulator/v1/projects/demo-x:export", body.text)
    }
    for document in Self.documents {
      try send("PATCH", "\(Self.root)/\(document.path)", "{\"fields\": \(document.fields)}")
    }
    try export("one")
    let data = ["--data", directory.file("data"), "--project", "demo-x"]
    let imported = try HearthBinary.run(["import", directory.file("one")] + data)
    #expect(imported.output.contains("imported \(Self.documents.count) documents\n"), "\(imported.output)")
    #expect(imported.output.contains("kept 2 references to other projects or databases\n"), "\(imported.output)")
    let tree = try HearthBinary.run(["export"] + data)
    let exported = try HearthBinary.run(
      ["export", "--format", "firebase", directory.file("two"), "--only", "firestore"] + data)
    #expect(exported.exit == .code(0), "\(exported.output)")
    // The emulator loads Hearth's export, shows the same documents, and writes the same records.
    try send("DELETE", "/emulator/v1/projects/demo-x/databases/(default)/documents")
    let body: JSONNode = [
      "database": "projects/demo-x/databases/(default)",
      "export_directory": .string(directory.file("two/firestore_export/firestore_export.overall_export_metadata")),
    ]
    try send("POST", "/emulator/v1/projects/demo-x:import", body.text)
    let shown = try HearthBinary.run(
      ["export", "--server", "http://127.0.0.1:\(emulator.port)", "--project", "demo-x", "--quiet"])
    #expect(shown.output == tree.output)
    try export("three")
    let first = try records("one")
    #expect(first.count == Self.documents.count)
    #expect(try records("two") == first)
    // The emulator writes the fields of a document that it has imported in an order of its own.
    #expect(try documents("three") == documents("one"))
  }
}
