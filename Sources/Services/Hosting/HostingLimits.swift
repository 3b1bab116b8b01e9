/// The limits of hosting.
package enum HostingLimits {
  /// Bytes of a request's path after decoding. A longer one gets status 404.
  package static let pathBytesMax = 2048
  /// Segments of a request's path. A path with more gets status 404, because rules are matched with each folder of it.
  package static let segmentsMax = 100
  /// Rules in each list of a site's configuration. Further rules are not in force, and the server logs a warning.
  package static let rulesMax = 10_000
  /// Regular expressions in each list of a site's configuration. Each is tried for each new path, so further ones are
  /// not in force, and the server logs a warning.
  package static let expressionsMax = 500
  /// Bytes that a compiled pattern may take. A larger pattern is not in force.
  package static let patternBytesMax = 256 << 10
  /// Nesting of groups in a glob.
  package static let globDepthMax = 16
  /// Capturing groups of a redirect's source.
  package static let capturesMax = 63
  /// Bytes of a configuration file.
  package static let configurationBytesMax = 4 << 20
  /// Bytes of file content and its compressed forms in memory, of all sites together, with those that responses still
  /// contain. If all are in use, files are read from the disk for each response.
  package static let cachedBytesMax = 8 << 20
  /// Bytes of a file that is kept in memory. Larger files are read from the disk for each request, and are compressed
  /// only if a compressed file is beside them.
  package static let cachedFileBytesMax = 1 << 20
  /// Bytes of a file from which on it is compressed.
  package static let compressedFileBytesMin = 1024
  /// Paths whose response is known, of all sites together.
  package static let pathsMax = 4096
  /// Bytes of the responses that are known, with the content of their files, of all sites together. The files of the
  /// web SDK have as much again.
  package static let knownBytesMax = 4 << 20
  /// Files that are open because their content is read from the disk for a response, but at most a sixteenth of the
  /// open files that the process may have. Another response that needs one gets status 503.
  package static let openFilesMax = 1024
  /// Milliseconds for which a response is known. After that, the server looks for changes of the files.
  package static let knownMillisecondsMax = 500
  /// Languages of a request that are tried for a site with translated content.
  package static let languagesMax = 8
  /// Bytes of a body that is sent in one piece. Larger ones are sent in slices, as the client takes them.
  package static let pieceBytesMax = 256 << 10
}
