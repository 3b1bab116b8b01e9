package import DocumentModel
import Synchronization

/// Idle analyzers of the process, for reuse: creating one costs more than the words of a short document.
package enum TextAnalyzers {
  /// An analyzer that no thread uses.
  ///
  /// Unchecked: the mutex of ``idle`` passes it from one thread to the next.
  private struct Idle: @unchecked Sendable {
    let analyzer: TextAnalyzer
  }

  private static let idle = Mutex<[Idle]>([])
  /// The idle analyzers that are kept. Each takes at most about 100 KB.
  private static let keptMax = 32

  /// Calls `body` with an analyzer for a language.
  /// - Throws: ``TextAnalysisError`` if a library is not available.
  package static func with<R>(
    _ language: TextLanguage, _ body: (TextAnalyzer) -> R
  ) throws(TextAnalysisError) -> R {
    let analyzer = try take(language)
    defer { give(analyzer) }
    return body(analyzer)
  }

  /// Returns an analyzer for a language. Give it back with ``give(_:)``.
  /// - Throws: ``TextAnalysisError`` if a library is not available.
  package static func take(_ language: TextLanguage) throws(TextAnalysisError) -> TextAnalyzer {
    let known = idle.withLock { idle -> Idle? in
      guard let place = idle.lastIndex(where: { $0.analyzer.language == language }) else { return nil }
      return idle.remove(at: place)
    }
    return if let known { known.analyzer } else { try TextAnalyzer(language) }
  }

  /// Keeps an analyzer for reuse. The caller must not use it any more.
  package static func give(_ analyzer: TextAnalyzer) {
    let entry = Idle(analyzer: analyzer)
    idle.withLock { idle in
      if idle.count >= keptMax { idle.removeFirst() }
      idle.append(entry)
    }
  }
}
