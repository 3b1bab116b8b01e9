import Accounts
import DatabaseService

extension AccountStore {
  /// Makes a service end the streams whose tokens a change of accounts has invalidated, also if no document changes.
  func endStreams(of service: FirestoreService) {
    revocations.observe { [weak service] concerned in
      switch concerned {
      case .users(let uids): service?.recheckStreams(of: uids)
      case .everyone: service?.recheckStreams(of: nil)
      }
    }
  }
}
