import DatabaseService
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// Queries without an index are rejected as in production if indexes are required, and the server suggests an index
/// file for the queries it has seen.
@Suite struct RequiredIndexTests {
  private static let control = "/hearth/v1/projects/p/databases/(default)/indexes"

  private static func query(_ text: String) -> String { #"{"structuredQuery": \#(text)}"# }
  private static func equal(_ field: String) -> String {
    #"{"fieldFilter": {"field": {"fieldPath": "\#(field)"}, "op": "EQUAL", "value": {"integerValue": "1"}}}"#
  }
  private static let ownerByTime = query(
    #"{"from": [{"collectionId": "c"}], "where": \#(equal("owner")), "orderBy": [{"field": {"fieldPath": "at"}, "direction": "DESCENDING"}]}"#
  )
  private static let groupOwner = query(
    #"{"from": [{"collectionId": "c", "allDescendants": true}], "where": \#(equal("owner"))}"#)
  private static let plain = query(#"{"from": [{"collectionId": "c"}], "where": \#(equal("owner"))}"#)
  private static let sum = """
    {"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "c"}], "where": \(equal("owner"))},
    "aggregations": [{"alias": "s", "sum": {"field": {"fieldPath": "n"}}}]}}
    """

  /// The protobuf message in the link of an error message.
  private static func payload(_ message: String, _ parameter: String) throws -> [UInt8] {
    let rest = try #require(message.range(of: parameter + "=")).upperBound
    let text = message[rest...].prefix { !$0.isWhitespace }
    #expect(!text.contains { "+/=".contains($0) })
    var padded = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    while padded.count % 4 != 0 { padded += "=" }
    return [UInt8](try #require(Data(base64Encoded: padded)))
  }

  private static func part(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag, UInt8(content.count)] + content }
  private static func text(_ tag: UInt8, _ text: String) -> [UInt8] { part(tag, Array(text.utf8)) }

  @Test func missingIndexIsReportedAsDocumented() throws {
    let server = try TestServer { $0.requiresIndexes = true }
    let refusal = try server.call("POST", ":runQuery", Self.ownerByTime)
    #expect(refusal.status == 400)
    #expect(refusal.json(0, "error", "status") == "FAILED_PRECONDITION")
    let lines = refusal.message.components(separatedBy: "\n")
    let link = "https://console.firebase.google.com/v1/r/project/p/firestore/indexes?create_composite="
    #expect(lines[0].hasPrefix("The query requires an index. You can create it here: \(link)"))
    #expect(
      lines.dropFirst() == [
        "", "Add to \"indexes\" in firestore.indexes.json:",
        #"{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"owner","order":"ASCENDING"},{"fieldPath":"at","order":"DESCENDING"}]}"#,
      ])
    let payload =
      Self.text(0x0A, "projects/p/databases/(default)/collectionGroups/c/indexes/_") + [0x10, 1]
      + Self.part(0x1A, Self.text(0x0A, "owner") + [0x10, 1]) + Self.part(0x1A, Self.text(0x0A, "at") + [0x10, 2])
      + Self.part(0x1A, Self.text(0x0A, "__name__") + [0x10, 2])
    #expect(try Self.payload(refusal.message, "create_composite") == payload)
    // The same error if the query was to open a transaction. None is opened.
    #expect(try server.call("POST", ":runQuery", Self.plain).status == 200)
  }

  @Test func missingFieldIndexIsReportedAsDocumented() throws {
    let server = try TestServer { $0.requiresIndexes = true }
    let refusal = try server.call("POST", ":runQuery", Self.groupOwner)
    #expect(
      refusal.message.hasPrefix(
        "The query requires a COLLECTION_GROUP_ASC index for collection c and field owner. You can create it here: "
          + "https://console.firebase.google.com/v1/r/project/p/firestore/indexes?create_exemption="))
    #expect(
      refusal.message.hasSuffix(
        "\n\nAdd to \"fieldOverrides\" in firestore.indexes.json:\n"
          + #"{"collectionGroup":"c","fieldPath":"owner","indexes":[{"order":"ASCENDING","queryScope":"COLLECTION"},"#
          + #"{"order":"DESCENDING","queryScope":"COLLECTION"},{"arrayConfig":"CONTAINS","queryScope":"COLLECTION"},"#
          + #"{"order":"ASCENDING","queryScope":"COLLECTION_GROUP"}]}"#))
    let payload =
      Self.text(0x0A, "projects/p/databases/(default)/collectionGroups/c/fields/owner") + [0x10, 2]
      + Self.part(0x1A, Self.text(0x0A, "owner") + [0x10, 1])
    #expect(try Self.payload(refusal.message, "create_exemption") == payload)
    let named = try server.call("POST", "/v1/projects/p/databases/other/documents:runQuery", Self.groupOwner)
    #expect(named.message.contains("/r/project/p/firestore/databases/other/indexes?create_exemption="))
  }

  @Test func missingVectorIndexIsReportedWithTheCommand() throws {
    let server = try TestServer { $0.requiresIndexes = true }
    let near = #"""
      {"from": [{"collectionId": "c"}], "where": \#(Self.equal("owner")), "findNearest": {"vectorField": {"fieldPath": "v"},
      "queryVector": {"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values":
      [{"doubleValue": 1}, {"doubleValue": 2}]}}}}}, "distanceMeasure": "COSINE", "limit": 3}}
      """#
    let refusal = try server.call("POST", ":runQuery", Self.query(near))
    #expect(
      refusal.message.hasPrefix(
        "Missing vector index configuration. Please create the required index with the following gcloud command: "
          + "gcloud firestore indexes composite create --project=p --collection-group=c --query-scope=COLLECTION "
          + "--field-config=order=ASCENDING,field-path=owner "
          + #"--field-config=vector-config='{"dimension":"2","flat": "{}"}',field-path=v"# + "\n\n"))
  }

  @Test func suggestedIndexesSuffice() throws {
    let directory = try TemporaryDirectory()
    // A server that does not require indexes suggests the same as one that does.
    var files: [String] = []
    for requires in [false, true] {
      let server = try TestServer { $0.requiresIndexes = requires }
      for body in [Self.ownerByTime, Self.groupOwner, Self.plain, Self.ownerByTime] {
        #expect(try server.call("POST", ":runQuery", body).status == (requires && body != Self.plain ? 400 : 200))
      }
      _ = try server.call("POST", ":runAggregationQuery", Self.sum)
      let reply = try server.call("POST", Self.control + ":suggest", "")
      #expect(reply.json("queries", as: Int.self) == 4)
      #expect(reply.json("added", as: Int.self) == 3)
      #expect(reply.json("complete", as: Bool.self) == true)
      files.append(try #require(reply.json("file")))
      // Entries that a file has already are kept, and not added again.
      let again = try server.call("POST", Self.control + ":suggest", files[0])
      #expect(again.json("added", as: Int.self) == 0)
      #expect(again.json("file") == files[0])
      // Another database has seen no query.
      let other = try server.call("POST", "/hearth/v1/projects/p/databases/x/indexes:suggest", "")
      #expect(other.json("queries", as: Int.self) == 0)
      #expect(try server.call("POST", Self.control + ":suggest", #"{"indexes": 1}"#).status == 400)
    }
    #expect(files[0] == files[1])
    let path = directory.file("firestore.indexes.json")
    try files[0].write(toFile: path, atomically: true, encoding: .utf8)
    let server = try TestServer {
      $0.requiresIndexes = true
      $0.indexes = [HearthConfiguration.DatabaseFile(path)]
    }
    for body in [Self.ownerByTime, Self.groupOwner, Self.plain] {
      #expect(try server.call("POST", ":runQuery", body).status == 200)
    }
    #expect(try server.call("POST", ":runAggregationQuery", Self.sum).status == 200)
    let list = try server.call("GET", Self.control)
    #expect(
      list.json("indexes", 0, "index") == "c (owner descending, at ascending)"
        || list.json("indexes", 0, "index") == "c (owner ascending, n ascending)")
    #expect(list.json("indexes", 0, "state") == "ready")
  }

  @Test func toolsCanListDeclaredIndexes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("firestore.indexes.json")
    let file = """
      {"indexes": [
        {"collectionGroup": "c", "queryScope": "COLLECTION_GROUP",
         "fields": [{"fieldPath": "t", "arrayConfig": "CONTAINS"}, {"fieldPath": "at", "order": "DESCENDING"}]},
        {"collectionGroup": "d", "queryScope": "COLLECTION",
         "fields": [{"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {}}}]}],
       "fieldOverrides": [{"collectionGroup": "c", "fieldPath": "e", "ttl": true, "indexes": []}]}
      """
    try file.write(toFile: path, atomically: true, encoding: .utf8)
    let server = try TestServer { $0.indexes = [HearthConfiguration.DatabaseFile(path)] }
    let groups = "/v1/projects/p/databases/(default)/collectionGroups"
    let all = try server.call("GET", groups + "/-/indexes")
    #expect(all.json("indexes", 0, "queryScope") == "COLLECTION_GROUP")
    #expect(all.json("indexes", 0, "state") == "READY")
    #expect(all.json("indexes", 0, "fields", 0, "arrayConfig") == "CONTAINS")
    #expect(all.json("indexes", 0, "fields", 1, "order") == "DESCENDING")
    #expect(all.json("indexes", 0, "fields", 2, "fieldPath") == "__name__")
    let name: String? = all.json("indexes", 0, "name")
    #expect(name?.hasPrefix("projects/p/databases/(default)/collectionGroups/c/indexes/") == true)
    #expect(all.json("indexes", 1, "fields", 1, "vectorConfig", "dimension", as: Int.self) == 3)
    let one = try server.call("GET", groups + "/d/indexes")
    #expect(one.json("indexes", as: [Any].self)?.count == 1)
    #expect(try server.call("GET", groups + "/x/indexes").text.filter { !$0.isWhitespace } == "{}")
    let fields = try server.call(
      "GET", groups + "/-/fields?filter=indexConfig.usesAncestorConfig=false%20OR%20ttlConfig:*")
    #expect(fields.json("fields", 0, "name") == "projects/p/databases/(default)/collectionGroups/c/fields/e")
    #expect(fields.json("fields", 0, "ttlConfig", "state") == "ACTIVE")
    #expect(try server.call("POST", groups + "/c/indexes", "{}").status == 501)
    #expect(try server.call("GET", groups + "/c/nothing").status == 404)
  }
}
