import DocumentModel
import Matching
import PipelineEngine
import QueryEngine

/// The moment that the slices of a response show, and when the newest state last allowed it.
struct Continuation {
  /// The part of a request that rules see again.
  enum Subject {
    case query(ResolvedQuery)
    case listing(Query)
    case pipeline(PipelinePlan)

    var queries: [Query] {
      switch self {
      case .query(let resolved): [resolved.query]
      case .listing(let query): [query]
      case .pipeline(let plan): plan.queries
      }
    }

    var isPipeline: Bool { if case .pipeline = self { true } else { false } }

    /// Returns the documents that the proof for the query covers, or `nil` if it covers no document.
    func range(in database: DatabaseID) -> QueryRange? {
      switch self {
      case .query(let resolved): resolved.range()
      // Without a range, each result that has changed needs the permission to get it.
      case .pipeline: nil
      case .listing(let query):
        QueryRange(listing: QueryScope(query), orders: query.orders, from: nil, includesMissing: false, in: database)
      }
    }
  }

  let readTime: ReadTime
  /// `nil` if no rules apply.
  let subject: Subject?
  var authorization: Authorization
  /// Reviews changed results; `nil` if the response shows the newest state, or no rules apply.
  var review: PastReview?

  init(readTime: ReadTime, subject: Subject?, authorization: Authorization) {
    self.readTime = readTime
    self.subject = subject
    self.authorization = authorization
  }
}
