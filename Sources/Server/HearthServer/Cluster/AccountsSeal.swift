import Accounts
import PostgresEngine
import Replication

/// Encrypts the batches of accounts in the log of a cluster, which contain private keys and password hashes. The key is
/// derived from that of the cluster, so PostgreSQL and its backups do not have it.
struct AccountsSeal: BatchSeal {
  private let cipher: SharedCipher

  /// Creates the seal of a cluster.
  /// - Throws: ``ClusterKeyFailure/noDigest`` if libcrypto fails.
  init(_ key: ClusterKey) throws(ClusterKeyFailure) {
    guard let cipher = SharedCipher(key: try key.derive("hearth accounts in the log 1")) else { throw .noDigest }
    self.cipher = cipher
  }

  func seal(_ batch: [UInt8], of store: StoreName) -> [UInt8] { cipher.encrypt(batch, for: Array(store.text.utf8)) }

  func open(_ sealed: ArraySlice<UInt8>, of store: StoreName) -> [UInt8]? {
    cipher.decrypt(sealed, for: Array(store.text.utf8))
  }
}
