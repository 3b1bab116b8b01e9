import Callers
import DatabaseService
import Watch

extension FirestoreService {
  /// The hubs of the databases that have listeners, which tests drive.
  var hubs: WatchHubRegistry {
    guard let administrator = try? administrator(.admin) else { preconditionFailure("no administrator") }
    return watchHubs(as: administrator)
  }
}
