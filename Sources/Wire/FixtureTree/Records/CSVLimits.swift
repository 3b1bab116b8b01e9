/// The limits of CSV files that `hearth import` reads and `hearth export` writes.
package enum CSVLimits {
  /// The columns of a file. A file with more is rejected, and an export of documents with more different fields fails.
  package static let columnsMax = 4096
  /// The length of a row, in bytes, without the quotes. It is more than a document can store.
  package static let rowBytesMax = 8 << 20
}
