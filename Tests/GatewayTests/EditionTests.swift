import Foundation
import HearthServer
import Testing

/// Databases of the enterprise edition, and how they differ from standard ones (firestore-api.md, section 4.2).
@Suite struct EditionTests {
  private static func root(_ database: String) -> String { "/v1/projects/p/databases/\(database)/documents" }

  private static func fields(_ value: String) -> String { #"{"fields":{"a":\#(value)}}"# }

  private static func bson(_ key: String, _ value: String) -> String {
    #"{"mapValue":{"fields":{"\#(key)":\#(value)}}}"#
  }

  @Test func namePatternsSelectTheEdition() throws {
    let named = try TestServer { $0.enterpriseDatabases = ["big*", "one"] }
    let body = Self.fields(Self.bson("__min__", #"{"nullValue":null}"#))
    for (database, status) in [
      ("big", 200), ("bigger", 200), ("one", 200), ("ones", 400), ("(default)", 400), ("enterprise", 400),
    ] {
      #expect(try named.call("PATCH", Self.root(database) + "/c/x", body).status == status, "\(database)")
    }
    let standard = try TestServer()
    #expect(try standard.call("PATCH", Self.root("enterprise-1") + "/c/x", body).status == 200)
    #expect(
      try standard.call("PATCH", Self.root("(default)") + "/c/x", body).message == "field name __min__ is reserved")
  }

  @Test(arguments: [
    ("__min__", #"{"nullValue":null}"#, true), ("__max__", #"{"nullValue":null}"#, true),
    ("__min__", #"{"integerValue":1}"#, false),
    ("__oid__", #"{"stringValue":"0123456789abcdef01234567"}"#, true), ("__oid__", #"{"stringValue":"x"}"#, false),
    ("__int__", #"{"integerValue":"-2147483648"}"#, true), ("__int__", #"{"integerValue":"2147483648"}"#, false),
    ("__decimal128__", #"{"stringValue":"1.5E+10"}"#, true), ("__decimal128__", #"{"stringValue":"ten"}"#, false),
    ("__binary__", #"{"bytesValue":"AQI="}"#, true), ("__binary__", #"{"bytesValue":""}"#, false),
    ("__binary__", #"{"bytesValue":"AAI="}"#, false), ("__binary__", #"{"bytesValue":"AA=="}"#, false),
    ("__binary__", #"{"bytesValue":"/w=="}"#, true),
    (
      "__request_timestamp__",
      #"{"mapValue":{"fields":{"seconds":{"integerValue":1},"increment":{"integerValue":2}}}}"#, true
    ),
    (
      "__request_timestamp__",
      #"{"mapValue":{"fields":{"seconds":{"integerValue":-1},"increment":{"integerValue":2}}}}"#, false
    ),
    ("__regex__", #"{"mapValue":{"fields":{"pattern":{"stringValue":"^a"},"options":{"stringValue":"imsux"}}}}"#, true),
    ("__regex__", #"{"mapValue":{"fields":{"pattern":{"stringValue":"^a"}}}}"#, false),
    ("__other__", #"{"nullValue":null}"#, false),
  ]) func bsonTypesAreValidated(key: String, content: String, isLegal: Bool) throws {
    let server = try TestServer()
    let path = Self.root("enterprise") + "/c/x"
    let reply = try server.call("PATCH", path, Self.fields(Self.bson(key, content)))
    #expect((reply.status == 200) == isLegal, "\(reply.text)")
    guard isLegal else { return }
    #expect(try server.call("GET", path).json("fields", "a", "mapValue", "fields", key, as: [String: Any].self) != nil)
    // The map is one value: it has no other key, and it cannot be the fields of a document.
    let beside = #"{"mapValue":{"fields":{"\#(key)":\#(content),"z":{"nullValue":null}}}}"#
    #expect(try server.call("PATCH", path, Self.fields(beside)).status == 400)
    #expect(try server.call("PATCH", path, #"{"fields":{"\#(key)":\#(content)}}"#).status == 400)
  }

  @Test func bsonStringsAreValidatedAndNormalized() throws {
    let server = try TestServer()
    let path = Self.root("enterprise") + "/c/x"
    let regex = #"{"mapValue":{"fields":{"pattern":{"stringValue":"^a"},"options":{"stringValue":"q"}}}}"#
    #expect(
      try server.call("PATCH", path, Self.fields(Self.bson("__regex__", regex))).message.hasPrefix(
        "Invalid regex option"))
    for (written, stored) in [("inf", "Infinity"), ("-inf", "-Infinity"), ("nan", "NaN"), ("1.50", "1.50")] {
      let reply = try server.call(
        "PATCH", path, Self.fields(Self.bson("__decimal128__", #"{"stringValue":"\#(written)"}"#)))
      #expect(reply.json("fields", "a", "mapValue", "fields", "__decimal128__", "stringValue") == stored)
    }
  }

  @Test func queriesAddNoImplicitOrder() throws {
    let server = try TestServer()
    for database in ["enterprise", "(default)"] {
      for (id, a) in [("x", 3), ("y", 1), ("z", 1)] {
        _ = try server.call("PATCH", Self.root(database) + "/c/\(id)", Self.fields(#"{"integerValue":\#(a)}"#))
      }
    }
    func ids(_ database: String, _ query: String) throws -> [String] {
      let reply = try server.call(
        "POST", Self.root(database) + ":runQuery", #"{"structuredQuery":{"from":[{"collectionId":"c"}],\#(query)}}"#)
      return try #require(reply.json as? [[String: Any]]).compactMap { element in
        ((element["document"] as? [String: Any])?["name"] as? String)?.split(separator: "/").last.map(String.init)
      }
    }
    let above = #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"GREATER_THAN","value":{"integerValue":0}}}"#
    #expect(try ids("(default)", above) == ["y", "z", "x"])
    #expect(try ids("enterprise", above) == ["x", "y", "z"])
    let down = #""orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"}]"#
    #expect(try ids("(default)", down) == ["x", "z", "y"])
    #expect(try ids("enterprise", down) == ["x", "y", "z"])
  }

  // Source: nodejs-firestore's system tests, "performs sum over a result set of zero documents".
  @Test(arguments: [("(default)", #"{"integerValue": "0"}"#), ("enterprise", #"{"nullValue": null}"#)])
  func sumOfNoNumbersDependsOnTheEdition(database: String, sum: String) throws {
    let server = try TestServer()
    let body = """
      {"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "none"}]},
        "aggregations": [{"alias": "s", "sum": {"field": {"fieldPath": "a"}}}, {"alias": "n", "count": {}}]}}
      """
    let reply = try server.call("POST", Self.root(database) + ":runAggregationQuery", body)
    let expected = #"[{"result": {"aggregateFields": {"s": \#(sum), "n": {"integerValue": "0"}}}, "readTime": "*"}]"#
    #expect(matches(expected, reply), "\(reply.text)")
  }

  @Test func largeDocumentsAreAllowed() throws {
    let server = try TestServer()
    let large = Self.fields(#"{"stringValue":"\#(String(repeating: "x", count: 5 << 20))"}"#)
    #expect(try server.call("PATCH", Self.root("enterprise") + "/c/x", large).status == 200)
    #expect(try server.call("GET", Self.root("enterprise") + "/c/x").body.count > 5 << 20)
    let refused = try server.call("PATCH", Self.root("(default)") + "/c/x", large)
    #expect(refused.message == "The value of property \"a\" is longer than 1048487 bytes.")
    let huge = Self.fields(#"{"stringValue":"\#(String(repeating: "x", count: 11 << 20))"}"#)
    #expect(try server.call("PATCH", Self.root("enterprise") + "/c/y", huge).status == 200)
    #expect(try server.call("PATCH", Self.root("(default)") + "/c/y", huge).status == 413)
  }
}
