import DocumentModel
import FixtureTree
import Foundation
import Testing
import TestSupport
import WireFormat

@testable import FirebaseExport

/// The search for exports in folders, and exports that are refused.
@Suite struct ExportFolderTests {
  private let directory: TemporaryDirectory
  private let database: DatabaseID

  init() throws {
    directory = try TemporaryDirectory()
    database = try #require(DatabaseID(project: "demo"))
  }

  /// Writes an export `all/EXPORT` of `count` documents and returns the path of its overall metadata.
  @discardableResult
  private func make(_ count: Int, in folder: String = "all", name: String = "export") throws -> String {
    let path = directory.file(folder)
    try ExportFiles.makeFolder(path)
    var writer = try DocumentsWriter(path, name: name, database: database, started: Timestamp(uncheckedMicroseconds: 1))
    for number in 0..<count {
      let key = try #require(DocumentKey(try ResourcePath("c/d\(number)")))
      try writer.write(key, EncodedFields(MapValue([("n", .integer(Int64(number)))])))
    }
    try writer.finish(at: Timestamp(uncheckedMicroseconds: 2))
    return "\(path)/\(name)/\(name).overall_export_metadata"
  }

  private func output(_ folder: String = "all", _ name: String = "export") -> String {
    directory.file("\(folder)/\(name)/all_namespaces/all_kinds/output-0")
  }

  private func documents(_ path: String) throws -> [String] {
    let export = try #require(try ExportFolder.find(path)?.documents)
    let reader = export.makeReader(database: database)
    var paths: [String] = []
    while let document = try reader.nextDocument() { paths.append(document.key.path.text) }
    return paths
  }

  private func message(_ path: String) throws -> String {
    let error = try #require(throws: FixtureTreeError.self) { try documents(path) }
    return error.description
  }

  @Test func anExportIsFoundByAnyOfItsPaths() throws {
    let overall = try make(3)
    for path in [
      directory.file("all"), directory.file("all/export"), overall, output(),
      directory.file("all/export/all_namespaces/all_kinds"),
      directory.file("all/export/all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"),
    ] {
      #expect(try documents(path) == ["c/d0", "c/d1", "c/d2"], "\(path)")
    }
    let all = directory.file("all")
    try TestFile.write(
      Array(#"{"version": "13.0.0", "firestore": {"metadata_file": "export/export.overall_export_metadata"}}"#.utf8),
      to: "\(all)/firebase-export-metadata.json")
    #expect(try documents(all).count == 3)
    #expect(try ExportFolder.find(directory.file("all/export/all_namespaces/nothing")) == nil)
  }

  @Test func theEmulatorsBytesOfMetadataAreWritten() throws {
    let overall = Hex.text(try TestFile.bytes(try make(3)))
    let file = Hex.text(Array("all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata".utf8))
    #expect(overall.hasPrefix("b86d444e01000133") && overall.contains("0a04080218031241\(file)1803"), "\(overall)")
    let kinds = Hex.text(
      try TestFile.bytes(
        directory.file("all/export/all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata")))
    #expect(kinds == "0a0c0a066578706f727410011802120c0a0012086f75747075742d30")
  }

  @Test func aMissingOutputIsNoticedByItsCount() throws {
    let overall = try make(3)
    var bytes = try TestFile.bytes(output())
    // The first two records without the third.
    bytes.removeLast(bytes.count / 3)
    try TestFile.write(bytes, to: output())
    #expect(try message(overall).contains("contains 2 documents, but its metadata name 3"))
    try FileManager.default.removeItem(atPath: output())
    #expect(try message(overall).contains("output-0: cannot open the file: No such file"))
  }

  @Test func damageNamesFileAndRecord() throws {
    let overall = try make(3)
    var bytes = try TestFile.bytes(output())
    bytes[bytes.count / 2] ^= 1
    try TestFile.write(bytes, to: output())
    let text = try message(overall)
    #expect(text.contains("output-0: record 2, at byte \(bytes.count / 3): the record is damaged"), "\(text)")
  }

  @Test func aFileThatChangesIsRefused() throws {
    let overall = try make(3)
    let export = try #require(try ExportFolder.find(overall)?.documents)
    let bytes = try TestFile.bytes(output())
    try TestFile.write(bytes + bytes, to: output())
    let error = try #require(throws: FixtureTreeError.self) {
      let reader = export.makeReader(database: database)
      while try reader.nextDocument() != nil {}
    }
    #expect(error.message.contains("changed while it was read"))
  }

  @Test func pathsOutsideTheFolderAreRefused() throws {
    try make(1)
    for path in ["../x.overall_export_metadata", "/etc/passwd", "a//b", ""] {
      let json = #"{"firestore": {"metadata_file": "\#(path)"}}"#
      try TestFile.write(Array(json.utf8), to: directory.file("odd/firebase-export-metadata.json"))
      #expect(try message(directory.file("odd")).contains("which is not below its own folder"), "\(path)")
    }
  }

  @Test func severalExportsMustBeNamed() throws {
    try make(1, in: "two", name: "a")
    try make(1, in: "two", name: "b")
    #expect(try message(directory.file("two")).contains("contains several exports; name one of them"))
  }

  @Test func metadataThatAreMissingOrEmptyAreNoticed() throws {
    try make(2)
    try ExportFiles.makeFolder(directory.file("all/auth_export"))
    #expect(try message(directory.file("all")).contains("but not \(ExportFolder.metadataFile), which names them"))
    #expect(try documents(directory.file("all/export")) == ["c/d0", "c/d1"])
    _ = try directory.write("all/\(ExportFolder.metadataFile)", #"{"version": "1.0.0"}"#)
    #expect(try message(directory.file("all")).contains("names no part of an export"))
  }

  @Test func partsAreFound() throws {
    let json = """
      {"version": "1", "auth": {"path": "auth_export"}, "storage": {"path": "storage_export"},
       "database": {"path": "database_export"}}
      """
    try TestFile.write(Array(json.utf8), to: directory.file("p/firebase-export-metadata.json"))
    try TestFile.write([], to: directory.file("p/auth_export/accounts.json"))
    try TestFile.write([], to: directory.file("p/auth_export/accounts-tenant.json"))
    let export = try #require(try ExportFolder.find(directory.file("p")))
    #expect(export.accountsFile == directory.file("p/auth_export/accounts.json"))
    #expect(export.tenantFiles == [directory.file("p/auth_export/accounts-tenant.json")])
    #expect(export.storageFolder == directory.file("p/storage_export") && export.documents == nil)
    #expect(export.otherParts == ["database"])
  }
}
