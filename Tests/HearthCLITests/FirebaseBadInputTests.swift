import DocumentModel
import FirebaseExport
import FixtureTree
import Foundation
import Testing
import TestSupport

/// Firebase exports with links, duplicates, missing parts and values beyond limits are refused before anything is
/// stored. The message says what to do.
@Suite(.needs(.hearth)) struct FirebaseBadInputTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let tree = try directory.write(
      "tree.json", #"{"$collections": ["users"], "users": {"ann": {"age": 37}, "bob": {}}}"#)
    let source = ["--data", directory.file("source"), "--project", "demo-a", "--quiet"]
    #expect(try HearthBinary.run(["import", tree] + source).exit == .code(0))
    #expect(
      try HearthBinary.run(
        ["export", "--format", "firebase", directory.file("export"), "--only", "firestore"] + source
      )
      .exit == .code(0))
    try write("auth_export/accounts.json", #"{"users": [{"localId": "ann", "email": "ann@example.com"}]}"#)
    try write("storage_export/buckets.json", #"{"buckets": [{"id": "demo-a.appspot.com"}]}"#)
    try write("storage_export/blobs/a", "not a photo")
    try writeMetadata()
    try write(
      "firebase-export-metadata.json",
      #"""
      {"version": "13.0.0", "firestore": {"path": "firestore_export", "metadata_file":
       "firestore_export/firestore_export.overall_export_metadata"}, "auth": {"path": "auth_export"},
       "storage": {"path": "storage_export"}}
      """#)
  }

  private func write(_ path: String, _ text: String) throws {
    let url = URL(fileURLWithPath: directory.file("export/\(path)"))
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  private func writeMetadata(_ file: String = "a", _ members: String = #""size": 11"#) throws {
    try write(
      "storage_export/metadata/\(file).json", #"{"name": "a/photo", "bucket": "demo-a.appspot.com", \#(members)}"#)
  }

  private func remove(_ path: String) throws {
    try FileManager.default.removeItem(atPath: directory.file("export/\(path)"))
  }

  /// Moves a file elsewhere, and puts a link in its place.
  private func link(_ path: String) throws {
    let (file, elsewhere) = (directory.file("export/\(path)"), directory.file("elsewhere"))
    try? FileManager.default.removeItem(atPath: elsewhere)
    try FileManager.default.moveItem(atPath: file, toPath: elsewhere)
    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: elsewhere)
  }

  /// Imports into a new directory, which must succeed.
  private func imported(_ words: String..., from path: String = "export") throws -> String {
    let data = directory.file("data-\(UUID().uuidString)")
    let run = try HearthBinary.run(["import", directory.file(path), "--data", data, "--project", "demo-a"] + words)
    #expect(run.exit == .code(0), "\(run.output)")
    return run.output
  }

  /// Imports into a new directory, which must fail with code 65 and store nothing.
  private func refused(_ words: String..., from path: String = "export") throws -> String {
    let data = directory.file("data-\(UUID().uuidString)")
    let run = try HearthBinary.run(["import", directory.file(path), "--data", data, "--project", "demo-a"] + words)
    #expect(run.exit == .code(65), "\(run.output)")
    // A data directory may exist already, but no database.
    #expect(!FileManager.default.fileExists(atPath: "\(data)/databases/demo-a/(default)/data.mdb"), "\(run.output)")
    return run.output
  }

  private func archive() throws {
    let tar = Process()
    tar.executableURL = URL(fileURLWithPath: "/bin/tar")
    tar.arguments = ["-czf", directory.file("export.tar.gz"), "-C", directory.path, "export"]
    try tar.run()
    tar.waitUntilExit()
  }

  @Test func linksAreRefused() throws {
    #expect(try imported() == "imported 2 documents, 1 account, 1 file, 11 B\n")
    try link("storage_export/metadata/a.json")
    #expect(try refused().contains("metadata/a.json is a symbolic link, which the import does not follow"))
    try remove("storage_export/metadata/a.json")
    try writeMetadata()
    try link("storage_export/blobs/a")
    #expect(try refused().contains("blobs/a is a symbolic link, which the import does not follow"))
    try link("firebase-export-metadata.json")
    #expect(try refused().contains("firebase-export-metadata.json: is not a regular file"))
  }

  @Test func linksInArchivesAreRefused() throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("export/storage_export/metadata/b.json"), withDestinationPath: "a.json")
    try archive()
    let output = try refused(from: "export.tar.gz")
    #expect(
      output.contains("export/storage_export/metadata/b.json is a link or a special file in the archive"), "\(output)")
    #expect(try imported("--only", "auth", from: "export.tar.gz") == "imported 1 account\n")
  }

  @Test func namesThatAreNotUTF8AreRefused() throws {
    let path = Array(directory.file("export/storage_export/metadata/").utf8) + [0xFF] + Array(".json".utf8) + [0]
    let descriptor = path.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { name in
        name.baseAddress.map { open($0, O_WRONLY | O_CREAT, 0o600) } ?? -1
      }
    }
    #expect(descriptor >= 0 && close(descriptor) == 0)
    #expect(try refused().contains("is an entry whose name is not UTF-8"))
  }

  @Test func aListOfBucketsWithoutFilesIsReported() throws {
    try remove("storage_export/metadata")
    try remove("storage_export/blobs")
    try write("storage_export/buckets.json", #"{"buckets": [{"id": "demo-a.appspot.com"}, {"id": "-x"}]}"#)
    let output = try imported()
    #expect(output.contains("storage_export contains no files, only a list of buckets"), "\(output)")
    #expect(output.contains("left out the bucket \"-x\""), "\(output)")
  }

  @Test func metadataThatTheServerWouldRejectAreFoundFirst() throws {
    for (members, reason) in [
      (#""customMetadata": {"x": "\#(String(repeating: "y", count: 8192))"}"#, "Custom metadata may have at most 8192"),
      (#""contentType": "image/\npng""#, "contains control characters"),
      (#""cacheControl": "\#(String(repeating: "y", count: 1025))""#, "longer than 1024 bytes"),
    ] {
      try writeMetadata("a", members)
      let output = try refused()
      #expect(output.contains("a.json: the server would reject these metadata") && output.contains(reason), "\(output)")
      #expect(output.contains("import the other parts: hearth import --only firestore,auth"), "\(output)")
    }
    try writeMetadata("a", #""contentType": "image/ö", "contentLanguage": "de""#)
    #expect(try imported().contains("1 file, 11 B"))
  }

  @Test func partsThatAreLeftOutAreNotRead() throws {
    try remove("firestore_export")
    #expect(try imported("--only", "auth,storage") == "imported 1 account, 1 file, 11 B\n")
    try remove("storage_export/buckets.json")
    #expect(try imported("--only", "auth") == "imported 1 account\n")
    try archive()
    #expect(try imported("--only", "auth", from: "export.tar.gz") == "imported 1 account\n")
    try write("firebase-export-metadata.json", #"{"auth": {"path": "auth_export"}}"#)
    let none = try refused("--only", "storage,firestore")
    #expect(
      none.contains("does not contain the parts that --only names (firestore,storage); it contains auth"), "\(none)")
  }

  @Test func aMissingFolderOfAccountsDoesNoHarmToDocuments() throws {
    try remove("auth_export")
    #expect(try imported("--only", "firestore") == "imported 2 documents\n")
  }

  @Test func duplicatesAreNamed() throws {
    try writeMetadata("b")
    try write("storage_export/blobs/b", "not a photo")
    let files = try refused()
    #expect(
      files.contains("metadata/b.json and ") && files.contains("of the same file, gs://demo-a.appspot.com/a/photo"),
      "\(files)")
    try write(
      "auth_export/accounts.json",
      #"{"users": [{"localId": "e\#u{301}"}, {"localId": "\#u{E9}"}, {"localId": "x"}, {"localId": "x"}]}"#
    )
    #expect(try refused().contains("accounts.json: users 3 and 4 have the same 'localId' \"x\""))
  }

  @Test func missingListsSayHowToImportTheRest() throws {
    try remove("storage_export/buckets.json")
    let files = try refused()
    #expect(files.contains("buckets.json") && files.contains("--only firestore,auth"), "\(files)")
    try remove("auth_export/accounts.json")
    let accounts = try refused()
    #expect(accounts.contains("accounts.json") && accounts.contains("--only firestore,storage"), "\(accounts)")
    let output = "firestore_export/all_namespaces/all_kinds/output-0"
    try write(output, "x")
    let documents = try refused("--only", "firestore")
    #expect(documents.contains("output-0") && !documents.contains("--only"), "\(documents)")
  }

  @Test func aDocumentThatCannotBeStoredIsNamedByItsRecord() throws {
    let database = try #require(DatabaseID(project: "demo-a"))
    let time = Timestamp(uncheckedMicroseconds: 1)
    var writer = try DocumentsWriter(directory.file("many"), name: "many", database: database, started: time)
    for number in 0..<3 {
      let values = (0..<(number == 1 ? 40_001 : 1)).map(String.init).joined(separator: ",")
      let key = try #require(DocumentKey(try ResourcePath("c/d\(number)")))
      let fields = try FixtureFields.parse(
        Array("{\"a\": [\(values)]}".utf8), source: "fields", key: key, database: database)
      try writer.write(key, fields)
    }
    try writer.finish(at: time)
    let output = try refused(from: "many")
    #expect(output.contains("all_kinds/output-0: record 2: c/d1: too many index entries"), "\(output)")
  }

  @Test func contentThatIsAFolderIsRefused() throws {
    try remove("storage_export/blobs/a")
    try write("storage_export/blobs/a/b", "x")
    let output = try refused()
    #expect(
      output.contains("blobs/a is not a regular file, but must contain gs://demo-a.appspot.com/a/photo"), "\(output)")
    #expect(!output.contains("--recursive"), "\(output)")
  }

  @Test func filesInArchivesAreNamedByTheirPathThere() throws {
    try writeMetadata("a", #""size": 12"#)
    try archive()
    let files = try refused(from: "export.tar.gz")
    let archive = directory.file("export.tar.gz")
    #expect(files.contains("\(archive): export/storage_export/blobs/a has 11 bytes"), "\(files)")
    try write("firestore_export/all_namespaces/all_kinds/output-0", String(repeating: "x", count: 100))
    try self.archive()
    let documents = try refused("--only", "firestore", from: "export.tar.gz")
    #expect(
      documents.contains("\(archive): export/firestore_export/all_namespaces/all_kinds/output-0: record 1, at byte 0"),
      "\(documents)")
    for output in [files, documents] { #expect(!output.contains("hearth-import."), "\(output)") }
    let run = try HearthBinary.run(
      ["exec", "--project", "demo-a", "--quiet", "--import", archive, "--", "echo", "started"])
    #expect(run.exit == .code(65) && !run.output.contains("hearth-import."), "\(run.output)")
  }

  @Test func filesOfOtherPartsPointToTheirCommands() throws {
    let accounts = try refused(from: "export/auth_export/accounts.json")
    #expect(accounts.contains("`hearth accounts import \(directory.file("export/auth_export/accounts.json"))`"))
    for (path, part) in [
      ("export/auth_export", "auth"), ("export/storage_export/buckets.json", "storage"),
      ("export/storage_export/", "storage"),
    ] {
      let output = try refused("--collection", "x", from: path)
      #expect(output.contains("`hearth import \(directory.file("export")) --only \(part)`"), "\(output)")
    }
  }

  @Test func filesOfAccountsAreNotDocuments() throws {
    for text in [
      #"{"kind": "identitytoolkit#DownloadAccountResponse", "users": []}"#, #"{"users": [ {"localId": "ann"}]}"#,
    ] {
      _ = try directory.write("users.json", text)
      let output = try refused(from: "users.json")
      #expect(
        output.contains("contains accounts, not documents; import them with `hearth accounts import"), "\(output)")
    }
  }

  @Test func longNamesOfFilesSurvive() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    let names = ["x", "y"].map { String(repeating: "é/", count: 200) + $0 }
    for name in names {
      let upload = try TestHTTPClient(port: server.port).send(
        "POST",
        "/upload/storage/v1/b/demo-a.appspot.com/o?uploadType=media&name="
          + (name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""),
        headers: [("Authorization", "Bearer owner"), ("Content-Type", "text/plain")], body: Array(name.utf8.suffix(1)))
      #expect(upload.status == 200, "\(String(decoding: upload.body, as: UTF8.self))")
    }
    let exported = try HearthBinary.run(
      ["export", "--format", "firebase", directory.file("long"), "--server", url, "--project", "demo-a"])
    #expect(exported.exit == .code(0) && exported.output.contains("2 files, 2 B"), "\(exported.output)")
    #expect(try imported(from: "long").contains("2 files, 2 B"))
  }
}
