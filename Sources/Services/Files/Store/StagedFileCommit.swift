/// The record of an object that is committed atomically together with documents.
///
/// Documents and file metadata are in two stores, and a crash may happen between any two steps. The steps are:
///
/// 1. The content gets its name, and the metadata store gets this record: the future object and the commit's
///    number. The object is not visible yet.
/// 2. The documents are committed. The same transaction stores the number in their store, as that of the last
///    commit with a file. **At this moment both become visible.**
/// 3. The metadata store replaces this record with the object.
///
/// A reader that finds a record, after a crash or between steps 2 and 3, asks the document store whether the number
/// is its last one: if so, the object exists, otherwise it does not. The lock of the file writer permits only one
/// such commit at a time and no other writes meanwhile, so one number per database is enough.
struct StagedFileCommit: Equatable, Sendable {
  /// The number of the commit, never 0.
  var number: UInt64
  var database: String
  /// The object to be created.
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

  /// Decodes a record. Returns `nil` if it is damaged.
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

/// A commit of documents together with an object.
package struct DocumentsCommit {
  /// The name of the database, as ``FileStore/Configuration/wasCommitted`` expects it.
  package var database: String
  /// Commits the documents with a number, and returns when they are durable. If it throws, they may have been
  /// committed nevertheless; then the number is stored.
  package var run: (_ number: UInt64) throws(FilesError) -> Void

  package init(database: String, run: @escaping (_ number: UInt64) throws(FilesError) -> Void) {
    self.database = database
    self.run = run
  }
}
