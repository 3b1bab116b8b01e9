import Foundation
import Testing
import TestSupport

/// Firebase exports, imported and exported with commands: all parts, several destinations, and bad input.
@Suite(.needs(.hearth)) struct FirebaseExportTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func hearth(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(arguments, timeoutSeconds: 60)
  }

  private func write(_ path: String, _ text: String) throws {
    let url = URL(fileURLWithPath: directory.file(path))
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  private func bytes(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: directory.file(path))) }

  /// Makes `export`: documents of a fixture, accounts and files in the form of firebase-tools.
  private func makeExport() throws {
    _ = try directory.write(
      "tree.json",
      #"""
      {"$collections": ["users", "users/*/notes"], "users": {"ann": {"age": 37, "friend": {"$ref": "users/bob"},
       "notes": {"n1": {"tags": ["a", {"b": []}], "at": {"$timestamp": "2025-03-27T14:30:00Z"}}}}}}
      """#)
    let imported = try hearth(
      "import", directory.file("tree.json"), "--data", directory.file("source"), "--project", "demo-a", "--quiet")
    #expect(imported.exit == .code(0), "\(imported.output)")
    let exported = try hearth(
      "export", "--format", "firebase", directory.file("export"), "--only", "firestore", "--data",
      directory.file("source"), "--project", "demo-a")
    #expect(exported.exit == .code(0) && exported.output == "exported 2 documents\n", "\(exported.output)")
    try write(
      "export/auth_export/accounts.json",
      #"""
      {"kind": "identitytoolkit#DownloadAccountResponse", "users": [{"localId": "ann", "email": "ann@example.com",
       "emailVerified": false, "createdAt": "1683273987283", "passwordHash": "fakeHash:salt=fakeSaltX:password=secret-1",
       "salt": "fakeSaltX", "passwordUpdatedAt": 1683627034942, "validSince": "1683627034", "customAttributes": "{\"a\":1}",
       "providerUserInfo": [{"providerId": "password", "email": "ann@example.com", "federatedId": "ann@example.com",
       "rawId": "ann@example.com"}]}]}
      """#)
    try write("export/storage_export/buckets.json", #"{"buckets": [{"id": "demo-a.appspot.com"}, {"id": "other-b"}]}"#)
    try write("export/storage_export/blobs/demo-a.appspot.com/a/photo", "not a photo")
    try write(
      "export/storage_export/metadata/demo-a.appspot.com/a/photo.json",
      #"""
      {"name": "a/photo", "bucket": "demo-a.appspot.com", "contentType": "image/png", "contentEncoding": "identity",
       "cacheControl": "private", "downloadTokens": ["17f134ec-bd25-4c89-b3ba-71d4a8059548"],
       "customMetadata": {"by": "ann"}, "size": 11}
      """#)
    try write(
      "export/firebase-export-metadata.json",
      #"""
      {"version": "13.0.0", "firestore": {"version": "1.19.8", "path": "firestore_export", "metadata_file":
       "firestore_export/firestore_export.overall_export_metadata"}, "auth": {"version": "13.0.0", "path": "auth_export"},
       "storage": {"version": "13.0.0", "path": "storage_export"}, "database": {"path": "database_export"}}
      """#)
  }

  @Test func allPartsComeAlongAndReferencesAreRewritten() throws {
    try makeExport()
    let (data, project) = (directory.file("target"), "demo-b")
    let imported = try hearth("import", directory.file("export"), "--data", data, "--project", project)
    #expect(imported.exit == .code(0))
    for line in [
      "imported 2 documents, 1 account, 1 file, 11 B\n",
      "hearth: rewrote 1 reference to the database that receives the documents\n",
      "hearth: the export contains the passwords of 1 account as text; keep it secret\n",
      "hearth: left out parts that Hearth does not have: database\n",
    ] { #expect(imported.output.contains(line), "\(imported.output)") }
    let tree = try hearth("export", "--data", data, "--project", project)
    let source = try hearth("export", "--data", directory.file("source"), "--project", "demo-a")
    #expect(tree.output == source.output && tree.output.contains(#"{"$ref": "users/bob"}"#), "\(tree.output)")
    let server = try HearthProcess(arguments: ["--data", data, "--project", project])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let signIn = try client.send(
      "POST", "/v1/accounts:signInWithPassword?key=any", headers: [("Content-Type", "application/json")],
      body: Array(#"{"email": "ann@example.com", "password": "secret-1", "returnSecureToken": true}"#.utf8))
    #expect(signIn.status == 200, "\(String(decoding: signIn.body, as: UTF8.self))")
    let file = try client.send(
      "GET", "/v0/b/demo-a.appspot.com/o/a%2Fphoto?alt=media&token=17f134ec-bd25-4c89-b3ba-71d4a8059548")
    #expect(file.status == 200 && file.body == Array("not a photo".utf8))
    #expect(file.header("cache-control") == "private" && file.header("content-type") == "image/png")
  }

  @Test func anExportOfHearthIsImportedAgain() throws {
    try makeExport()
    let data = directory.file("target")
    #expect(try hearth("import", directory.file("export"), "--data", data, "--project", "demo-a").exit == .code(0))
    for force in [[], ["--force"]] as [[String]] {
      let exported = try HearthBinary.run(
        ["export", "--format", "firebase", directory.file("again"), "--data", data, "--project", "demo-a"] + force)
      #expect(exported.output == "exported 2 documents, 1 account, 1 file, 11 B\n", "\(exported.output)")
    }
    let mine = try directory.write("again/notes.txt", "mine")
    let refused = try hearth(
      "export", "--format", "firebase", directory.file("again"), "--force", "--data", data, "--project", "demo-a")
    #expect(refused.exit == .code(1) && refused.output.contains("also contains notes.txt"), "\(refused.output)")
    try FileManager.default.removeItem(atPath: mine)
    let twice = try hearth(
      "export", "--format", "firebase", directory.file("again"), "--data", data, "--project", "demo-a")
    #expect(twice.exit == .code(1) && twice.output.contains("add --force to replace it"), "\(twice.output)")
    let kinds = "firestore_export/all_namespaces/all_kinds/output-0"
    #expect(try bytes("again/\(kinds)") == bytes("export/\(kinds)"))
    let imported = try hearth(
      "import", directory.file("again"), "--data", directory.file("third"), "--project", "demo-a")
    #expect(imported.output == "imported 2 documents, 1 account, 1 file, 11 B\n", "\(imported.output)")
    let user = try hearth("accounts", "list", "--data", directory.file("third"), "--project", "demo-a")
    #expect(user.output.contains("ann@example.com") && user.output.contains(#"{"a":1}"#), "\(user.output)")
  }

  @Test func serversAndCommandsStartWithAnExport() throws {
    try makeExport()
    let script = """
      "$0" get users/ann && "$0" accounts list --server "$HEARTH_SERVER" && "$0" files ls --recursive gs://demo-a.appspot.com/
      """
    let path = try #require(HearthBinary.path)
    for storage in [[], ["--data", directory.file("exec-data")]] as [[String]] {
      let run = try HearthBinary.run(
        ["exec", "--project", "demo-a", "--quiet", "--import", directory.file("export")] + storage
          + ["--", "sh", "-c", script, path])
      #expect(run.exit == .code(0))
      for text in ["users/ann", "ann@example.com", "photo"] { #expect(run.output.contains(text), "\(run.output)") }
    }
  }

  @Test func documentsGoThroughAServerToo() throws {
    try makeExport()
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    let imported = try hearth("import", directory.file("export"), "--server", url, "--project", "demo-a")
    #expect(imported.output.contains("imported 2 documents, 1 account, 1 file, 11 B\n"), "\(imported.output)")
    let exported = try hearth(
      "export", "--format", "firebase", directory.file("again"), "--server", url, "--project", "demo-a")
    #expect(exported.output == "exported 2 documents, 1 account, 1 file, 11 B\n", "\(exported.output)")
    let kinds = "firestore_export/all_namespaces/all_kinds/output-0"
    #expect(try bytes("again/\(kinds)") == bytes("export/\(kinds)"))
  }

  @Test func onlyTheChosenPartsAreImported() throws {
    try makeExport()
    for (parts, text) in [
      ("firestore", "imported 2 documents\n"), ("auth", "imported 1 account\n"), ("storage", "imported 1 file, 11 B\n"),
      ("auth,firestore", "imported 2 documents, 1 account\n"),
    ] {
      let run = try hearth(
        "import", directory.file("export"), "--only", parts, "--data", directory.file("only-\(parts)"), "--project",
        "demo-a")
      #expect(run.exit == .code(0) && run.output.contains(text), "\(run.output)")
    }
    let run = try hearth("import", directory.file("export"), "--only", "firestore,users")
    #expect(run.exit == .code(64) && run.output.contains("must be a list of firestore, auth and storage"))
  }

  @Test func archivesAreImported() throws {
    try makeExport()
    let tar = Process()
    tar.executableURL = URL(fileURLWithPath: "/bin/tar")
    tar.arguments = ["-czf", directory.file("export.tar.gz"), "-C", directory.path, "export"]
    try tar.run()
    tar.waitUntilExit()
    let run = try hearth(
      "import", directory.file("export.tar.gz"), "--data", directory.file("target"), "--project", "demo-a")
    #expect(run.output.contains("imported 2 documents, 1 account, 1 file, 11 B\n"), "\(run.output)")
  }

  @Test func badInputLoadsNothingAndSaysWhatToDo() throws {
    try makeExport()
    let output = "export/firestore_export/all_namespaces/all_kinds/output-0"
    var damaged = try bytes(output)
    damaged[damaged.count - 3] ^= 1
    try damaged.write(to: URL(fileURLWithPath: directory.file(output)))
    let run = try hearth(
      "import", directory.file("export"), "--only", "firestore", "--data", directory.file("target"), "--project",
      "demo-a")
    #expect(run.exit == .code(65), "\(run.output)")
    #expect(run.output.contains("output-0: record 2, at byte") && run.output.contains("download the file again"))
    let left = try hearth("export", "--data", directory.file("target"), "--project", "demo-a")
    #expect(left.exit == .code(1), "\(left.output)")
    try FileManager.default.createDirectory(atPath: directory.file("empty"), withIntermediateDirectories: true)
    let empty = try hearth("import", directory.file("empty"))
    #expect(empty.exit == .code(65) && empty.output.contains("a folder without a Firebase export"), "\(empty.output)")
  }
}
