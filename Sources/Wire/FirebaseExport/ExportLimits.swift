/// The limits of reading Firebase exports, which are untrusted files.
package enum ExportLimits {
  /// One record of an export: a document or a part of the metadata. A longer record is an error.
  package static let recordBytesMax = 32 << 20
  /// One metadata file of an export, including `firebase-export-metadata.json`. A longer file is an error.
  package static let metadataBytesMax = 16 << 20
  /// The accounts file of an export, which is read as a whole. A longer file is an error.
  package static let accountsBytesMax = 1 << 30
  /// The output files that the metadata of one export name. An export with more is an error.
  package static let outputFilesMax = 100_000
  /// The properties of one entity, including the elements of its arrays. An entity with more is an error.
  package static let propertiesMax = 1 << 20
  /// The documents that Hearth writes to one output file.
  package static let outputDocumentsMax = 50_000
}
