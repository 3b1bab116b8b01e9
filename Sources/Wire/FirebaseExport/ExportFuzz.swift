package import DocumentModel
import FixtureTree
import WireFormat

/// The entry point for fuzzing. It must not trap on any bytes, and checks properties of the bytes that it accepts.
package enum ExportFuzz {
  /// Reads bytes as an entity, as an output file, and as metadata.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    guard let database = DatabaseID(project: "fuzz") else { return }
    checkEntity(bytes, database)
    let input = [UInt8](bytes)
    _ = try? ExportMetadata.overall(input, name: "input")
    _ = try? ExportMetadata.outputs(input, name: "input")
    readLog(input, database)
  }

  /// Returns the entity of a document, for the initial inputs.
  package static func sample(_ key: String, _ fields: EncodedFields) -> [UInt8] {
    guard let database = DatabaseID(project: "fuzz"), let path = try? ResourcePath(key), let key = DocumentKey(path)
    else { return [] }
    var out: [UInt8] = []
    try? EntityEncoder(database: database).append(key, fields, to: &out)
    return out
  }

  /// Returns an output file with one record of less than a block.
  package static func outputFile(_ record: [UInt8]) -> [UInt8] {
    let sum = record.withUnsafeBytes { RecordLog.checksum(.full, $0) }
    let length = [UInt8(truncatingIfNeeded: record.count), UInt8(truncatingIfNeeded: record.count >> 8)]
    return (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * UInt32($0))) } + length
      + [RecordLog.ChunkType.full.rawValue] + record
  }

  private static func readLog(_ input: [UInt8], _ database: DatabaseID) {
    var offset = 0
    let reader = RecordLogReader(name: "input") { buffer in
      let count = min(buffer.count, input.count - offset)
      input.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
    var decoder = EntityDecoder(database: database)
    while (try? reader.next { (record) throws(RecordError) in try decoder.document(record) }) ?? nil != nil {}
  }

  /// Checks that a document that was decoded is unchanged after it is encoded and decoded again.
  private static func checkEntity(_ bytes: UnsafeRawBufferPointer, _ database: DatabaseID) {
    var decoder = EntityDecoder(database: database)
    guard let document = try? decoder.document(bytes) else { return }
    var record: [UInt8] = []
    do throws(WireError) {
      try EntityEncoder(database: database).append(document.key, document.fields, to: &record)
    } catch { preconditionFailure("a decoded document cannot be encoded: \(error)") }
    do throws(RecordError) {
      let again = try record.withRawBytes { (record) throws(RecordError) in try decoder.document(record) }
      precondition(again == document, "a document changed in a round trip")
    } catch { preconditionFailure("an encoded document cannot be decoded: \(error.message)") }
  }
}
