/// The limits of unpacking archives, which are untrusted files.
package enum ArchiveLimits {
  /// The entries of one archive. An archive with more is an error.
  package static let entriesMax = 1_000_000
  /// The path of an entry. A longer one is an error.
  package static let pathBytesMax = 4096
  /// The unpacked files of one archive together. More is an error.
  package static let unpackedBytesMax = 1 << 40
  /// How many times larger than the archive the unpacked files may be, beyond the first ``anyRatioBytes``. More is an
  /// error, because such an archive was probably made to fill the disk.
  package static let ratioMax = 250
  /// The size of the unpacked files up to which their ratio to the archive does not matter.
  package static let anyRatioBytes = 64 << 20
  /// The space that unpacking leaves free in the file system. With less, it ends with an error.
  package static let freeBytesMin = 256 << 20
  /// A header of an extended tar archive, such as a long name. A longer one is an error.
  package static let headerBytesMax = 1 << 20
}
