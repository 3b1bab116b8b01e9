import TestSupport

/// Requests at the limits, one at a time: the last that is allowed and the first that is rejected.
///
/// Both servers get each request on a database with `p/a`, `p/b` and `p/vector`. Codes must agree, messages need not.
struct Probes {
  let database: TestDatabase

  /// The documents that exist before every probe.
  var setUp: StepGroup {
    [
      database.clear,
      patch("p/a", #"{"fields":{"v":{"integerValue":"1"},"m":{"mapValue":{"fields":{"k":{"integerValue":"1"}}}}}}"#),
      patch("p/b", "{}"),
      patch("p/vector", #"{"fields":{"v":\#(vector(#"{"arrayValue":{"values":[{"doubleValue":1}]}}"#))}}"#),
    ]
  }

  var all: [Step] {
    values + fieldNames + sizes + documentIDs + names + masks + preconditions + transforms + json + lists + reads
      + routes
  }

  // MARK: Building

  private func patch(_ path: String, _ body: String, _ difference: KnownDifference? = nil) -> Step {
    patch(path, body, query: "", difference)
  }

  private func patch(_ path: String, _ body: String, query: String, _ difference: KnownDifference? = nil) -> Step {
    Step(method: "PATCH", target: database.url(path) + query, body: .text(body), expectedDifference: difference)
  }

  private func get(_ target: String, _ difference: KnownDifference? = nil) -> Step {
    Step(method: "GET", target: "/v1/\(database.root)\(target)", expectedDifference: difference)
  }

  private func call(_ verb: String, _ body: String, _ difference: KnownDifference? = nil) -> Step {
    call(verb, body, on: "", difference)
  }

  private func call(_ verb: String, _ body: String, on path: String, _ difference: KnownDifference? = nil) -> Step {
    // `ROOT` means the name of the database's documents.
    Step(
      method: "POST", target: database.url(path, verb: verb),
      body: .text(body.replacing("ROOT", with: database.root)), expectedDifference: difference)
  }

  private func commit(_ writes: String, _ difference: KnownDifference? = nil) -> Step {
    call("commit", #"{"writes":[\#(writes)]}"#, difference)
  }

  private func value(_ value: String, _ difference: KnownDifference? = nil) -> Step {
    patch("p/v", #"{"fields":{"x":\#(value)}}"#, difference)
  }

  // MARK: Values

  private var values: [Step] {
    let plain = [
      "null", "{}", #"{"nullValue":null}"#, #"{"nullValue":"NULL_VALUE"}"#, #"{"nullValue":"x"}"#,
      #"{"booleanValue":true}"#, #"{"booleanValue":1}"#, #"{"booleanValue":null}"#, #"{"boolean_value":true}"#,
      #"{"bogusValue":1}"#, #"{"booleanValue":true,"integerValue":1}"#,
      #"{"integerValue":1}"#, #"{"integerValue":1.0}"#, #"{"integerValue":1e3}"#, #"{"integerValue":"-0"}"#,
      #"{"integerValue":1.5}"#, #"{"integerValue":"1.5"}"#, #"{"integerValue":""}"#, #"{"integerValue":" 1"}"#,
      #"{"integerValue":"0x10"}"#, #"{"integerValue":9223372036854775807}"#, #"{"integerValue":9223372036854775808}"#,
      #"{"integerValue":"9223372036854775808"}"#, #"{"integerValue":"-9223372036854775808"}"#,
      #"{"integerValue":"-9223372036854775809"}"#, #"{"integerValue":9007199254740993}"#, #"{"integerValue":"NaN"}"#,
      #"{"integerValue":true}"#, #"{"integerValue":null}"#, #"{"integerValue":[]}"#,
      #"{"doubleValue":1}"#, #"{"doubleValue":"1"}"#, #"{"doubleValue":"NaN"}"#, #"{"doubleValue":"Infinity"}"#,
      #"{"doubleValue":"-Infinity"}"#, #"{"doubleValue":"inf"}"#, #"{"doubleValue":"nan"}"#, #"{"doubleValue":1e309}"#,
      #"{"doubleValue":"1e309"}"#, #"{"doubleValue":1e-400}"#, #"{"doubleValue":0.1000000000000000055511151231257827}"#,
      #"{"doubleValue":123456789012345680000}"#, #"{"doubleValue":1e23}"#, #"{"doubleValue":""}"#,
      #"{"doubleValue":true}"#,
      #"{"doubleValue":"abc"}"#,
      #"{"timestampValue":"2020-01-02T03:04:05"}"#,
      #"{"timestampValue":"2020-01-02"}"#,
      #"{"timestampValue":"0000-12-31T23:59:59Z"}"#, #"{"timestampValue":"10000-01-01T00:00:00Z"}"#,
      #"{"timestampValue":"0001-01-01T00:00:00+01:00"}"#, #"{"timestampValue":""}"#, #"{"timestampValue":5}"#,
      #"{"timestampValue":{"seconds":5}}"#, #"{"timestampValue":null}"#,
      #"{"stringValue":null}"#, #"{"stringValue":{}}"#, #"{"stringValue":"a\u0000b"}"#,
      #"{"stringValue":"\ud83d\ude00"}"#,
      #"{"stringValue":"\x41"}"#,
      #"{"bytesValue":"AR=="}"#, #"{"bytesValue":"A"}"#, #"{"bytesValue":"!!"}"#,
      #"{"bytesValue":"AQ==ID"}"#, #"{"bytesValue":5}"#,
      #"{"geoPointValue":{"latitude":90,"longitude":-180}}"#, #"{"geoPointValue":{"latitude":90.1}}"#,
      #"{"geoPointValue":{"longitude":-180.5}}"#, #"{"geoPointValue":{"latitude":"NaN"}}"#,
      #"{"geoPointValue":{"lat":1}}"#, #"{"geoPointValue":[1,2]}"#, #"{"geoPointValue":null}"#,
      #"{"arrayValue":{"values":null}}"#, #"{"arrayValue":null}"#, #"{"arrayValue":{"values":[{}]}}"#,
      #"{"arrayValue":{"values":[null]}}"#, #"{"arrayValue":{"values":[{"arrayValue":{}}]}}"#, #"{"arrayValue":[]}"#,
      #"{"arrayValue":{"values":[{"mapValue":{"fields":{"a":{"arrayValue":{"values":[{"integerValue":1}]}}}}}]}}"#,
      #"{"mapValue":{"fields":null}}"#, #"{"mapValue":null}"#, #"{"mapValue":{"fields":{"a":null}}}"#,
      #"{"mapValue":{"fields":{"a":{}}}}"#, #"{"mapValue":{"fields":{"":{"integerValue":1}}}}"#,
      #"{"mapValue":{"fields":{"__x__":{"integerValue":1}}}}"#, #"{"mapValue":{"fields":{"__":{"integerValue":1}}}}"#,
      #"{"mapValue":{"fields":{"___":{"integerValue":1}}}}"#,
      #"{"fieldReferenceValue":"a"}"#, #"{"functionValue":{"name":"f"}}"#, #"{"pipelineValue":{}}"#,
      #"{"mapValue":{"fields":{"__type__":{"stringValue":"other"}}}}"#,
    ].map { value($0) }
    let references = [
      "ROOT/c/a", "projects/q/databases/z/documents/c/a", "ROOT/c", "ROOT", "", "c/a", "ROOT/c/__id7__", "ROOT/c/__x__",
      "ROOT/c/.", "ROOT/c//a", "ROOT/c/a/", "ROOT/é/ü x",
    ].map { value(#"{"referenceValue":"\#($0.replacing("ROOT", with: database.root))"}"#) }
    let vectors = [
      #"{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":2.5}]}}"#,
      #"{"arrayValue":{}}"#, #"{"arrayValue":{"values":[{"doubleValue":"NaN"}]}}"#,
      #"{"arrayValue":{"values":[{"doubleValue":"Infinity"}]}}"#, #"{"integerValue":1}"#,
      #"{"arrayValue":{"values":[\#(repeated(#"{"doubleValue":1}"#, 2048))]}}"#,
      #"{"arrayValue":{"values":[\#(repeated(#"{"doubleValue":1}"#, 2049))]}}"#,
    ].map { value(vector($0)) }
    let strange = [
      value(#"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"}}}}"#),
      value(
        vector(#"{"arrayValue":{"values":[{"integerValue":1}]}}"#), .vectorOfIntegers),
      value(
        #"{"arrayValue":{"values":[\#(vector(#"{"arrayValue":{"values":[{"doubleValue":1}]}}"#))]}}"#, .vectorInArray),
      value(#"{"timestampValue":"2020-01-02 03:04:05Z"}"#, .spelling),
      value(#"{"bytesValue":"AQ="}"#, .spelling),
      value(#"{"timestampValue":"2020-01-02T03:04:05.1234567891Z"}"#, .spelling),
      value(#"{"timestampValue":"2020-02-30T00:00:00Z"}"#, .impossibleTime),
      value(#"{"timestampValue":"2020-01-01T24:00:00Z"}"#, .impossibleTime),
      value(#"{"stringValue":"\ud83d"}"#, .loneSurrogate), value(#"{"stringValue":5}"#, .scalarForString),
      value(#"{"integerValue":"+1"}"#, .scalarForString), value(#"{"integerValue":"1e3"}"#, .scalarForString),
      value(#"{"booleanValue":"true"}"#, .scalarForString), value(#"{"doubleValue":NaN}"#, .looseJSON),
      value("{\"stringValue\":\"a\nb\"}", .looseJSON), value(#"{'stringValue':'a'}"#, .looseJSON),
    ]
    let nested =
      (19...22).map { value(maps($0, around: #"{"integerValue":"1"}"#)) } + [
        value(maps(19, around: #"{"arrayValue":{"values":[{"integerValue":"1"}]}}"#)),
        value(maps(20, around: #"{"arrayValue":{"values":[{"integerValue":"1"}]}}"#)),
        value(maps(19, around: #"{"mapValue":{}}"#)), value(maps(20, around: #"{"mapValue":{}}"#)),
        value(maps(300, around: #"{"mapValue":{}}"#)),
      ]
    return plain + references + vectors + strange + nested
  }

  private func repeated(_ text: String, _ count: Int) -> String {
    Array(repeating: text, count: count).joined(separator: ",")
  }

  /// The map that encodes a vector with `value` as its components.
  private func vector(_ value: String) -> String {
    #"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":\#(value)}}}"#
  }

  private func maps(_ count: Int, around leaf: String) -> String {
    String(repeating: #"{"mapValue":{"fields":{"a":"#, count: count) + leaf + String(repeating: "}}}", count: count)
  }

  private var fieldNames: [Step] {
    [
      "", "__x__", "__name__", "a.b", "`", " ", "a/b", ".", "__", "___", String(repeating: "a", count: 1500),
      String(repeating: "a", count: 1501), String(repeating: "é", count: 750), String(repeating: "é", count: 751),
    ].map { name in
      let body: JSONNode = ["fields": .object([.init(name, ["integerValue": "1"])])]
      return patch("p/f", body.text)
    }
  }

  private var sizes: [Step] {
    func document(_ count: Int) -> String {
      // The names of documents and fields count as well, and 32 bytes for each document: "p/s" is 2 + 2 + 16.
      let parts = [500_000, count - 500_000 - 20 - 32 - 2 * 3]
      let fields = parts.enumerated().map { index, length in
        #""\#(index)":{"stringValue":"\#(String(repeating: "x", count: length))"}"#
      }
      return #"{"fields":{\#(fields.joined(separator: ","))}}"#
    }
    return [1_048_487, 1_048_488].map { count in
      value(#"{"stringValue":"\#(String(repeating: "x", count: count))"}"#)
    } + [
      patch("p/s", document(1_000_000)), patch("p/s", document(1_048_577)), patch("p/s", document(1_060_000)),
      commit((0..<501).map { #"{"update":{"name":"ROOT/many/\#($0)"}}"# }.joined(separator: ",")),
    ]
  }

  // MARK: Names

  private var documentIDs: [Step] {
    let plain = [
      ".", "..", "__x__", "__id7__", "__id-7__", "__id07__", "__id+7__", "__id__", "__id1_",
      "__id9223372036854775808__",
      "__id-9223372036854775808__", "a/b", "a b", "é", String(repeating: "x", count: 1500),
      String(repeating: "x", count: 1501), "p", "p",
    ]
    let created = plain.map { id in
      Step(method: "POST", target: database.url("p") + queryString([("documentId", id)]), body: .text("{}"))
    }
    let patched = plain.filter { !$0.contains("/") }.map { patch("p/\($0)", "{}") }
    let collections = [
      "__x__", ".", "..", "a b", String(repeating: "k", count: 1500), String(repeating: "k", count: 1501),
    ].map {
      Step(method: "POST", target: database.url($0) + "?documentId=d", body: .text("{}"))
    }
    return created + patched + collections + [
      patch("p/__id0__", "{}", .numericIDZero),
      // In a POST, only the text after the last colon is a verb.
      patch("p/a:commit", "{}"), get("/p/a:commit"), Step(method: "DELETE", target: "/v1/\(database.root)/p/a:commit"),
      Step(method: "POST", target: database.url("p/x/s") + "?documentId=d", body: .text("{}")),
      Step(method: "POST", target: database.url("p/__x__/s") + "?documentId=d", body: .text("{}")),
      Step(
        method: "POST", target: database.url("p") + "?documentId=n",
        body: .text(#"{"name":"\#(database.name("p/n"))"}"#)),
      patch((0..<100).map { _ in "c/d" }.joined(separator: "/"), "{}"),
      patch((0..<101).map { _ in "c/d" }.joined(separator: "/"), "{}"),
    ]
  }

  private var names: [Step] {
    let bad = [
      "bad", "projects/p", "projects/p/databases/(default)", "ROOT", "ROOT/c", "ROOT/c/a/", "/ROOT/c/a", "ROOT/c/..",
      "ROOT/../a", "ROOT/__x__/a", "ROOT/c/__x__", "ROOT/c//a", "projects/p/databases//documents/c/a",
      "projects//databases/(default)/documents/c/a", "x/p/databases/(default)/documents/c/a", "",
    ]
    return bad.flatMap { name in
      [
        commit(#"{"update":{"name":"\#(name)"}}"#), commit(#"{"delete":"\#(name)"}"#),
        call("batchGet", #"{"documents":["\#(name)"]}"#),
      ]
    } + [
      commit(#"{"update":{"name":"ROOT/c/a%2Fb"}}"#), commit(#"{"update":{"name":"ROOT/c/a b"}}"#),
      commit(#"{"update":{"name":"projects/q/databases/(default)/documents/c/a"}}"#, .otherDatabase),
      commit(#"{"delete":"projects/p/databases/other/documents/c/a"}"#, .otherDatabase),
      call("batchGet", #"{"documents":["projects/q/databases/(default)/documents/c/a"]}"#, .otherDatabase),
      patch("p", "{}"), Step(method: "DELETE", target: database.url("p")), get("/p/"), get("//p"), get("/p//a"),
      Step(method: "POST", target: database.url("p/a"), body: .text("{}")),
    ]
  }

  // MARK: Writes

  private var masks: [Step] {
    let map = #"{"mapValue":{"fields":{"k":{"integerValue":"2"},"l":{"integerValue":"3"}}}}"#
    let body = #"{"fields":{"m":\#(map),"w":{"integerValue":"4"}}}"#
    let paths = [
      "m.k", "m", "w", "v", "v.x", "m.z.y", "", "a..b", "`a", "1a", "``", "*", "a.", ".a", "p q", "`p q`", "__x__", "é",
      "a-b", "m.k.z",
    ]
    return paths.map { patch("p/a", body, query: queryString([("updateMask.fieldPaths", $0)])) }
      + paths.map { patch("p/a", body, query: queryString([("mask.fieldPaths", $0)])) }
      + paths.map { get("/p/a" + queryString([("mask.fieldPaths", $0)])) }
      + [
        patch("p/a", body, query: "?updateMask.fieldPaths=m&updateMask.fieldPaths=m.k"),
        patch("p/a", body, query: "?updateMask.fieldPaths=m.k&updateMask.fieldPaths=m"),
        patch("p/a", body, query: "?update_mask.field_paths=w"),
        patch("p/a", body, query: "?updateMask.fieldPaths=__name__", .nameInUpdateMask),
        commit(#"{"update":{"name":"ROOT/p/a","fields":{"w":{"integerValue":"5"}}},"updateMask":{}}"#),
        commit(#"{"update":{"name":"ROOT/p/a","fields":{"w":{"integerValue":"5"}}},"updateMask":null}"#),
        commit(#"{"update":{"name":"ROOT/p/a"},"updateMask":"w"}"#),
        commit(#"{"update":{"name":"ROOT/p/a"},"updateMask":{"fieldPaths":"w"}}"#),
        commit(
          #"{"update":{"name":"ROOT/p/a","fields":{"w":{"integer_value":"1"}}},"update_mask":{"field_paths":["w"]}}"#),
        commit(#"{"update":{"name":"ROOT/p/e"},"updateMask":{"fieldPaths":[]}}"#), get("/p/e"),
        commit(#"{"delete":"ROOT/p/a","updateMask":{"fieldPaths":["x"]}}"#),
        // A vector is one value, not a map with parts.
        patch(
          "p/vector", #"{"fields":{"v":{"mapValue":{"fields":{"x":{"integerValue":1}}}}}}"#,
          query: "?updateMask.fieldPaths=v.x"),
        patch("p/vector", "{}", query: "?updateMask.fieldPaths=v.value"), get("/p/vector?mask.fieldPaths=v.value"),
        get("/p?orderBy=v.value"),
        commit(#"{"delete":"ROOT/p/a","updateMask":{}}"#),
      ]
  }

  private var preconditions: [Step] {
    let update = #"{"update":{"name":"ROOT/p/a","fields":{}},"currentDocument":"#
    let missing = #"{"update":{"name":"ROOT/p/none","fields":{}},"currentDocument":"#
    let conditions = [
      #"{"exists":true}"#, #"{"exists":false}"#, "{}", "null", #"{"exists":null}"#, #"{"exists":1}"#,
      #"{"exists":"x"}"#,
      #"{"updateTime":"2020-01-01T00:00:00Z"}"#, #"{"updateTime":"2020-01-01T00:00:00.0000001Z"}"#,
      #"{"updateTime":"junk"}"#,
      #"{"updateTime":1}"#, #"{"exists":true,"updateTime":"2020-01-01T00:00:00Z"}"#, #"{"bogus":1}"#, "5",
    ]
    return conditions.map { commit(update + $0 + "}") } + conditions.map { commit(missing + $0 + "}") } + [
      commit(#"{"delete":"ROOT/p/none","currentDocument":{"exists":true}}"#),
      commit(#"{"delete":"ROOT/p/none","currentDocument":{"exists":false}}"#),
      commit(#"{"delete":"ROOT/p/b","currentDocument":{"exists":false}}"#),
      commit(#"{"delete":"ROOT/p/none"}"#),
      commit(#"{"verify":"ROOT/p/a","currentDocument":{"exists":true}}"#),
      commit(#"{"verify":"ROOT/p/a","currentDocument":{"exists":false}}"#),
      commit(#"{"verify":"ROOT/p/none","currentDocument":{"exists":true}}"#),
      commit(#"{"verify":"ROOT/p/a","currentDocument":{"exists":true},"updateMask":{"fieldPaths":["x"]}}"#),
      commit(#"{"verify":"ROOT/p/a"}"#, .verify),
      commit(#"{"update":{"name":"ROOT/p/a"}},{"verify":"ROOT/p/a","currentDocument":{"exists":true}}"#, .verify),
      // A commit has no effect if one of its writes fails.
      commit(
        #"{"update":{"name":"ROOT/p/first"}},{"update":{"name":"ROOT/p/none"},"currentDocument":{"exists":true}}"#),
      get("/p/first"),
    ]
  }

  private var transforms: [Step] {
    func transform(_ transforms: String, more: String = "", _ difference: KnownDifference? = nil) -> Step {
      commit(#"{"transform":{"document":"ROOT/p/a","fieldTransforms":[\#(transforms)]}\#(more)}"#, difference)
    }
    let times = (0..<501).map { #"{"fieldPath":"f\#($0)","setToServerValue":"REQUEST_TIME"}"# }
    return [
      transform(""), transform(#"{"fieldPath":"x"}"#),
      transform(#"{"fieldPath":"","setToServerValue":"REQUEST_TIME"}"#),
      transform(#"{"fieldPath":"a..b","increment":{"integerValue":1}}"#),
      transform(#"{"fieldPath":"__x__","increment":{"integerValue":1}}"#),
      transform(#"{"fieldPath":"x","increment":{"stringValue":"a"}}"#), transform(#"{"fieldPath":"x","increment":{}}"#),
      transform(#"{"fieldPath":"x","maximum":{"stringValue":"a"}}"#),
      transform(#"{"fieldPath":"x","minimum":{"nullValue":null}}"#),
      transform(#"{"fieldPath":"x","setToServerValue":"BOGUS"}"#),
      transform(#"{"fieldPath":"x","setToServerValue":"SERVER_VALUE_UNSPECIFIED"}"#),
      transform(#"{"fieldPath":"now","setToServerValue":1}"#),
      transform(#"{"fieldPath":"x","increment":{"integerValue":1},"maximum":{"integerValue":2}}"#),
      transform(#"{"fieldPath":"x","increment":{"integerValue":1}}"#, more: #","updateMask":{"fieldPaths":["x"]}"#),
      transform(
        #"{"fieldPath":"a","increment":{"integerValue":1}},{"fieldPath":"a.b","increment":{"integerValue":1}}"#),
      transform(
        #"{"fieldPath":"x","appendMissingElements":{"values":[{"arrayValue":{"values":[{"integerValue":1}]}}]}}"#,
        .nestedArrayOperand),
      transform(times.dropLast().joined(separator: ",")),
      transform(times.joined(separator: ","), .tooManyTransforms),
      commit(#"{"delete":"ROOT/p/a","updateTransforms":[{"fieldPath":"x","increment":{"integerValue":1}}]}"#),
      commit(#"{"transform":{"fieldTransforms":[]}}"#), commit("{}"), commit("null"), commit(#"{"update":null}"#),
      commit(#"{"delete":""}"#), commit(#"{"update":{"name":"ROOT/p/a"},"delete":"ROOT/p/a"}"#),
    ]
  }

  // MARK: Requests

  private var json: [Step] {
    let bodies = [
      "", "{}", "[]", "null", "{", #"{"writes":null}"#, #"{"writes":{}}"#, #"{"writes":[],}"#, #"{"bogus":1}"#, "5",
      "\"x\"",
      " \n{}\n ", #"{"writes":[]"#, "{\"writes\":[\u{1}]}",
    ]
    return bodies.map { call("commit", $0) } + [
      call("commit", "{\"writes\":[]}}", .looseJSON), call("commit", "{'writes':[]}", .looseJSON),
      call("commit", "{writes:[]}", .looseJSON), call("commit", #"{"writes":[] /*x*/}"#, .looseJSON),
      patch("p/j", #"{"bogus":1}"#), patch("p/j", #"{"fields":{},"updateTime":"junk"}"#, .timesInRequest),
      patch("p/j", #"{"fields":{},"createTime":"2020-01-01T00:00:00Z"}"#), patch("p/j", #"{"fields":[]}"#),
      patch("p/j", ""),
      call("batchWrite", ""), call("batchWrite", #"{"writes":[{}]}"#),
      call("batchWrite", #"{"writes":[{"update":{"name":"ROOT/p/w"}},{"update":{"name":"ROOT/p/__x__"}}]}"#),
      get("/p/w"),
      call("batchWrite", #"{"writes":[{"update":{"name":"ROOT/p/w"}},{"delete":"ROOT/p/w"}]}"#),
      call("batchWrite", #"{"writes":[{"update":{"name":"ROOT/p/w","fields":{"x":{}}}}]}"#),
      call("batchWrite", #"{"writes":[],"labels":{"a":"b"}}"#),
      call("batchWrite", #"{"writes":[],"transaction":"AA=="}"#),
    ]
  }

  private var lists: [Step] {
    [
      get("/none"), get("/p?pageSize=-1"), get("/p?pageSize=0"), get("/p?pageToken=zzzz"), get("/p?pageToken="),
      get("/p?orderBy=v%20sideways"), get("/p?orderBy=,"), get("/p?orderBy=v,"), get("/p?orderBy=v%20desc%20desc"),
      get("/p?orderBy=a..b"), get("/p?orderBy=1a"), get("/p?orderBy=v,v"), get("/p?orderBy=__x__"), get("/p?orderBy="),
      get("/p?orderBy=v%20DESC"), get("/p?orderBy=v%20%20desc"), get("/p?orderBy=__name__"),
      get("/p?orderBy=__name__,v"),
      get("/p?orderBy=__name__%20desc", .descendingNames), get("/p?orderBy=v&showMissing=true"),
      get("/p?mask.fieldPaths=a..b"), get("/__x__"), get("/p?showMissing=maybe", .malformedParameter),
      get("/p?bogus=1", .unknownParameter), get("/p?key=k&alt=json&prettyPrint=true&%24.xgafv=2"),
      call("listCollectionIds", ""), call("listCollectionIds", #"{"pageSize":-1}"#),
      call("listCollectionIds", #"{"pageSize":"1"}"#),
      call("listCollectionIds", #"{"pageSize":"x"}"#), call("listCollectionIds", #"{"pageToken":"zz"}"#),
      call("listCollectionIds", #"{"bogus":1}"#), call("listCollectionIds", #"{"pageSize":2147483647}"#),
      call("listCollectionIds", "{}", on: "p"), call("listCollectionIds", "{}", on: "p/none"),
      call("listCollectionIds", #"{"readTime":"2099-01-01T00:00:00Z"}"#),
      call("listCollectionIds", #"{"readTime":"2020-01-01T00:00:00Z"}"#, .timeBeforeDatabase),
    ]
  }

  private var reads: [Step] {
    let documents = #"{"documents":["ROOT/p/a","ROOT/p/none","ROOT/p/a"]"#
    let members = [
      "", #","mask":{}"#, #","mask":{"fieldPaths":["__name__"]}"#, #","mask":{"fieldPaths":["a..b"]}"#,
      #","mask":null"#,
      #","readTime":"2099-01-01T00:00:00Z""#,
      #","readTime":"2020-01-01T00:00:00.0000001Z""#, #","readTime":"junk""#, #","readTime":null"#,
      #","transaction":"AAAA""#,
      #","transaction":"!""#, #","newTransaction":{}"#, #","newTransaction":{"readOnly":{}}"#,
      #","newTransaction":null"#,
      #","newTransaction":{"readOnly":{}},"transaction":"AA==""#, #","bogus":1"#,
    ]
    return members.map { call("batchGet", documents + $0 + "}") } + [
      call("batchGet", ""), call("batchGet", #"{"documents":[]}"#),
      call("batchGet", #"{"documents":[],"newTransaction":{}}"#),
      call("batchGet", #"{"documents":"x"}"#), call("batchGet", #"{"documents":[null]}"#),
      call("beginTransaction", ""), call("beginTransaction", #"{"options":{"readOnly":{},"readWrite":{}}}"#),
      call("beginTransaction", #"{"options":{"readOnly":{"readTime":"2099-01-01T00:00:00Z"}}}"#),
      call("beginTransaction", #"{"options":{"readOnly":{"readTime":"2020-01-01T00:00:00Z"}}}"#, .timeBeforeDatabase),
      call("batchGet", #"{"documents":["ROOT/p/a"],"readTime":"2020-01-01T00:00:00Z"}"#, .timeBeforeDatabase),
      call("beginTransaction", #"{"options":{"readWrite":{"bogus":1}}}"#), call("beginTransaction", #"{"options":5}"#),
      call("rollback", #"{"transaction":"AAAA"}"#), call("rollback", "{}"), call("rollback", #"{"transaction":"!!"}"#),
      call("commit", #"{"transaction":"AAAA"}"#), call("commit", #"{"transaction":""}"#),
      call("commit", #"{"transaction":"!!"}"#),
    ]
  }

  private var routes: [Step] {
    [
      Step(method: "GET", target: "/x"),
      Step(method: "GET", target: "/v1"),
      Step(method: "PUT", target: database.url("p/a"), body: .text("{}")),
      Step(method: "GET", target: database.url("", verb: "commit")),
      Step(method: "POST", target: database.url("", verb: "bogus"), body: .text("{}")),
      Step(method: "GET", target: "/emulator/v1/\(database.root)"),
      Step(method: "GET", target: database.url("p/a").replacing("(default)", with: "%28default%29")),
    ]
  }
}
