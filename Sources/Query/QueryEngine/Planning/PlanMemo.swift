import DocumentStore
import Synchronization

/// The plan of a query that is run again and again.
///
/// Only a plan that does not depend on the stored documents is kept: the scans of declared indexes in the order of the
/// query. It is valid for one catalog of indexes. If the catalog has changed, the query is planned again.
final class PlanMemo: Sendable {
  private struct Kept: Sendable {
    let catalog: IndexCatalog
    let plan: QueryPlan
  }

  private let latest = Mutex<Kept?>(nil)

  /// Returns the plan for a catalog, or `nil` if none is kept.
  func plan(for catalog: IndexCatalog) -> QueryPlan? {
    latest.withLock { kept in
      guard let kept, kept.catalog === catalog else { return nil }
      return kept.plan
    }
  }

  /// Keeps a plan instead of the one before.
  func keep(_ plan: QueryPlan, for catalog: IndexCatalog) {
    latest.withLock { $0 = Kept(catalog: catalog, plan: plan) }
  }
}
