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

  @Test func aDirectoryWithoutDocumentsIsExported() throws {
    let data = directory.file("accounts")
    try write("users.json", #"{"users": [{"localId": "ann", "email": "ann@example.com"}]}"#)
    let imported = try hearth("accounts", "import", directory.file("users.json"), "--data", data, "--project", "demo-a")
    #expect(imported.exit == .code(0), "\(imported.output)")
    let exported = try hearth("export", "--format", "firebase", directory.file("export"), "--data", data)
    #expect(exported.exit == .code(0) && exported.output == "exported 1 account\n", "\(exported.output)")
    let other = try hearth(
      "export", "--format", "firebase", directory.file("other"), "--data", data, "--project", "typo")
    #expect(
      other.exit == .code(1) && other.output.contains("has no database projects/typo/databases/(default)"),
      "\(other.output)")
  }

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

  /// Imports the export, which must fail with code 65 and store nothing.
  private func refused(_ path: String = "export", _ words: String...) throws -> String {
    let data = directory.file("refused-\(UUID().uuidString)")
    let run = try HearthBinary.run(["import", directory.file(path), "--data", data, "--project", "demo-a"] + words)
    #expect(run.exit == .code(65), "\(run.output)")
    #expect(!FileManager.default.fileExists(atPath: data), "\(run.output)")
    return run.output
  }

  @Test func damagedFilesAndAccountsRefuseTheWholeExport() throws {
    try makeExport()
    let (blob, metadata) = ("export/storage_export/blobs/demo-a.appspot.com/a/photo", "demo-a.appspot.com/a/photo.json")
    func name(_ members: String) throws {
      try write(
        "export/storage_export/metadata/\(metadata)",
        #"{"name": "a/photo", "bucket": "demo-a.appspot.com", \#(members)}"#)
    }
    try name(#""size": 12"#)
    let size = try refused()
    #expect(size.contains("photo has 11 bytes, but its metadata name 12"), "\(size)")
    #expect(size.contains("nothing was imported") && size.contains("--only firestore,auth"), "\(size)")
    try name(#""size": 11, "md5Hash": "XUFAKrxLKna5cZ2REBfFkg==""#)
    #expect(try refused().contains("photo does not have the MD5 hash"))
    for sum in [#""1""#, #""mnG7TA==""#] {
      try name(#""size": "11", "crc32c": \#(sum)"#)
      #expect(try refused().contains("photo does not have the CRC-32C"))
    }
    try write("export/storage_export/metadata/\(metadata)", "{")
    #expect(try refused().contains("photo.json"))
    // "not a photo" has these checksums.
    for sums in [#""md5Hash": "fzr7aYRTVTBFLcTUUS4+Gg==""#, #""crc32c": "399094770""#, #""crc32c": "F8mz8g==""#] {
      try name(#""size": "11", \#(sums)"#)
      let run = try hearth(
        "import", directory.file("export"), "--data", directory.file("ok"), "--project", "demo-a", "--only", "storage")
      #expect(run.exit == .code(0), "\(run.output)")
    }
    try name(#""size": 11"#)
    try FileManager.default.removeItem(atPath: directory.file(blob))
    #expect(try refused().contains("photo: No such file"))
    try write(blob, "not a photo")
    try write("export/storage_export/buckets.json", #"{"buckets": [{}]}"#)
    #expect(try refused().contains("a bucket without 'id'"))
    try FileManager.default.removeItem(atPath: directory.file("export/storage_export/buckets.json"))
    #expect(try refused().contains("buckets.json"))
    try write("export/storage_export/buckets.json", #"{"buckets": []}"#)
    try FileManager.default.removeItem(atPath: directory.file("export/storage_export/metadata"))
    #expect(try refused().contains("storage_export/metadata is missing"))
    try write("export/auth_export/accounts.json", #"{"users": [{"email": "ann@example.com"}]}"#)
    #expect(try refused().contains("user 1 has no 'localId'"))
    let run = try HearthBinary.run(
      ["exec", "--project", "demo-a", "--quiet", "--import", directory.file("export"), "--", "echo", "started"])
    #expect(run.exit == .code(65) && !run.output.contains("started"), "\(run.output)")
  }

  @Test func filesWithoutMetadataAreReported() throws {
    try makeExport()
    try write("export/storage_export/blobs/demo-a.appspot.com/b", "alone")
    let exported = try hearth(
      "import", directory.file("export"), "--data", directory.file("target"), "--project", "demo-a")
    #expect(exported.exit == .code(0), "\(exported.output)")
    #expect(exported.output.contains("1 file, 11 B"), "\(exported.output)")
    #expect(exported.output.contains("left out 1 file without metadata, such as "), "\(exported.output)")
  }

  @Test func aLaterPartThatFailsNamesTheWayToContinue() throws {
    try makeExport()
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    // The documents take the first connection, the accounts the second one.
    let proxy = try CuttingProxy(to: server.port, [.pass, .answer(403)])
    let url = "http://127.0.0.1:\(proxy.port)"
    let run = try hearth("import", directory.file("export"), "--server", url, "--project", "demo-a")
    #expect(run.exit == .code(1), "\(run.output)")
    #expect(
      run.output.contains("the documents are imported; to import the rest")
        && run.output.contains("run the same command with --only auth,storage"),
      "\(run.output)")
    let rest = try hearth(
      "import", directory.file("export"), "--server", url, "--project", "demo-a", "--only", "auth,storage")
    #expect(rest.output.contains("imported 1 account, 1 file, 11 B\n"), "\(rest.output)")
  }

  @Test func aServerOfDocumentsOnlyIsNoticedFirst() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let proxy = try CuttingProxy(to: server.port, [.answer(404)])
    let run = try hearth(
      "export", "--format", "firebase", directory.file("export"), "--server", "http://127.0.0.1:\(proxy.port)",
      "--project", "demo-a")
    #expect(run.exit == .code(1) && run.output.contains("add --only firestore"), "\(run.output)")
    #expect(try directory.fileNames == [])
  }

  @Test func optionsForFilesOfDocumentsAreRefused() throws {
    try makeExport()
    for option in [["--collection", "users"], ["--id", "x"], ["--delimiter", ";"], ["--sdk-values", "on"]] {
      let run = try HearthBinary.run(["import", directory.file("export")] + option)
      #expect(
        run.exit == .code(64) && run.output.contains("'\(option[0])' does not apply to Firebase exports"),
        "\(run.output)")
    }
  }

  @Test func anEmptyOutputFileIsAnError() throws {
    try makeExport()
    try write("alone/output-0", "")
    let run = try hearth(
      "import", directory.file("alone/output-0"), "--data", directory.file("target"), "--project", "demo-a")
    #expect(run.exit == .code(65) && run.output.contains("contains no record, only empty files"), "\(run.output)")
  }

  @Test func aKilledExportLosesNothing() throws {
    try makeExport()
    // A process that was killed while it replaced the earlier export.
    try FileManager.default.moveItem(
      atPath: directory.file("export"), toPath: directory.file("export.4194303.old"))
    try write("export.4194303.part/firebase-export-metadata.json", "{")
    let exported = try hearth(
      "export", "--format", "firebase", directory.file("export"), "--only", "firestore", "--data",
      directory.file("source"), "--project", "demo-a")
    #expect(exported.exit == .code(1) && exported.output.contains("add --force to replace it"), "\(exported.output)")
    let names = try directory.fileNames
    #expect(names.contains("export") && !names.contains { $0.hasPrefix("export.") }, "\(names)")
  }
}

/// Firebase exports that start a server with TLS.
@Suite(.needs(.hearth), .needs(.tool(.openssl))) struct SecureExportTests {
  @Test(arguments: [["--emulator"], ["--data", "data"]])
  func allPartsAreLoadedWithTLS(storage: [String]) throws {
    let directory = try TemporaryDirectory()
    // The certificate is not valid for the address of this machine.
    let certificate = try TestAuthority().issue(for: "DNS:hearth.example")
    func write(_ path: String, _ text: String) throws {
      let url = URL(fileURLWithPath: directory.file("export/\(path)"))
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: url)
    }
    try write(
      "firebase-export-metadata.json", #"{"auth": {"path": "auth_export"}, "storage": {"path": "storage_export"}}"#)
    try write("auth_export/accounts.json", #"{"users": [{"localId": "ann", "email": "ann@example.com"}]}"#)
    try write("storage_export/buckets.json", #"{"buckets": [{"id": "demo-a.appspot.com"}]}"#)
    try write("storage_export/blobs/a", "not a photo")
    try write("storage_export/metadata/a.json", #"{"name": "a", "bucket": "demo-a.appspot.com", "size": 11}"#)
    let words = storage.map { $0 == "data" ? directory.file($0) : $0 }
    let process = try HearthBinary.start(
      [
        "serve", "--port", "0", "--project", "demo-a", "--tls-cert", certificate.file, "--tls-key", certificate.keyFile,
        "--import", directory.file("export"),
      ] + words)
    defer { process.stop() }
    _ = try process.waitForLine(prefix: "hearth: listening on https://", timeoutSeconds: 30)
    #expect(process.output.contains("imported 1 account, 1 file, 11 B"), "\(process.output)")
  }
}
