import DocumentModel
import FixtureTree
import WireFormat

/// The metadata files of an export of documents.
///
/// `NAME.overall_export_metadata` is a record log of two records: the text `3`, and a message `OverallExportMetadata`.
/// It has one entry for each folder `all_namespaces/all_kinds` or `all_namespaces/kind_NAME`: the path of the metadata
/// file of that folder, relative to its own folder, the number of the entities and their bytes. That file,
/// `all_namespaces_all_kinds.export_metadata`, is a message `Backup` without framing, which names the output files.
///
/// Source: the classes in `adminjobsv3` and `BackupProtos` of the official emulator's archive, its output, and managed
/// exports in public repositories. Managed exports count the bytes without the padding of blocks.
enum ExportMetadata {
  static let overallSuffix = ".overall_export_metadata"
  static let kindSuffix = ".export_metadata"
  static let version = "3"

  /// An entry of the overall metadata.
  struct Pointer: Equatable {
    /// The path of the kind's metadata file, relative to the folder of the overall metadata.
    var file: String
    /// The number of documents, or `nil` if the entry does not say it.
    var documents: Int?
  }

  /// Reads the overall metadata.
  /// - Throws: ``FixtureTreeError`` if the file is damaged or has an unknown version.
  static func overall(_ bytes: [UInt8], name: String) throws(FixtureTreeError) -> [Pointer] {
    var offset = 0
    let reader = RecordLogReader(name: name) { buffer in
      let count = min(buffer.count, bytes.count - offset)
      bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
    let version = try reader.next { String(decoding: $0, as: UTF8.self) }
    guard version == Self.version else {
      throw FixtureTreeError(
        file: name, message: "has the version \(version ?? "(none)"); Hearth reads exports of version \(Self.version)")
    }
    let found = try reader.next { (record) throws(RecordError) in
      do throws(WireError) { return try pointers(record) } catch { throw RecordError(message: error.description) }
    }
    guard let found else {
      throw FixtureTreeError(file: name, message: "ends after the first of its two records; copy the file again")
    }
    return found
  }

  private static func pointers(_ message: UnsafeRawBufferPointer) throws(WireError) -> [Pointer] {
    var pointers: [Pointer] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      guard field.number == 1, field.wireType == .lengthDelimited else { continue }
      var pointer = Pointer(file: "")
      var parts = ProtobufReader(field.bytes)
      while let part = try parts.next() {
        switch (part.number, part.wireType) {
        case (2, .lengthDelimited): pointer.file = part.string
        case (3, .varint): pointer.documents = part.bits <= Int64.max ? Int(part.int64) : nil
        default: break
        }
      }
      guard pointers.count < ExportLimits.outputFilesMax else { throw tooMany }
      pointers.append(pointer)
    }
    return pointers
  }

  private static let tooMany = WireError.malformedProtobuf(
    "the export has more than \(ExportLimits.outputFilesMax) output files")

  /// Reads the metadata of a kind. Returns the names of its output files.
  /// - Throws: ``FixtureTreeError`` if the file is damaged.
  static func outputs(_ bytes: [UInt8], name: String) throws(FixtureTreeError) -> [String] {
    do throws(WireError) {
      return try bytes.withRawBytes { (bytes) throws(WireError) in
        var outputs: [String] = []
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
          guard field.number == 2, field.wireType == .lengthDelimited else { continue }
          var parts = ProtobufReader(field.bytes)
          while let part = try parts.next() {
            guard part.number == 2, part.wireType == .lengthDelimited else { continue }
            guard outputs.count < ExportLimits.outputFilesMax else { throw tooMany }
            outputs.append(part.string)
          }
        }
        return outputs
      }
    } catch {
      throw FixtureTreeError(file: name, message: "is not the metadata of an export, or damaged: \(error.description)")
    }
  }

  // MARK: Writing

  /// Returns the message of the overall metadata for one folder of all kinds.
  static func overall(file: String, documents: Int, bytes: Int) -> [UInt8] {
    var out: [UInt8] = []
    ProtobufWriter.message(1, to: &out) { pointer in
      // All kinds of all namespaces.
      ProtobufWriter.message(1, to: &pointer) { set in
        ProtobufWriter.int64(1, 2, to: &set)
        ProtobufWriter.int64(3, 3, to: &set)
      }
      ProtobufWriter.string(2, file, to: &pointer)
      ProtobufWriter.int64(3, Int64(documents), to: &pointer)
      ProtobufWriter.int64(4, Int64(bytes), to: &pointer)
    }
    return out
  }

  /// Returns the metadata of a folder of all kinds.
  static func kinds(export name: String, started: Timestamp, ended: Timestamp, outputs: [String]) -> [UInt8] {
    var out: [UInt8] = []
    ProtobufWriter.message(1, to: &out) { info in
      ProtobufWriter.string(1, name, to: &info)
      ProtobufWriter.int64(2, started.microseconds, to: &info)
      ProtobufWriter.int64(3, ended.microseconds, to: &info)
    }
    ProtobufWriter.message(2, to: &out) { kind in
      ProtobufWriter.string(1, "", to: &kind)
      for output in outputs { ProtobufWriter.string(2, output, to: &kind) }
    }
    return out
  }
}
