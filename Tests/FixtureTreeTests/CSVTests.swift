import DocumentModel
import Testing
import TestSupport
import WireFormat
@testable import FixtureTree

@Suite struct CSVTests {
  private func read(
    _ text: String, name: String = "x.csv", collection: String? = "users", chunkBytesMax: Int = .max,
    _ change: (inout ReadOptions) -> Void = { _ in }
  ) throws -> [String] {
    try RecordsReaderTests.read(text, name: name, collection: collection, chunkBytesMax: chunkBytesMax, change).lines
  }

  static let accepted: [(text: String, lines: [String])] = [
    ("id,name\na,Ann\nb,\n", [#"users/a {id: "a", name: "Ann"}"#, #"users/b {id: "b"}"#]),
    ("\u{FEFF}id,name\r\na,\"Ann, \"\"A\"\"\r\nB\"\r\n", [#"users/a {id: "a", name: "Ann, \"A\"\r\nB"}"#]),
    ("id,a,b\rx,\"\",\r\r", [#"users/x {a: "", id: "x"}"#]),
    ("id,x\n\na,5\" wide\n\n\nb,é", [#"users/a {id: "a", x: "5\" wide"}"#, #"users/b {id: "b", x: "é"}"#]),
    ("__id__,n:int\na,\nb,\"\"\nc,-5", ["users/a {}", "users/b {}", "users/c {n: -5}"]),
    (
      "_id,d:double,n:number,b:bool,t:timestamp,u:date,y:bytes,r:ref,g:geo,j:json,s:string,k:no\n"
        + "a,1,2,TRUE,2025-01-01T00:00:00.5Z,2025-03-27,AAE=,c/d,\"45.5, -9\",\"{\"\"$double\"\": 1}\",7,x\n"
        + "b,NaN,2.5,false,,,,projects/p/databases/d/documents/c/d,,null,,\n",
      [
        #"users/a {_id: "a", b: true, d: double(1.0), g: geo(45.5, -9.0), j: double(1.0), k:no: "x", n: 2, "#
          + #"r: ref(projects/demo/databases/(default)/documents/c/d), s: "7", t: time(2025-01-01T00:00:00.500Z), "#
          + #"u: time(2025-03-27T00:00:00Z), y: bytes([0, 1])}"#,
        #"users/b {_id: "b", b: false, d: double(nan), j: null, n: double(2.5), "#
          + "r: ref(projects/p/databases/d/documents/c/d)}",
      ]
    ),
    ("id:int,a:b:int\n7,1\n", ["users/7 {a:b: 1, id: 7}"]),
  ]

  @Test(arguments: accepted.indices)
  func readsRows(index: Int) throws {
    let (text, lines) = Self.accepted[index]
    #expect(try read(text) == lines)
    #expect(try read(text, chunkBytesMax: 1) == lines)
  }

  @Test func pathsAndOptionsChooseTheDocuments() throws {
    #expect(try read("__path__,n:int\na/b/c/d,1\n", collection: nil) == ["a/b/c/d {n: 1}"])
    #expect(try read("id,mail\n1,x\n") { $0.idMember = "mail" } == [#"users/x {id: "1", mail: "x"}"#])
    #expect(
      try read("id;mail\n1;x\n") {
        $0.delimiter = UInt8(ascii: ";")
        $0.dropsIDMember = true
      } == [#"users/1 {mail: "x"}"#])
    #expect(try read("id\tn\n1\t2,3\n", name: "x.tsv") == [#"users/1 {id: "1", n: "2,3"}"#])
    #expect(try read("n\n1\n")[0].contains(#/^users/[A-Za-z0-9]{20} \{n: "1"\}$/#))
    #expect(try read("id,n\n1,1\n") { $0.generatesIDs = true }[0].hasSuffix(#" {id: "1", n: "1"}"#))
  }

  @Test func infersTheNarrowestTypeOfAColumn() throws {
    let text = """
      id,i,n,b,t,zip,mixed,none,typed:string
      a,1,1,true,2025-01-01T00:00:00Z,00123,1,,1
      b,-2,2.5,FALSE,2025-01-02T00:00:00+02:00,10001,x,,2
      c,,,,,,,,
      """
    #expect(
      try read(text) { $0.infersTypes = true } == [
        #"users/a {b: true, i: 1, id: "a", mixed: "1", n: 1, t: time(2025-01-01T00:00:00Z), typed: "1", zip: "00123"}"#,
        #"users/b {b: false, i: -2, id: "b", mixed: "x", n: double(2.5), t: time(2025-01-01T22:00:00Z), typed: "2", "#
          + #"zip: "10001"}"#,
        #"users/c {id: "c"}"#,
      ])
  }

  @Test func datesAreInferred() throws {
    #expect(
      try read("id,d,y\na,2025-03-27,2025\nb,2025-03-27T14:30:00Z,2024\n") { $0.infersTypes = true } == [
        #"users/a {d: time(2025-03-27T00:00:00Z), id: "a", y: 2025}"#,
        #"users/b {d: time(2025-03-27T14:30:00Z), id: "b", y: 2024}"#,
      ])
  }

  @Test(
    arguments: [
      ("id;n\r\na;1,5\r\n", ";"), ("\n\"id\"\tn\na\t1,5\n", "\t"), ("\u{FEFF}\"id\";n\na;\"1,5\"\n", ";"),
    ])
  func theHeaderShowsTheDelimiter(text: String, delimiter: Character) throws {
    let found = try RecordsReaderTests.read(text, name: "x.csv")
    #expect(found.lines == [#"users/a {id: "a", n: "1,5"}"#])
    #expect(found.tally.foundDelimiter == delimiter.asciiValue)
    #expect(try RecordsReaderTests.read(text, name: "x.csv", chunkBytesMax: 1).lines == found.lines)
  }

  @Test(
    arguments: [
      ("id|n\na|1,5\n", nil, "n", "1,5"), ("id;full, name\na;Ann\n", true, "full, name", "Ann"),
      ("id|a;b,c\na|x\n", true, "a;b,c", "x"), ("id\tn|m\na\t1\n", nil, "n|m", "1"),
      ("\"x\n|\"|n\n\"\n\"|1\n", nil, "n", "1"),
    ] as [(String, Bool?, String, String)])
  func theFirstRowShowsTheDelimiter(text: String, hasComma: Bool?, field: String, value: String) throws {
    let found = try RecordsReaderTests.read(text, name: "x.csv")
    #expect(found.lines.count == 1 && found.lines[0].contains("\(field): \"\(value)\""), "\(found.lines)")
    #expect(found.tally.foundDelimiter != nil && found.tally.headerHasComma == (hasComma ?? false))
  }

  @Test func commasAreTheDelimiterOfOtherHeaders() throws {
    let found = try RecordsReaderTests.read("id,\"a;b\",c;d\nx,1,2\n", name: "x.csv")
    #expect(found.lines == [#"users/x {a;b: "1", c;d: "2", id: "x"}"#] && found.tally.foundDelimiter == nil)
    #expect(try read("\"a;b\"\n1\n").count == 1)
  }

  static let refused: [(text: String, collection: String?, error: String)] = [
    ("", "users", "x.csv:1:1: the file is empty; its first row must name the columns"),
    (
      "a;b\tc\n1;2\t3\n", "users",
      "x.csv:1:1: the header has no comma, but semicolons and tabs; name the character between cells with --delimiter"
    ),
    (
      "a;b,c\n1;2,3\n", "users",
      "x.csv:1:1: the header has commas and semicolons; name the character between cells with --delimiter"
    ),
    ("id,n\n1\n", nil, "x.csv:1:1: the rows have no paths; name the collection that they are for: --collection users"),
    (
      "id,n\n1\n", "users",
      "x.csv:2:1: the row has 1 cell, but the header names 2; a cell with the delimiter or a line break needs quotes"
    ),
    ("id,,n\n", "users", "x.csv:1:4: column 2 has no name"),
    ("id,n,n\n", "users", "x.csv:1:6: two columns have the name \"n\"; rename one"),
    (
      "id,n:int\na,1\nb,1.5\n", "users",
      "x.csv:3:3: users/b: field \"n\": \"1.5\" is not a whole number of 64 bits, as the column's type \"int\" demands; "
        + "correct the cell, or name another type in the header (string, int, double, number, bool, timestamp, bytes, "
        + "ref, geo, json)"
    ),
    (
      "id,x\na,\"b\nc\n", "users", "x.csv:2:3: the cell's closing quote is missing; the file may be cut short"
    ),
    (
      "id,x\na,\"b\"c\n", "users",
      "x.csv:2:3: after the closing quote of a cell, the delimiter or a line break must follow; write a quote in a cell "
        + "twice"
    ),
    (
      "id,j:json\na,{\n", "users",
      "x.csv:2:3: users/a: field \"j\": the text ends too early; the file may be cut short"
    ),
    (
      "id\na\n\"a\"\n", "users",
      "x.csv:3:1: users/a: two records have the ID \"a\", the first on line 2; name another one with --id, or give "
        + "--generate-ids"
    ),
    ("id\n\"\"\n", "users", "x.csv:2:1: users: the ID is empty; name another one with --id, or give --generate-ids"),
    ("__path__\na\n", nil, "x.csv:2:1: \"a\" is not the path of a document"),
    ("__path__\na/b\n", "users", "x.csv:1:1: the column \"__path__\" names the documents; leave out --collection"),
  ]

  @Test(arguments: refused.indices)
  func refusesWithPlaceAndRemedy(index: Int) {
    let (text, collection, expected) = Self.refused[index]
    let error = #expect(throws: FixtureTreeError.self) { try read(text, collection: collection) }
    #expect(error?.description == expected)
  }

  @Test func otherEncodingsAreNamed() throws {
    let texts: [([UInt8], String)] = [
      ([0x69, 0x64, 0x0A, 0xE9], "not valid UTF-8"), ([0xFF, 0xFE, 0x69, 0x00], "UTF-16"),
    ]
    for (bytes, message) in texts {
      var options = ReadOptions()
      options.collection = try ResourcePath("users")
      let error = #expect(throws: FixtureTreeError.self) {
        var reader = try FixtureReader(ByteSource(bytes, name: "x.csv"), database: demo, options: options)
        while try reader.next() != nil {}
      }
      #expect(error?.message.contains(message) == true, "\(String(describing: error))")
    }
  }

  // MARK: Written files

  /// Writes documents in a format.
  private func write(_ documents: [FixtureDocument], _ format: DocumentFileWriter.Format) throws -> [UInt8] {
    var writer = try DocumentFileWriter(format, database: demo, below: try ResourcePath("c"), patterns: ["c"])
    var bytes: [UInt8] = []
    for document in documents.sorted(by: { $0.key < $1.key }) {
      try writer.add(document.key, document.fields) { bytes += $0 }
    }
    try writer.finish { bytes += $0 }
    #expect(writer.count == documents.count)
    return bytes
  }

  @Test func headersNameTypes() throws {
    let tree = """
      {"$collections": ["c", "c/*/d"], "c": {
        "1": {"a": "x,\\"y\\"", "b": 1, "c:d": "", "e": {"$double": 1}, "f": null, "g": {"$geo": [1.5, 2]}, "h": 1},
        "2": {"a": "", "d": {"9": {}}, "f": [1, {"$ref": "c/1"}], "h": "x", "t": {"$timestamp": "2025-01-01T00:00:00Z"}}}}
      """
    var writer = try DocumentFileWriter(.csv, database: demo, below: try ResourcePath("c"), patterns: [])
    var bytes: [UInt8] = []
    for document in try documents(tree).sorted(by: { $0.key < $1.key }) {
      try writer.add(document.key, document.fields) { bytes += $0 }
    }
    try writer.finish { bytes += $0 }
    #expect(writer.count == 2 && writer.skipped == 1)
    #expect(
      String(decoding: bytes, as: UTF8.self) == """
        __id__,a,b:int,c:d:string,e:double,f:json,g:geo,h:json,t:timestamp
        1,"x,""y""\",1,"",1.0,null,"1.5,2.0",1,
        2,"",,,,"[1, {""$ref"": ""c/1""}]",,\"""x""\",2025-01-01T00:00:00Z

        """)
  }

  @Test(arguments: 0..<12)
  func documentsSurviveEveryFormat(seed: Int) throws {
    var random = SplitMix(seed: UInt64(seed))
    var options = ReadOptions()
    for format in DocumentFileWriter.Format.allCases {
      options.collection = format == .csv ? try ResourcePath("c") : nil
      var written: [FixtureDocument] = []
      for index in 0..<20 {
        let key = DocumentKey(try ResourcePath("c/d\(index)"))!
        written.append(FixtureDocument(key: key, fields: EncodedFields(random.fixtureMap(depth: 0)), line: 0))
      }
      let bytes = try write(written, format)
      var reader = try FixtureReader(
        ByteSource(bytes, chunkBytesMax: 100, name: "x.\(format == .tree ? "json" : format.rawValue)"), database: demo,
        options: options)
      var read: [DocumentKey: EncodedFields] = [:]
      while let document = try reader.next() { read[document.key] = document.fields }
      #expect(read.count == written.count)
      for document in written { #expect(read[document.key] == document.fields, "seed \(seed), \(format)") }
      #expect(try write(read.map { FixtureDocument(key: $0.key, fields: $0.value, line: 0) }, format) == bytes)
    }
  }

  @Test func tooManyFieldsForATableAreReported() throws {
    var writer = try DocumentFileWriter(.csv, database: demo, below: try ResourcePath("c"), patterns: [])
    let error = #expect(throws: FixtureTreeError.self) {
      for index in 0..<CSVLimits.columnsMax {
        let tree = #"{"$collections": ["c"], "c": {"\#(index)": {"f\#(index)": 1}}}"#
        let document = try #require(try documents(tree).first)
        try writer.add(document.key, document.fields) { _ in }
      }
    }
    #expect(error?.message.contains("--format ndjson") == true)
  }
}
