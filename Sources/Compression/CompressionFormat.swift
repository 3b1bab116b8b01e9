/// A format of compressed files.
package enum CompressionFormat: String, CaseIterable, Sendable {
  /// RFC 1952, as `gzip` writes it: one or more members.
  case gzip
  /// RFC 8878, as `zstd` writes it: one or more frames.
  case zstd

  /// The ending of file names, with the dot.
  package var suffix: String {
    switch self {
    case .gzip: ".gz"
    case .zstd: ".zst"
    }
  }

  /// The number of bytes that ``init(head:)`` needs.
  package static let headBytes = 4

  /// Returns the format of a file that begins with these bytes, or `nil` if it is not compressed.
  package init?(head: [UInt8]) {
    if head.starts(with: [0x1F, 0x8B]) {
      self = .gzip
    } else if head.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) || Self.isSkippable(head) {
      self = .zstd
    } else {
      return nil
    }
  }

  /// Returns the format that the ending of a file's name names, or `nil` if it names none.
  package init?(nameOfFile name: String) {
    guard
      let format = Self.allCases.first(where: { name.utf8.suffix($0.suffix.utf8.count).elementsEqual($0.suffix.utf8) })
    else { return nil }
    self = format
  }

  /// Returns whether a zstd file begins with a frame without content, as parallel compressors write it.
  private static func isSkippable(_ head: [UInt8]) -> Bool {
    head.count >= 4 && (0x50...0x5F).contains(head[0]) && head[1...3].elementsEqual([0x2A, 0x4D, 0x18])
  }
}

/// The reason why bytes cannot be compressed or decompressed.
package enum CompressionError: Error, Equatable, Sendable {
  /// The bytes are not valid, or their checksum does not match. The text is the library's.
  case damaged(String)
  /// The bytes end before the end of a member or frame.
  case cutShort
  /// A zstd frame needs more memory than ``CompressionLimits/zstdWindowLogMax`` allows.
  case windowTooLarge
  /// The library cannot allocate its state.
  case noMemory
}

/// The limits of compressed files.
package enum CompressionLimits {
  /// The largest window of a zstd frame, as a power of two in bytes: 128 MiB. This is the default of `zstd -d`. A file
  /// that needs more, such as one of `zstd --ultra --long=31`, is rejected.
  package static let zstdWindowLogMax = 27
}
