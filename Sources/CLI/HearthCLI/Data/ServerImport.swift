import DatabaseService
import DocumentModel
import FirebaseExport
import FixtureTree
import Synchronization
import WebClient

/// Sends documents to a server in commits, over several connections.
///
/// The commits are collected in rounds. The commits of one round run at the same time, so a round contains no document
/// twice: of several documents with the same path, the last one in the files remains.
struct ServerImport {
  /// The maximum number of documents in a commit, as Cloud Firestore allows it.
  static let documentsMax = 500
  /// The maximum size of the documents in a commit. JSON is about three times as long, and servers accept requests of
  /// up to 10 MiB.
  static let bytesMax = 2 << 20
  /// The number of commits in a round for each connection. With 8 connections, a round has at most 64 MiB.
  private static let commitsPerConnection = 4

  private let place: ServerClient.Place
  private let connections: Int
  private var round: [ImportFiles.Batch] = []
  /// The documents of the round, if documents may repeat.
  private var keys: Set<DocumentKey> = []
  /// The number of documents that were imported so far.
  private(set) var outcome = ImportOutcome()

  /// Prepares an import.
  init(to place: ServerClient.Place, connections: Int) {
    self.place = place
    self.connections = connections
  }

  /// Adds documents. Sends a round if it is complete; `show` receives the number of documents that were imported.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a commit fails permanently.
  mutating func add(_ batch: ImportFiles.Batch, _ show: (Int) -> Void) throws {
    let batchKeys = batch.mayRepeat ? Set(batch.documents.map(\.key)) : []
    if batch.mayRepeat, keys.isEmpty { for other in round { keys.formUnion(other.documents.map(\.key)) } }
    if !keys.isDisjoint(with: batchKeys) { try finish(show) }
    keys.formUnion(batchKeys)
    round.append(batch)
    if round.count >= connections * Self.commitsPerConnection { try finish(show) }
  }

  /// Sends the documents that were not sent yet.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a commit fails permanently.
  mutating func finish(_ show: (Int) -> Void) throws {
    guard !round.isEmpty else { return }
    let (place, round, already) = (place, round, outcome.documents)
    let made = RoundOutcome()
    do {
      try ConnectedWork.run(
        round.count, connections: connections, connect: { ServerClient(place) }, show: { show(already + $0.count) },
        { index, client, retries, progress in
          let documents = round[index].documents
          let changed = try retries.run { _ in try client.commit(documents.map { .set($0.key, $0.fields) }) }
          made.unchanged.withLock { $0 += changed.count { !$0 } }
          made.stored.withLock { $0 += documents.count }
          progress.add(documents.count)
        })
    } catch {
      var failure = CommandFailure(error)
      let count = already + made.stored.withLock { $0 }
      let advice = failure.isTemporary || error is HTTPClientError ? "; to continue, run the same command again" : ""
      failure.message +=
        "\n\(CountText.of(count, "document")) of this import \(CountText.noun(count, "is", "are")) stored\(advice)"
      throw failure
    }
    outcome.documents += round.reduce(0) { $0 + $1.documents.count }
    for batch in round { outcome.references += batch.references }
    outcome.unchanged += made.unchanged.withLock { $0 }
    self.round.removeAll()
    keys.removeAll()
  }

  /// The outcome of a round.
  private final class RoundOutcome: Sendable {
    /// The number of documents that the server had already.
    let unchanged = Mutex(0)
    /// The number of documents that the server has now.
    let stored = Mutex(0)
  }
}
