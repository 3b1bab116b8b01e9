/// Request messages, serialized by the protobuf classes of Google's Python client, and as JSON.
enum GoldenMessages {
  /// A message: its type, its bytes in hexadecimal, and its JSON.
  typealias Row = (kind: Kind, hex: String, json: String)

  enum Kind {
    case write, query, aggregation, options
  }

  static let rows: [Row] = [
    (
      .write,
      "0a96030a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412070a"
        + "016212020800120e0a0164120919000000000000e0bf12080a016512038a010012190a016712144212090000000000c046401100"
        + "000000008022c012100a0169120b108080808080808080800112180a016c12134a110a0210010a0b32090a070a016b12024a0012"
        + "140a016d120f320d0a0b0a05696e6e65721202320012100a036e616e120919000000000000f87f12070a016e1202580012140a03"
        + "6f6c64120d520b088092b8c398feffffff0112330a0172122e2a2c70726f6a656374732f702f6461746162617365732f28646566"
        + "61756c74292f646f63756d656e74732f612f6212100a0173120b8a010868c3a920f09f988012120a0174120d520b08e8c195bf06"
        + "108094ef3a12450a01761240323e0a190a085f5f747970655f5f120d8a010a5f5f766563746f725f5f0a210a0576616c75651218"
        + "4a160a0919000000000000f03f0a09190000000000000440120a0a0179120592010200ff12070a017a12021000",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"n":{"nullValue":null},"b":{""#
        + #"booleanValue":false},"i":{"integerValue":"-9223372036854775808"},"z":{"integerValue":"0"},"d":{"doubleVa"#
        + #"lue":-0.5},"nan":{"doubleValue":"NaN"},"t":{"timestampValue":"2025-03-27T14:30:00.123456Z"},"old":{"time"#
        + #"stampValue":"0001-01-01T00:00:00Z"},"s":{"stringValue":"h\u00e9 \ud83d\ude00"},"e":{"stringValue":""},"y"#
        + #"":{"bytesValue":"AP8="},"r":{"referenceValue":"projects/p/databases/(default)/documents/a/b"},"g":{"geoP"#
        + #"ointValue":{"latitude":45.5,"longitude":-9.25}},"l":{"arrayValue":{"values":[{"integerValue":"1"},{"mapV"#
        + #"alue":{"fields":{"k":{"arrayValue":{}}}}}]}},"m":{"mapValue":{"fields":{"inner":{"mapValue":{}}}}},"v":{"#
        + #""mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":{"arrayValue":{"values":[{"doubleV"#
        + #"alue":1},{"doubleValue":2.5}]}}}}}}}}"#
    ),
    (
      .write,
      "0a370a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412070a01"
        + "61120210011a0c0a01610a0760622063602e6422020801",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"integerValue":"1"}}},"u"#
        + #"pdateMask":{"fieldPaths":["a","`b c`.d"]},"currentDocument":{"exists":true}}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f641a00",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateMask":{}}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f641a003a05"
        + "0a017410013a070a016e1a0210023a0e0a0178220919000000000000f83f3a100a01792a0b10fdffffffffffffffff013a0f0a01"
        + "6c320a0a0258000a048a0101613a050a016b3a00",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateMask":{},"updateTra"#
        + #"nsforms":[{"fieldPath":"t","setToServerValue":"REQUEST_TIME"},{"fieldPath":"n","increment":{"integerValu"#
        + #"e":"2"}},{"fieldPath":"x","maximum":{"doubleValue":1.5}},{"fieldPath":"y","minimum":{"integerValue":"-3""#
        + #"}},{"fieldPath":"l","appendMissingElements":{"values":[{"nullValue":null},{"stringValue":"a"}]}},{"field"#
        + #"Path":"k","removeAllFromArray":{}}]}"#
    ),
    (
      .write,
      "122c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64",
      #"{"delete":"projects/p/databases/(default)/documents/c/d"}"#
    ),
    (
      .write,
      "122c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64220b120908e8"
        + "c195bf0610e807",
      #"{"delete":"projects/p/databases/(default)/documents/c/d","currentDocument":{"updateTime":"2025-03-27T14:"#
        + #"30:00.000001Z"}}"#
    ),
    (
      .write,
      "122c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6422020800",
      #"{"delete":"projects/p/databases/(default)/documents/c/d","currentDocument":{"exists":false}}"#
    ),
    (
      .write,
      "32350a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412050a01"
        + "741001",
      #"{"transform":{"document":"projects/p/databases/(default)/documents/c/d","fieldTransforms":[{"fieldPath":"#
        + #""t","setToServerValue":"REQUEST_TIME"}]}}"#
    ),
    (
      .write,
      "",
      #"{}"#
    ),
    (
      .write,
      "1203626164",
      #"{"delete":"bad"}"#
    ),
    (
      .write,
      "122a70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f63",
      #"{"delete":"projects/p/databases/(default)/documents/c"}"#
    ),
    (
      .write,
      "122c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f641a030a0161",
      #"{"delete":"projects/p/databases/(default)/documents/c/d","updateMask":{"fieldPaths":["a"]}}"#
    ),
    (
      .write,
      "122c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64220b120908e8"
        + "c195bf0610dc0b",
      #"{"delete":"projects/p/databases/(default)/documents/c/d","currentDocument":{"updateTime":"2025-03-27T14:"#
        + #"30:00.0000015Z"}}"#
    ),
    (
      .write,
      "0a3b0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64120b0a05"
        + "5f5f785f5f12025800",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"__x__":{"nullValue":null}}}}"#
    ),
    (
      .write,
      "0a360a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412060a00"
        + "12025800",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"":{"nullValue":null}}}}"#
    ),
    (
      .write,
      "0a350a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412050a01"
        + "611200",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{}}}}"#
    ),
    (
      .write,
      "0a3b0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64120b0a01"
        + "6112064a040a024a00",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"arrayValue":{"values":["#
        + #"{"arrayValue":{}}]}}}}}"#
    ),
    (
      .write,
      "0a400a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412100a01"
        + "61120b4209090000000000c05640",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"geoPointValue":{"latitu"#
        + #"de":91}}}}}"#
    ),
    (
      .write,
      "0a380a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412080a01"
        + "6112032a0178",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"referenceValue":"x"}}}}"#
    ),
    (
      .write,
      "0a390a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f6412090a01"
        + "6112049a010178",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"fieldReferenceValue":"x"#
        + #""}}}}"#
    ),
    (
      .write,
      "0a5f0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64122f0a01"
        + "61122a32280a260a075f5f6f69645f5f121b8a0118303132333435363738396162636465663031323334353637",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{"a":{"mapValue":{"fields":{"_"#
        + #"_oid__":{"stringValue":"0123456789abcdef01234567"}}}}}}}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f641a060a04"
        + "612e2e62",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateMask":{"fieldPaths""#
        + #":["a..b"]}}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f641a020a00",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateMask":{"fieldPaths""#
        + #":[""]}}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f643a030a01"
        + "61",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateTransforms":[{"fiel"#
        + #"dPath":"a"}]}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f643a090a01"
        + "611a048a010178",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateTransforms":[{"fiel"#
        + #"dPath":"a","increment":{"stringValue":"x"}}]}"#
    ),
    (
      .write,
      "0a2e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f643a041a02"
        + "1001",
      #"{"update":{"name":"projects/p/databases/(default)/documents/c/d","fields":{}},"updateTransforms":[{"incr"#
        + #"ement":{"integerValue":"1"}}]}"#
    ),
    (
      .write,
      "322e0a2c70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64",
      #"{"transform":{"document":"projects/p/databases/(default)/documents/c/d"}}"#
    ),
    (
      .query,
      "",
      #"{}"#
    ),
    (
      .query,
      "1203120163",
      #"{"from":[{"collectionId":"c"}]}"#
    ),
    (
      .query,
      "0a1c12031201611209120760622e63602e64120a12085f5f6e616d655f5f1205120163180122070a031201611002220e0a0a1208"
        + "5f5f6e616d655f5f100122050a0312017a2a02080a30033a360a0210010a2e2a2c70726f6a656374732f702f6461746162617365"
        + "732f2864656661756c74292f646f63756d656e74732f632f64100142080a064a040a024a00",
      #"{"from":[{"collectionId":"c","allDescendants":true}],"select":{"fields":[{"fieldPath":"a"},{"fieldPath":"#
        + #""`b.c`.d"},{"fieldPath":"__name__"}]},"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"},{""#
        + #"field":{"fieldPath":"__name__"},"direction":"ASCENDING"},{"field":{"fieldPath":"z"}}],"offset":3,"limit""#
        + #":10,"startAt":{"values":[{"integerValue":"1"},{"referenceValue":"projects/p/databases/(default)/document"#
        + #"s/c/d"}],"before":true},"endAt":{"values":[{"arrayValue":{"values":[{"arrayValue":{}}]}}]}}"#
    ),
    (
      .query,
      "12031201632a00",
      #"{"from":[{"collectionId":"c"}],"limit":0}"#
    ),
    (
      .query,
      "12031201632a0b08ffffffffffffffffff0130feffffffffffffffff01",
      #"{"from":[{"collectionId":"c"}],"limit":-1,"offset":-2}"#
    ),
    (
      .query,
      "0a00",
      #"{"select":{}}"#
    ),
    (
      .query,
      "1a93020a90020802121412120a0312016110011a0919000000000000f03f121412120a0312016110021a0919000000000000f03f"
        + "121412120a0312016110031a0919000000000000f03f121412120a0312016110041a0919000000000000f03f121412120a031201"
        + "6110051a0919000000000000f03f121412120a0312016110061a0919000000000000f03f121412120a0312016110071a09190000"
        + "00000000f03f121412120a0312016110081a0919000000000000f03f121412120a0312016110091a0919000000000000f03f1214"
        + "12120a03120161100a1a0919000000000000f03f12300a2e080112091a070802120312016212091a070803120312016212091a07"
        + "0804120312016212091a0708051203120162",
      #"{"where":{"compositeFilter":{"op":"OR","filters":[{"fieldFilter":{"field":{"fieldPath":"a"},"op":"LESS_T"#
        + #"HAN","value":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"LESS_THAN_OR_EQUAL","va"#
        + #"lue":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"GREATER_THAN","value":{"doubleV"#
        + #"alue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"GREATER_THAN_OR_EQUAL","value":{"doubleValue""#
        + #":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL","value":{"doubleValue":1}}},{"fieldFilter":"#
        + #"{"field":{"fieldPath":"a"},"op":"NOT_EQUAL","value":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldP"#
        + #"ath":"a"},"op":"ARRAY_CONTAINS","value":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"o"#
        + #"p":"IN","value":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"ARRAY_CONTAINS_ANY","#
        + #""value":{"doubleValue":1}}},{"fieldFilter":{"field":{"fieldPath":"a"},"op":"NOT_IN","value":{"doubleValu"#
        + #"e":1}}},{"compositeFilter":{"op":"AND","filters":[{"unaryFilter":{"op":"IS_NAN","field":{"fieldPath":"b""#
        + #"}}},{"unaryFilter":{"op":"IS_NULL","field":{"fieldPath":"b"}}},{"unaryFilter":{"op":"IS_NOT_NAN","field""#
        + #":{"fieldPath":"b"}}},{"unaryFilter":{"op":"IS_NOT_NULL","field":{"fieldPath":"b"}}}]}}]}}}"#
    ),
    (
      .query,
      "4a5d0a031201761240323e0a190a085f5f747970655f5f120d8a010a5f5f766563746f725f5f0a210a0576616c756512184a160a"
        + "0919000000000000f03f0a091900000000000004401802220208072a03642e65320909000000000000d03f",
      #"{"findNearest":{"vectorField":{"fieldPath":"v"},"queryVector":{"mapValue":{"fields":{"__type__":{"string"#
        + #"Value":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":2.5}]}}}}},"dista"#
        + #"nceMeasure":"COSINE","limit":7,"distanceResultField":"d.e","distanceThreshold":0.25}}"#
    ),
    (
      .query,
      "4a4d0a031201761240323e0a190a085f5f747970655f5f120d8a010a5f5f766563746f725f5f0a210a0576616c756512184a160a"
        + "0919000000000000f03f0a09190000000000000440180322020801",
      #"{"findNearest":{"vectorField":{"fieldPath":"v"},"queryVector":{"mapValue":{"fields":{"__type__":{"string"#
        + #"Value":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":2.5}]}}}}},"dista"#
        + #"nceMeasure":"DOT_PRODUCT","limit":1}}"#
    ),
    (
      .query,
      "12031201611203120162",
      #"{"from":[{"collectionId":"a"},{"collectionId":"b"}]}"#
    ),
    (
      .query,
      "12051203612f62",
      #"{"from":[{"collectionId":"a/b"}]}"#
    ),
    (
      .query,
      "120712055f5f785f5f",
      #"{"from":[{"collectionId":"__x__"}]}"#
    ),
    (
      .query,
      "1a00",
      #"{"where":{}}"#
    ),
    (
      .query,
      "1a0b12090a031201611a021001",
      #"{"where":{"fieldFilter":{"field":{"fieldPath":"a"},"value":{"integerValue":"1"}}}}"#
    ),
    (
      .query,
      "1a08120610051a021001",
      #"{"where":{"fieldFilter":{"op":"EQUAL","value":{"integerValue":"1"}}}}"#
    ),
    (
      .query,
      "1a0912070a031201611005",
      #"{"where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL"}}}"#
    ),
    (
      .query,
      "1a0b12090a0312016110051a00",
      #"{"where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL","value":{}}}}"#
    ),
    (
      .query,
      "1a071a051203120161",
      #"{"where":{"unaryFilter":{"field":{"fieldPath":"a"}}}}"#
    ),
    (
      .query,
      "1a020a00",
      #"{"where":{"compositeFilter":{"filters":[]}}}"#
    ),
    (
      .query,
      "2200",
      #"{"orderBy":[{}]}"#
    ),
    (
      .query,
      "22070a051203612062",
      #"{"orderBy":[{"field":{"fieldPath":"a b"}}]}"#
    ),
    (
      .query,
      "4a0b0a03120176120210011802",
      #"{"findNearest":{"vectorField":{"fieldPath":"v"},"queryVector":{"integerValue":"1"},"distanceMeasure":"CO"#
        + #"SINE"}}"#
    ),
    (
      .query,
      "4a470a031201761240323e0a190a085f5f747970655f5f120d8a010a5f5f766563746f725f5f0a210a0576616c756512184a160a"
        + "0919000000000000f03f0a09190000000000000440",
      #"{"findNearest":{"vectorField":{"fieldPath":"v"},"queryVector":{"mapValue":{"fields":{"__type__":{"string"#
        + #"Value":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":2.5}]}}}}}}}"#
    ),
    (
      .aggregation,
      "0a0512031201631a020a001a090a040a0208053a016e1a0912070a051203612e621a0a1a050a031201613a0178",
      #"{"structuredQuery":{"from":[{"collectionId":"c"}]},"aggregations":[{"count":{}},{"alias":"n","count":{"u"#
        + #"pTo":"5"}},{"sum":{"field":{"fieldPath":"a.b"}}},{"avg":{"field":{"fieldPath":"a"}},"alias":"x"}]}"#
    ),
    (
      .aggregation,
      "0a051203120163",
      #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
    ),
    (
      .aggregation,
      "",
      #"{}"#
    ),
    (
      .aggregation,
      "0a0512031201631a033a016e",
      #"{"structuredQuery":{"from":[{"collectionId":"c"}]},"aggregations":[{"alias":"n"}]}"#
    ),
    (
      .aggregation,
      "0a0512031201631a040a020a00",
      #"{"structuredQuery":{"from":[{"collectionId":"c"}]},"aggregations":[{"count":{"upTo":"0"}}]}"#
    ),
    (
      .aggregation,
      "0a0512031201631a021200",
      #"{"structuredQuery":{"from":[{"collectionId":"c"}]},"aggregations":[{"sum":{}}]}"#
    ),
    (
      .options,
      "",
      #"{}"#
    ),
    (
      .options,
      "1200",
      #"{"readOnly":{}}"#
    ),
    (
      .options,
      "120e120c08e8c195bf061080cab5ee01",
      #"{"readOnly":{"readTime":"2025-03-27T14:30:00.5Z"}}"#
    ),
    (
      .options,
      "120a120808e8c195bf061001",
      #"{"readOnly":{"readTime":"2025-03-27T14:30:00.000000001Z"}}"#
    ),
    (
      .options,
      "1a00",
      #"{"readWrite":{}}"#
    ),
    (
      .options,
      "1a050a03010203",
      #"{"readWrite":{"retryTransaction":"AQID"}}"#
    ),
  ]
}
