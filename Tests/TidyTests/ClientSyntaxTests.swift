import Testing
import TestSupport

/// The forms in which the Swift client takes values. The compiler checks each line against the built module.
@Suite struct ClientSyntaxTests {
  private static let declarations = """
    import Foundation
    import HearthClient

    enum Role: String, Codable, ValueConvertible { case member, editor }
    struct Person: Codable { var name = "Ann" }
    struct Opaque {}

    func write(_ hearth: Hearth) async throws {
      let people = hearth.collection("people")
      let ann = hearth.document("people/ann")
      let (owner, count, ratio, isDone, date) = ("ann", 3, 0.5, true, Date())
      let (small, wide, single, id) = (Int8(1), Int64(2), Float(1.5), UUID())
      let (data, url, role) = (Data([1]), URL(string: "https://example.com")!, Role.editor)
      let (time, place, vector) = (Timestamp(date), GeoPoint(latitude: 1, longitude: 2), VectorValue([1]))
      let (missing, tags, scores): (String?, [String], [String: Int]) = (nil, ["a"], ["b": 1])
      var batch = hearth.batch()

    """

  /// Lines of a program that must compile.
  static let accepted: [String] = [
    // Values of variables.
    #"try await ann.update(["owner": owner])"#,
    #"try await ann.update(["owner": owner, "count": count, "ratio": ratio, "isDone": isDone, "date": date])"#,
    #"try await ann.update(["small": small, "wide": wide, "single": single, "id": id, "data": data])"#,
    #"try await ann.update(["url": url, "role": role, "time": time, "place": place, "vector": vector])"#,
    #"try await ann.update(["missing": missing, "tags": tags, "scores": scores, "ref": ann, "nested": [tags]])"#,
    #"try await ann.update(["optionals": [owner, nil], "part": owner.prefix(1), "value": Value.null])"#,
    #"try await ann.update(["address": Value(encoding: Person())])"#,
    // Literals, also those that the forms above do not cover: maps and arrays of different types.
    #"try await ann.update(["n": 1])"#,
    #"try await ann.update(["a": 1, "b": 1.5, "c": "x", "d": nil, "e": true, "f": "\(count)"])"#,
    #"try await ann.update(["map": ["x": 1, "y": "s", "z": nil], "list": [1, "a", ["b": 2]]])"#,
    // Changes, values and literals in one dictionary.
    #"try await ann.update(["owner": owner, "n": .increment(1), "at": .serverTimestamp, "a.b": .delete, "c": nil])"#,
    #"try await ann.update(["n": .increment(count), "r": .maximum(ratio), "s": .minimum(small), "t": .increment(-0.5)])"#,
    #"try await ann.update(["t": .arrayUnion(tags), "u": .arrayRemove(["a", owner]), "v": .arrayUnion([1, "a"])])"#,
    #"try await ann.update(["m": .map(["owner": owner, "count": count, "no": nil]), "n": .array([owner, 1])])"#,
    #"let change: FieldValue = isDone ? .delete : .serverTimestamp; try await ann.update(["x": change, "n": count])"#,
    #"var fields: [FieldPath: FieldValue] = [:]; fields["n"] = 1; try await ann.update(fields)"#,
    #"try await ann.update([FieldPath(owner, "name"): count, "a.\(owner)": 1])"#,
    #"try await ann.update(["owner": owner], if: .exists(true))"#,
    // Whole documents.
    "try await ann.set(Person())",
    #"try await ann.set(["n": 1])"#,
    "try await ann.set(scores, merge: true)",
    #"try await ann.set(["n": 1 as Value, "s": "x"])"#,
    #"try await ann.set(["owner": owner, "count": count, "at": .serverTimestamp], merge: true)"#,
    #"try await ann.set(["title": "x", "address": ["zip": 1, "city": "Oslo"], "at": .serverTimestamp])"#,
    #"try await ann.create(["owner": owner, "count": count])"#,
    #"try await people.add(["owner": owner, "count": count, "at": .serverTimestamp])"#,
    #"try await people.add(["title": "x", "n": 1, "deep": ["a": 1, "b": "c"]])"#,
    // Batches and transactions: the document comes first.
    #"batch.update(ann, ["owner": owner, "n": .increment(1)]); batch.delete(ann)"#,
    #"batch.set(ann, ["owner": owner, "n": count], merge: true); batch.create(ann, ["n": count, "s": owner])"#,
    #"try batch.set(ann, Person()); try batch.create(ann, Person()); try batch.set(ann, Person(), mergeFields: ["name"])"#,
    """
    try await hearth.runTransaction { transaction in
        let read = try await transaction.get(ann)
        transaction.update(read.reference, ["owner": owner, "count": .increment(count)])
        transaction.set(ann, ["owner": owner, "count": count])
        try transaction.set(ann, Person())
        transaction.delete(ann)
      }
    """,
    // Queries.
    #"_ = people.where("owner", .equal, owner).where("count", .lessThan, count).where("role", .notEqual, role)"#,
    #"_ = people.where("n", .equal, 1).where("x", .equal, nil).where("s", .equal, "\(count)").where("b", .equal, true)"#,
    #"_ = people.where("tags", .arrayContainsAny, tags).where("n", .isIn, [1, "a", nil]).where("o", .equal, missing)"#,
    #"_ = people.where(.or([.field("owner", .equal, owner), .and([.field("n", .equal, nil), .field("d", .lessThan, date)])]))"#,
    #"_ = people.where(.documentID, .equal, ann).order(by: "n").start(at: [owner, count]).end(before: [1, "a", nil])"#,
    #"_ = people.order(by: "n").start(after: tags).end(at: [date])"#,
    // Sign-in.
    "try await hearth.auth.signIn(with: .google(idToken: owner, accessToken: owner))",
    "try await hearth.auth.link(with: .apple(idToken: owner, nonce: owner))",
    #"_ = try await hearth.auth.signIn(with: .oidc(provider: "oidc.example", idToken: owner)).identityProviders"#,
    #"do { try await hearth.auth.unlink("google.com") } catch let error as HearthClientError where error.reason == .credentialTooOld {}"#,
  ]

  /// Lines that must not compile, and the beginning of the error.
  static let refused: [(line: String, error: String)] = [
    (
      #"try await ann.update(["x": Opaque()])"#,
      "cannot convert value of type 'Opaque' to expected dictionary value type 'FieldValue'"
    ),
    (
      #"try await ann.update(["n": count, "x": Opaque()])"#,
      "cannot convert value of type 'Opaque' to expected dictionary value type '(any FieldValueConvertible)?'"
    ),
    (
      #"try await ann.update(["x": UInt64(1)])"#,
      "cannot convert value of type 'UInt64' to expected dictionary value type 'FieldValue'"
    ),
    (
      "try await ann.update([owner: 1])",
      "cannot convert value of type 'String' to expected dictionary key type 'FieldPath'"
    ),
    (#"try await ann.update(["x": .incremented(1)])"#, "reference to member 'incremented' cannot be resolved"),
    (#"try await ann.update(["x": .increment("one")])"#, ""),
    ("try await ann.set(Opaque())", ""),
    (#"try await ann.set(["x": Opaque(), "n": count])"#, ""),
    (
      #"_ = people.where("x", .equal, Opaque())"#,
      "instance method 'where' requires that 'Opaque' conform to 'ValueConvertible'"
    ),
    (
      #"_ = people.where("x", .equal, Person())"#,
      "instance method 'where' requires that 'Person' conform to 'ValueConvertible'"
    ),
    (
      #"_ = people.where("x", .equal, .serverTimestamp)"#,
      "instance method 'where' requires that 'FieldValue' conform to 'ValueConvertible'"
    ),
    ("_ = people.start(at: [Opaque()])", "cannot convert value of type 'Opaque' to expected element type 'Value'"),
    (#"batch.update(["x": 1], ann)"#, ""),
    ("try batch.set(Person(), at: ann)", ""),
    (#"_ = IdentityCredential("google.com", [:])"#, "'IdentityCredential' initializer is inaccessible"),
  ]

  @Test(.needs(.compiler)) func everyAcceptedFormCompiles() throws {
    // One program, because most of a check is the start of the compiler.
    let blocks = Self.accepted.map { "  do {\n    \($0)\n  }\n" }
    let (status, output) = try Compiler.check("\(Self.declarations)\(blocks.joined())  _ = batch\n}\n")
    #expect(status == 0, "\(output)")
  }

  @Test(.needs(.compiler), arguments: refused.indices)
  func aWrongFormDoesNotCompile(_ index: Int) throws {
    let (line, error) = Self.refused[index]
    let (status, output) = try Compiler.check("\(Self.declarations)  \(line)\n}\n")
    let found = output.firstMatch(of: /error: [^\n]*/).map { String($0.output) } ?? "no error"
    print("\(line) does not compile, \(found)")
    #expect(status != 0 && found.hasPrefix("error: \(error)"), "\(output)")
  }
}
