import GatewayCore
import Testing

/// The parameters in a URL.
@Suite struct QueryParametersTests {
  private static func parse(_ text: String) throws -> QueryParameters {
    try Array(text.utf8).withUnsafeBytes { try QueryParameters($0) }
  }

  @Test(
    arguments: [
      ("", []), ("a=1", ["a=1"]), ("a=1&b=2", ["a=1", "b=2"]), ("&&a=1&", ["a=1"]), ("a", ["a="]), ("a=", ["a="]),
      ("=1", ["=1"]), ("a=b=c", ["a=b=c"]), ("a=1&a=2", ["a=1", "a=2"]), ("mask.field_paths=x", ["mask.fieldPaths=x"]),
      ("a=%C3%A4+b", ["a=ä b"]), ("%61%3D=%26", ["a==&"]),
    ] as [(String, [String])])
  func readsNamesAndValues(text: String, parameters: [String]) throws {
    #expect(try Self.parse(text).all.map { "\($0.name)=\($0.value)" } == parameters)
  }

  @Test(arguments: ["a=%", "a=%4", "%zz=1", "a=%FF", "a=%C3"])
  func refusesMalformedEncoding(text: String) {
    #expect(throws: (any Error).self) { try Self.parse(text) }
  }

  @Test func findsValuesByName() throws {
    let parameters = try Self.parse("prettyPrint=false&mask=1&masks=2&mask=3&key=k")
    #expect(!parameters.wantsPrettyPrint)
    #expect(parameters.value("mask") == "3")
    #expect(parameters.values("mask") == ["1", "3"])
    #expect(parameters.value("mas") == nil)
    #expect(parameters.only("masks", "key").all.map(\.value) == ["2", "k"])
    #expect(throws: (any Error).self) { try parameters.allowOnly("mask") }
    try parameters.allowOnly("mask", "masks")
  }
}
