/// A change of files that happens with a commit of documents, or not at all.
///
/// Documents and metadata of files lie in two stores, and a crash may come between any two steps. So:
///
/// 1. The content gets its name, and the metadata store gets this record: what is to be, and the commit's number. Nobody
///    sees the new object yet.
/// 2. The documents are committed. The same transaction of their store keeps the number of the commit, as that of the
///    last commit that came with a file. **This is the moment at which both happen.**
/// 3. The metadata store replaces this record by the object.
///
/// Whoever finds a record, after a crash or in the moment between 2 and 3, asks the documents' store whether the number is
/// its last: if so the object is there, else it is not. One such change is under way at a time, under the lock of the
/// files' writer, so that one number for each database is enough, and nobody else writes files in between.
struct StagedFileCommit: Equatable, Sendable {
  /// Names the commit; never 0.
  var number: UInt64
  /// The database of the documents, as ``FileStore/Configuration/wasCommitted`` knows it.
  var database: String
  /// The object as it will be.
  var object: StoredObject

  /// The numbers of the fields are on disk: never reuse or renumber one.
  private enum Field {
    static let number: UInt8 = 1
    static let database: UInt8 = 2
    static let bucket: UInt8 = 3
    static let name: UInt8 = 4
    static let object: UInt8 = 5
  }

  init(number: UInt64, database: String, object: StoredObject) {
    self.number = number
    self.database = database
    self.object = object
  }

  var encoded: [UInt8] {
    var record = RecordWriter()
    record.put(Field.number, Int64(bitPattern: number))
    record.put(Field.database, database)
    record.put(Field.bucket, object.name.bucket)
    record.put(Field.name, object.name.name)
    record.put(Field.object, ObjectRecord.encode(object))
    return record.bytes
  }

  /// Reads a record; `nil` where it is damaged.
  init?(_ record: UnsafeRawBufferPointer) {
    var reader = RecordReader(record)
    var (number, database, bucket, name) = (UInt64(0), "", "", "")
    var object: UnsafeRawBufferPointer?
    while let (field, value) = reader.next() {
      switch field {
      case Field.number: number = UInt64(bitPattern: value.fieldNumber)
      case Field.database: database = value.fieldText
      case Field.bucket: bucket = value.fieldText
      case Field.name: name = value.fieldText
      case Field.object: object = value
      default: break
      }
    }
    guard number != 0, !reader.isDamaged, let object,
      let object = ObjectRecord.decode(object, ObjectName(bucket: bucket, name: name))
    else { return nil }
    self.init(number: number, database: database, object: object)
  }
}

/// The documents that are committed with a file.
package struct DocumentsCommit {
  /// Their database, as ``FileStore/Configuration/wasCommitted`` knows it.
  package var database: String
  /// Commits them, marked with a number, and returns when that is durable. Where it throws, they may have been committed
  /// all the same: then the mark says so.
  package var run: (_ number: UInt64) throws(FilesError) -> Void

  /// Describes a commit.
  package init(database: String, run: @escaping (_ number: UInt64) throws(FilesError) -> Void) {
    self.database = database
    self.run = run
  }
}
