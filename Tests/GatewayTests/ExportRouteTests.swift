import Foundation
import HearthServer
import Testing
import TestSupport

/// `POST …:export` and `…:import` of the official emulator.
@Suite struct ExportRouteTests {
  private let directory: TemporaryDirectory
  private let server: TestServer

  init() throws {
    directory = try TemporaryDirectory()
    server = try TestServer()
  }

  private func post(
    _ call: String, _ body: JSONNode, headers: [(String, String)] = []
  ) throws -> TestServer.Response {
    try server.call("POST", "/emulator/v1/projects/p:\(call)", body.text, headers: headers)
  }

  private static let database: JSONNode = "projects/p/databases/(default)"

  @Test func documentsGoOutAndComeBack() throws {
    #expect(try server.call("PATCH", "/c/d", #"{"fields": {"n": {"integerValue": "1"}}}"#).status == 200)
    let body: JSONNode = [
      "database": Self.database, "export_directory": .string(directory.path), "export_name": "firestore_export",
    ]
    for _ in 0..<2 {
      let exported = try post("export", body)
      #expect(exported.status == 200 && exported.text == "{\n}\n", "\(exported.text)")
    }
    #expect(try server.call("DELETE", "/emulator/v1/projects/p/databases/(default)/documents").status == 200)
    #expect(try server.call("GET", "/c/d").status == 404)
    let file = directory.file("firestore_export/firestore_export.overall_export_metadata")
    let imported = try post("import", ["database": Self.database, "exportDirectory": .string(file)])
    #expect(imported.status == 200, "\(imported.text)")
    #expect(try server.call("GET", "/c/d").json("fields", "n", "integerValue") == "1")
  }

  @Test func errorsAreThoseOfTheEmulator() throws {
    let payload = "Payload isn't valid for request."
    for call in ["export", "import"] {
      #expect(try server.call("POST", "/emulator/v1/projects/p:\(call)", "{").message == payload)
      #expect(try post(call, ["bogus": 1]).message == payload)
      let none = try post(call, [:])
      #expect(none.status == 400 && none.message == "Database name \"\" lacks \"projects\" at index 0.", "\(none.text)")
    }
    let nowhere = try post("export", ["database": Self.database, "export_directory": "/nonexistent/x"])
    #expect(nowhere.message == "export_directory must be a directory")
    #expect(nowhere.json("error", "status") == "FAILED_PRECONDITION")
    let missing = try post("import", ["database": Self.database, "export_directory": "/nonexistent/x"])
    #expect(missing.status == 400 && missing.message == "Failed to parse overall export metadata file")
    for name in ["", "..", "a/b"] {
      let odd = try post(
        "export",
        ["database": Self.database, "export_directory": .string(directory.path), "export_name": .string(name)])
      #expect(odd.status == 400 && odd.json("error", "status") == "INVALID_ARGUMENT", "\(odd.text)")
    }
  }

  @Test func onlyCallersOnThisMachineUseTheDisk() throws {
    let body: JSONNode = ["database": Self.database, "export_directory": .string(directory.path), "export_name": "x"]
    let remote = try post("export", body, headers: [("X-Forwarded-For", "192.0.2.7")])
    #expect(remote.status == 403, "\(remote.text)")
    let page = try post("export", body, headers: [("Origin", "https://example.com")])
    #expect(page.status == 403, "\(page.text)")
    // A page on another port of this machine too.
    for header in [("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-site")] {
      for verb in ["export", "import"] {
        let page = try post(verb, body, headers: [header])
        #expect(page.status == 403 && page.message.contains("A web page cannot"), "\(page.text)")
      }
    }
    let production = try TestServer(.production)
    #expect(try production.call("POST", "/emulator/v1/projects/p:export", body.text).status >= 400)
  }

  /// A proxy of this machine adds the client's address to the client's own header, or as another one.
  @Test(arguments: [
    ["203.0.113.9"], ["", "203.0.113.9"], ["127.0.0.1, 203.0.113.9"], ["127.0.0.1", "203.0.113.9"], [""],
  ])
  func clientsBehindAProxyAreNotThisMachine(forwarded: [String]) throws {
    let reply = try server.call(
      "POST", "/emulator/v1/projects/p:export", "{}", headers: forwarded.map { ("X-Forwarded-For", $0) })
    #expect(reply.status == 403, "\(reply.text)")
  }
}
