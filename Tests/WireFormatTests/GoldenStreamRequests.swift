/// Requests on streams, serialized by the protobuf classes of Google's Python client, and as JSON.
enum GoldenStreamRequests {
  /// A message: its bytes in hexadecimal, and its JSON.
  typealias Row = (hex: String, json: String)

  static let listen: [Row] = [
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291250124c0a2f70726f6a656374732f702f646174"
        + "6162617365732f2864656661756c74292f646f63756d656e74732f6f70656e2f311219120712056974656d73220e0a0a12085f5f"
        + "6e616d655f5f10012802",
      #"{"database":"projects/p/databases/(default)","addTarget":{"query":{"parent":"projects/p/databases/(d"#
        + #"efault)/documents/open/1","structuredQuery":{"from":[{"collectionId":"items"}],"orderBy":[{"field":{"#
        + #""fieldPath":"__name__"},"direction":"ASCENDING"}]}},"targetId":2}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291298011a8a01122c70726f6a656374732f702f64"
        + "61746162617365732f2864656661756c74292f646f63756d656e74732f612f62122c70726f6a656374732f702f64617461626173"
        + "65732f2864656661756c74292f646f63756d656e74732f612f63122c70726f6a656374732f702f6461746162617365732f286465"
        + "6661756c74292f646f63756d656e74732f612f622203fbff0028016202080322220a10676f6f672d6c697374656e2d7461677312"
        + "0e6c696d626f2d646f63756d656e74",
      #"{"database":"projects/p/databases/(default)","addTarget":{"documents":{"documents":["projects/p/data"#
        + #"bases/(default)/documents/a/b","projects/p/databases/(default)/documents/a/c","projects/p/databases/"#
        + #"(default)/documents/a/b"]},"resumeToken":"+/8A","targetId":1,"expectedCount":3},"labels":{"goog-list"#
        + #"en-tags":"limbo-document"}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429126312450a2870726f6a656374732f702f646174"
        + "6162617365732f2864656661756c74292f646f63756d656e74731219120712056974656d73220e0a0a12085f5f6e616d655f5f10"
        + "0128f9ffffffffffffffff0130015a0b08e8c195bf06108094ef3a6200",
      #"{"database":"projects/p/databases/(default)","addTarget":{"query":{"parent":"projects/p/databases/(d"#
        + #"efault)/documents","structuredQuery":{"from":[{"collectionId":"items"}],"orderBy":[{"field":{"fieldP"#
        + #"ath":"__name__"},"direction":"ASCENDING"}]}},"targetId":-7,"once":true,"readTime":"2025-03-27T14:30:"#
        + #"00.123456Z","expectedCount":0}}"#
    ),
    (
      "1802",
      #"{"removeTarget":2}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291800",
      #"{"database":"projects/p/databases/(default)","removeTarget":0}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429",
      #"{"database":"projects/p/databases/(default)"}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c742912022804",
      #"{"database":"projects/p/databases/(default)","addTarget":{"targetId":4}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429124712450a2870726f6a656374732f702f646174"
        + "6162617365732f2864656661756c74292f646f63756d656e74731219120712056974656d73220e0a0a12085f5f6e616d655f5f10"
        + "01",
      #"{"database":"projects/p/databases/(default)","addTarget":{"query":{"parent":"projects/p/databases/(d"#
        + #"efault)/documents","structuredQuery":{"from":[{"collectionId":"items"}],"orderBy":[{"field":{"fieldP"#
        + #"ath":"__name__"},"direction":"ASCENDING"}]}}}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c742912041a002804",
      #"{"database":"projects/p/databases/(default)","addTarget":{"documents":{},"targetId":4}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429122e1a2a122870726f6a656374732f702f646174"
        + "6162617365732f6f746865722f646f63756d656e74732f612f622804",
      #"{"database":"projects/p/databases/(default)","addTarget":{"documents":{"documents":["projects/p/data"#
        + #"bases/other/documents/a/b"]},"targetId":4}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291232122e0a2870726f6a656374732f702f646174"
        + "6162617365732f2864656661756c74292f646f63756d656e747312021a002804",
      #"{"database":"projects/p/databases/(default)","addTarget":{"query":{"parent":"projects/p/databases/(d"#
        + #"efault)/documents","structuredQuery":{"where":{}}},"targetId":4}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429122e122a0a2870726f6a656374732f702f646174"
        + "6162617365732f2864656661756c74292f646f63756d656e74732804",
      #"{"database":"projects/p/databases/(default)","addTarget":{"query":{"parent":"projects/p/databases/(d"#
        + #"efault)/documents"},"targetId":4}}"#
    ),
  ]

  static let write: [Row] = [
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c7429",
      #"{"database":"projects/p/databases/(default)"}"#
    ),
    (
      "12033935382201302a060a0161120162",
      #"{"streamId":"958","streamToken":"MA==","labels":{"a":"b"}}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291a2e122c70726f6a656374732f702f6461746162"
        + "617365732f2864656661756c74292f646f63756d656e74732f632f641a390a370a2c70726f6a656374732f702f64617461626173"
        + "65732f2864656661756c74292f646f63756d656e74732f632f6512070a0161120210012202fffe",
      #"{"database":"projects/p/databases/(default)","writes":[{"delete":"projects/p/databases/(default)/doc"#
        + #"uments/c/d"},{"update":{"name":"projects/p/databases/(default)/documents/c/e","fields":{"a":{"intege"#
        + #"rValue":"1"}}}}],"streamToken":"//4="}"#
    ),
    (
      "0a1e70726f6a656374732f702f6461746162617365732f2864656661756c74291a2e122c70726f6a656374732f712f6461746162"
        + "617365732f2864656661756c74292f646f63756d656e74732f632f64",
      #"{"database":"projects/p/databases/(default)","writes":[{"delete":"projects/q/databases/(default)/doc"#
        + #"uments/c/d"}]}"#
    ),
  ]
}
