import Compression

extension ByteSource {
  /// Returns the content of this source: decompressed if its first bytes are those of a gzip or zstd file, else the
  /// source itself. The name stays the same, and errors count lines of the content.
  /// - Throws: ``FixtureTreeError`` if reading fails.
  package func decompressed() throws(FixtureTreeError) -> ByteSource {
    guard let format = CompressionFormat(head: try peek(CompressionFormat.headBytes)) else { return self }
    return try decoded(format.rawValue) { () throws(CompressionError) in try Decompressor(format) }
  }

  /// Returns the content of this source, which is one raw deflated stream, as in an entry of a zip archive. Bytes after
  /// the stream are not read.
  /// - Throws: ``FixtureTreeError`` if memory is short.
  package func inflated() throws(FixtureTreeError) -> ByteSource {
    try decoded("deflate") { () throws(CompressionError) in try Decompressor.rawDeflate() }
  }

  private func decoded(
    _ method: String, _ make: () throws(CompressionError) -> Decompressor
  ) throws(FixtureTreeError) -> ByteSource {
    let decompressor: Decompressor
    do throws(CompressionError) { decompressor = try make() } catch {
      throw FixtureTreeError(file: name, message: "no memory to decompress the file")
    }
    let content = CompressedContent(self, method, decompressor)
    return ByteSource(name: name) { (buffer) throws(FixtureTreeError) in try content.read(into: buffer) }
  }
}

/// The content of a compressed source. Memory: a buffer of the compressed bytes and the state of the decompressor.
private final class CompressedContent {
  private static let bufferBytes = 64 << 10

  private let source: ByteSource
  /// The name of the method, for errors.
  private let method: String
  private let decompressor: Decompressor
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferBytes, alignment: 16)
  private var position = 0
  private var end = 0
  private var isInputOver = false

  init(_ source: ByteSource, _ method: String, _ decompressor: Decompressor) {
    self.source = source
    self.method = method
    self.decompressor = decompressor
  }

  deinit { buffer.deallocate() }

  /// Writes content to the start of `output` and returns the number of bytes; 0 means the end.
  func read(into output: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
    while true {
      if position == end, !isInputOver {
        position = 0
        end = try source.read(into: buffer)
        isInputOver = end == 0
      }
      let input = UnsafeRawBufferPointer(rebasing: buffer[..<end])
      let before = position
      let count = try decode(input, into: output)
      if count > 0 { return count }
      if isInputOver, position == end {
        guard decompressor.isComplete else { throw cut }
        return 0
      }
      guard position > before || position == end else {
        // Bytes after a raw stream are not part of it.
        if decompressor.isComplete { return 0 }
        throw failure("the \(method) data are damaged; copy or download the file again")
      }
    }
  }

  private func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(FixtureTreeError) -> Int {
    do throws(CompressionError) {
      return try decompressor.decode(input, from: &position, into: output)
    } catch {
      switch error {
      case .damaged(let reason):
        throw failure("the \(method) data are damaged (\(reason)); copy or download the file again")
      case .cutShort: throw cut
      case .windowTooLarge:
        throw failure(
          "decompressing the file needs more than \(1 << (CompressionLimits.zstdWindowLogMax - 20)) MiB of memory; "
            + "compress it again without --long and --ultra")
      case .noMemory: throw failure("no memory to decompress the file")
      }
    }
  }

  private var cut: FixtureTreeError {
    failure("the \(method) data end too early; the file may be cut short, so copy or download it again")
  }

  private func failure(_ message: String) -> FixtureTreeError { FixtureTreeError(file: source.name, message: message) }
}
