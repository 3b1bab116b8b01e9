import Foundation
import Testing

@testable import HearthClient

/// Values of variables in conditions and in the dictionaries of writes.
@Suite struct VariableTests {
  enum Role: String, Codable, ValueConvertible { case member, editor }

  static let converted: [(any ValueConvertible, Value)] = [
    (true, .boolean(true)), ("x", .string("x")), ("xyz".prefix(1), .string("x")), (1, .integer(1)),
    (Int8.min, .integer(-128)), (Int16.max, .integer(32_767)), (Int32(3), .integer(3)), (Int64.max, .integer(.max)),
    (UInt8.max, .integer(255)), (UInt16.max, .integer(65_535)), (UInt32.max, .integer(4_294_967_295)),
    (0.5, .double(0.5)), (Float(1.5), .double(1.5)), (Role.editor, .string("editor")),
    (Date(timeIntervalSince1970: 1.5), .timestamp(Timestamp(microseconds: 1_500_000))),
    (Timestamp(microseconds: 7), .timestamp(Timestamp(microseconds: 7))), (Data([1, 2]), .bytes(Data([1, 2]))),
    (
      UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
      .string("00010203-0405-0607-0809-0A0B0C0D0E0F")
    ),
    (GeoPoint(latitude: 1, longitude: 2), .geoPoint(GeoPoint(latitude: 1, longitude: 2))),
    (VectorValue([1, 2]), .vector([1, 2])), (Value.null, .null), (Int?.none, .null), (Int?.some(4), .integer(4)),
    (["a", "b"], .array(["a", "b"])), ([1, nil], .array([1, nil])), (["a": [Role.member]], .map(["a": ["member"]])),
  ]

  @Test(arguments: converted.indices)
  func convertsTypes(_ index: Int) throws {
    let (variable, value) = Self.converted[index]
    #expect(variable.documentValue == value && variable.fieldValue == FieldValue(.set(value)))
  }

  @Test func convertsURLsAndReferences() throws {
    let url = try #require(URL(string: "https://example.com/a"))
    #expect(url.documentValue == "https://example.com/a")
    let reference = detachedClient().document("users/ann")
    #expect(reference.documentValue == .reference(reference))
  }

  @Test func dictionariesMixVariablesAndChanges() async throws {
    let hearth = try TestHearth()
    let doc = try hearth.client().document("todos/milk")
    let (owner, count, missing, tags): (String, Int, String?, [String]) = ("ann", 3, nil, ["a"])
    try await doc.set(["owner": owner, "n": count, "left": missing, "at": .serverTimestamp, "gone": .delete])
    var fields = try await doc.get().fields
    #expect(fields.keys.sorted() == ["at", "left", "n", "owner"])
    #expect(fields["owner"] == "ann" && fields["n"] == 3 && fields["left"] == .null)
    try await doc.update([
      "n": .increment(count), "owner": owner.uppercased(), "tags": tags, "left": .delete, "map.x": count,
      "deep": .map(["owner": owner, "list": [count], "none": nil]), "mixed": .array([owner, count, nil]),
    ])
    fields = try await doc.get().fields
    #expect(fields["n"] == 6 && fields["owner"] == "ANN" && fields["tags"] == ["a"] && fields["left"] == nil)
    #expect(fields["map"] == ["x": 3] && fields["mixed"] == ["ann", 3, nil])
    #expect(fields["deep"] == ["owner": "ann", "list": [3], "none": nil])
    try await doc.update(["tags": .arrayUnion([owner, "b"]), "mixed": .arrayRemove([count])])
    fields = try await doc.get().fields
    #expect(fields["tags"] == ["a", "ann", "b"] && fields["mixed"] == ["ann", nil])
  }

  @Test func mergingKeepsOtherFields() async throws {
    let hearth = try TestHearth()
    let doc = try hearth.client().document("users/ann")
    let city = "Oslo"
    try await doc.set(["address": ["zip": "0150", "city": "Bergen"], "age": 41, "draft": true, "empty": ["x": 1]])
    try await doc.set(
      ["address": ["city": city], "visits": .increment(1), "draft": .delete, "empty": [String: Int]()], merge: true)
    #expect(
      try await doc.get().fields
        == ["address": ["zip": "0150", "city": "Oslo"], "age": 41, "visits": 1, "empty": [:]])
  }

  @Test func addsAndCreatesFromDictionaries() async throws {
    let hearth = try TestHearth()
    let todos = try hearth.client().collection("todos")
    let title = "Milk"
    let added = try await todos.add(["title": title, "n": 1, "at": .serverTimestamp])
    #expect(try await added.get().fields["title"] == "Milk")
    await #expect { try await added.create(["title": title, "n": 2]) } throws: {
      ($0 as? HearthClientError)?.code == .alreadyExists
    }
    var batch = todos.client.batch()
    batch.update(added, ["title": title + "!", "n": .increment(1)])
    batch.create(todos.document("b"), ["title": title, "n": 5])
    try await batch.commit()
    #expect(try await added.get().fields["n"] == 2)
    try await todos.client.runTransaction { transaction in
      let read = try await transaction.get(added)
      guard case .integer(let n)? = read.fields["n"] else { return }
      transaction.update(added, ["n": n * 10])
      transaction.set(todos.document("c"), ["title": title, "n": n])
    }
    #expect(try await added.get().fields["n"] == 20)
    #expect(try await todos.document("c").get().fields == ["title": "Milk", "n": 2])
  }

  @Test func conditionsAndBoundsTakeVariables() async throws {
    let hearth = try TestHearth()
    let people = try hearth.client().collection("people")
    let born = Date(timeIntervalSince1970: 1000)
    for (id, role, age) in [("ann", Role.editor, 41), ("ben", .member, 20), ("cem", .editor, 30)] {
      try await people.document(id).set(["role": role, "age": age, "born": born, "tags": [id, "all"]])
    }
    func ids(_ query: HearthClient.Query) async throws -> [String] { try await query.get().documents.map(\.id) }
    let (role, age, wanted) = (Role.editor, 30, ["ben", "cem"])
    #expect(try await ids(people.where("role", .equal, role).where("age", .greaterThan, age)) == ["ann"])
    #expect(try await ids(people.where("tags", .arrayContainsAny, wanted)) == ["ben", "cem"])
    #expect(try await ids(people.where("born", .equal, born).where("age", .isIn, [age, 41])) == ["ann", "cem"])
    #expect(
      try await ids(people.where(.or([.field("age", .lessThan, age), .field("role", .equal, role)]))).count == 3)
    #expect(try await ids(people.order(by: "age").start(at: [age]).end(before: [age + 11])) == ["cem"])
    #expect(try await ids(people.where(.documentID, .equal, people.document("ben"))) == ["ben"])
  }
}
