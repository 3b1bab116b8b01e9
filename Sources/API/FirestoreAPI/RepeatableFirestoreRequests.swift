package import GatewayCore

extension RepeatableRequests {
  /// The requests for documents, over REST and gRPC. The streams `Listen` and `Write`, change feeds, pipelines and the
  /// requests of all other APIs are never repeated.
  package static let forDocuments = RepeatableRequests(
    ChangeFeedHandler.heads + RESTHandler.heads + GRPCHandler.heads)
}
