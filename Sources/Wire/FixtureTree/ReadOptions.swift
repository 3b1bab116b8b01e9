package import DocumentModel

/// How to read files whose format leaves a choice.
package struct ReadOptions: Sendable {
  /// The collection of records: objects in arrays and lines without paths, and rows of CSV. `nil` if the file names its
  /// collections.
  package var collection: ResourcePath?
  /// The member or column with the ID of each record. `nil` selects `__id__`, `_id` or `id`: see ``RecordID``.
  package var idMember: String?
  /// Whether each record gets a random ID.
  package var generatesIDs = false
  /// Whether the member with the ID is not stored as a field.
  package var dropsIDMember = false
  /// Whether maps in the form of values that Firebase's SDKs print with `JSON.stringify` are read as these values.
  /// `nil` means: in records only. In other formats they stay maps, and ``ReadTally`` counts them.
  package var readsSDKValues: Bool?
  /// Whether references to other databases are changed to refer to the same path of the target database.
  package var rewritesReferences = false
  /// Whether the types of CSV columns without a type are inferred from their cells. Otherwise they are strings.
  package var infersTypes = false
  /// The byte that separates the cells of CSV. `nil` means a comma, a tab in files that end with `.tsv`, or the
  /// character that the header shows: see ``CSVReader``.
  package var delimiter: UInt8?
  /// An option that the user gave and that applies to CSV only, such as `--types`. Other files are then refused.
  package var csvOption: String?

  package init() {}
}

/// The facts about files that their user should know, counted while they are read.
package struct ReadTally: Equatable, Sendable {
  /// The number of values of Firebase's SDKs that were read as timestamps, geo points, references, bytes or vectors.
  package var sdkValuesRead = 0
  /// The number of maps that have the form of such values and were left as maps.
  package var sdkValuesLeft = 0
  /// The number of references that name another project or database than the target.
  package var foreignReferences = 0
  /// The first of them.
  package var firstForeignReference = ""
  /// The number of random IDs.
  package var generatedIDs = 0
  /// The delimiter that the header of a CSV file showed.
  package var foundDelimiter: UInt8?
  /// Whether that header also has commas, which the first row does not have.
  package var headerHasComma = false

  package init() {}

  /// Adds the counts of another file.
  package mutating func add(_ other: ReadTally) {
    if foreignReferences == 0 { firstForeignReference = other.firstForeignReference }
    sdkValuesRead += other.sdkValuesRead
    sdkValuesLeft += other.sdkValuesLeft
    foreignReferences += other.foreignReferences
    generatedIDs += other.generatedIDs
    if foundDelimiter == nil { (foundDelimiter, headerHasComma) = (other.foundDelimiter, other.headerHasComma) }
  }
}
