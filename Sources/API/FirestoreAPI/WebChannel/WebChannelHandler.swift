package import DatabaseService
package import GatewayCore
package import Transport

/// Serves WebChannels: the streams `Listen` and `Write` over plain HTTP requests of browsers
/// (listen-and-webchannel.md, section 3).
///
/// - A POST without a session ID opens a channel and contains its first messages.
/// - A POST with a session ID contains messages. Its response only acknowledges receipt and is sent at once.
/// - A GET is the back channel: a long-lived response with the server's messages.
/// - `TYPE=terminate` closes the channel.
package final class WebChannelHandler: API {
  /// Creates the stream that a channel carries.
  typealias MakeStream = @Sendable (ChannelMethod, Caller, _ wake: @escaping @Sendable () -> Void) -> any ChannelStream

  package let authenticator: Authenticator
  private let channels: ChannelTable
  private let makeCall: MakeStream

  /// Creates a handler whose channels carry the streams of a service, on a node of a cluster with the number of the node.
  package convenience init(_ service: FirestoreService, _ authenticator: Authenticator, node: UInt16 = 0) {
    let decoder = StreamRequestDecoder(service)
    self.init(authenticator, channels: ChannelTable(node: node)) { method, caller, wake in
      JSONStream(method, service, decoder, as: caller, wake: wake)
    }
  }

  /// Creates a handler whose channels carry other streams.
  init(_ authenticator: Authenticator, channels: ChannelTable, makeCall: @escaping MakeStream) {
    self.authenticator = authenticator
    self.channels = channels
    self.makeCall = makeCall
  }

  /// The number of open channels.
  package var openChannels: Int { channels.count }

  /// The requests that the API handles.
  package static var routes: [Route<WebChannelHandler>] {
    let opening = ChannelMethod.allCases.map { method in
      Route<WebChannelHandler>(
        .post, ["\(method.path)"], kind: .channel, access: .caller, node: method == .listen ? .any : .owner,
        when: { opensChannel($0) }
      ) {
        try $0.openChannel(method, $1, $2.responder, as: .success($2.caller))
      }
    }
    // The session ID in the query is the credential of all other requests.
    let others = ChannelMethod.allCases.map { method in
      Route<WebChannelHandler>(.all, ["\(method.path)"], kind: .channel, access: .everyone) {
        try $0.handle(method, $1, $2.responder)
      }
    }
    return opening + others + [
      Route(.all, ["/google.firestore.v1.Firestore/{method...}"], kind: .channel, access: .everyone) { _, _, call in
        call.responder.sendText(415, "A gRPC call needs HTTP/2 and the content type application/grpc.\n")
      }
    ]
  }

  /// Whether a POST has no session ID, and so opens a channel. Decodes the query only if it has to, because each POST
  /// comes here first.
  private static func opensChannel(_ request: borrowing HTTPRequest) -> Bool {
    let query = request.target.pathAndQuery.query
    if query.split(separator: UInt8(ascii: "&")).contains(where: { $0.starts(with: "SID=".utf8) }) { return false }
    guard let parameters = try? ChannelParameters(query) else { return false }
    return !parameters.isTerminate && parameters.sessionID == nil
  }

  /// Returns the number of the node that has the channel of a request, or `nil` if the request names no session.
  package static func node(of request: borrowing HTTPRequest) -> UInt16? {
    let (path, query) = request.target.pathAndQuery
    guard path.dropping("/google.firestore.v1.Firestore/")?.suffix(8).elementsEqual("/channel".utf8) ?? false else {
      return nil
    }
    return (try? ChannelParameters(query))?.sessionID.flatMap { SessionID($0) }?.node
  }

  /// Returns the caller who opens a channel. Browsers send their header fields in the form, older clients in the
  /// query.
  ///
  /// - Throws: ``ChannelFault`` if the request is malformed, `UNAUTHENTICATED` if the credentials are not valid.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    let parameters = try ChannelParameters(request.target.pathAndQuery.query)
    for block in [try ChannelForm.headers(in: request.body), parameters.headers] {
      let caller = try block?.withUnsafeBytes { block in
        try ChannelForm.header("authorization", in: block).map { try authenticator.caller(authorization: $0) }
      }
      if let caller = caller ?? nil { return caller }
    }
    return try authenticator.caller(of: request)
  }

  /// Responds with an error. A caller with invalid credentials gets a channel that carries the error, because clients
  /// read errors only there.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    do {
      switch error {
      case RouteError.wrongMethod: responder.sendText(405, "A channel supports only POST and GET.\n")
      case let fault as ChannelFault: throw fault
      case let status as Status:
        let isWrite = request.target.dropping(ChannelMethod.write.path) != nil
        try openChannel(isWrite ? .write : .listen, request, responder, as: .failure(status))
      default: responder.sendError(Status(error, database: nil))
      }
    } catch { responder.sendFault(error as? ChannelFault ?? .malformed("Malformed request")) }
  }

  /// Handles a request for an open channel.
  private func handle(_ method: ChannelMethod, _ request: borrowing HTTPRequest, _ responder: Responder) throws {
    guard request.method == .post || request.method == .get else { throw RouteError.wrongMethod }
    let parameters = try ChannelParameters(request.target.pathAndQuery.query)
    if parameters.isTerminate {
      terminate(method, parameters, responder)
    } else if request.method == .get {
      try openBackChannel(method, parameters, responder)
    } else {
      try receive(method, parameters, request, responder)
    }
  }

  private func openChannel(
    _ method: ChannelMethod, _ request: borrowing HTTPRequest, _ responder: Responder,
    as caller: Result<Caller, Status>
  ) throws(ChannelFault) {
    let form = try ChannelForm(request.body)
    guard let id = channels.reserve(method, from: request.remoteAddress) else {
      return responder.sendError(
        Status(.unavailable, "Too many channels are open on this server, or from this address. Try again later."))
    }
    let channel = Channel(
      on: responder.exchange.loop, budget: channels.budget, forget: { [weak channels] in channels?.remove(id) }
    ) { wake in
      switch caller {
      case .success(let caller): makeCall(method, caller, wake)
      case .failure(let status): FailedStream(status: status)
      }
    }
    do throws(ChannelFault) {
      try channel.begin(with: form.maps)
    } catch {
      channel.terminate()
      throw error
    }
    channels.put(LoopBound(channel, to: responder.exchange.loop), at: id)
    let keepAlive = ChannelSession.keepAliveMilliseconds
    responder.sendChunk(
      Array(#"[[0,["c","\#(id.text)","",8,12,\#(keepAlive)]]]"#.utf8), isHTTP2: request.version == .http2)
  }

  private func receive(
    _ method: ChannelMethod, _ parameters: ChannelParameters, _ request: borrowing HTTPRequest, _ responder: Responder
  ) throws(ChannelFault) {
    let channel = try channels.find(parameters.sessionID ?? "", method)
    let form = try ChannelForm(request.body)
    let number = parameters.acknowledged
    channel.onLoop { $0.receive(form.maps, acknowledging: number, responder) }
  }

  private func openBackChannel(
    _ method: ChannelMethod, _ parameters: ChannelParameters, _ responder: Responder
  ) throws(ChannelFault) {
    let channel = try channels.find(parameters.sessionID ?? "", method)
    let back = BackChannel(responder, of: channel)
    let bound = LoopBound(back, to: responder.exchange.loop)
    let (kind, number) = (parameters.backChannel, back.number)
    let acknowledged = parameters.acknowledged ?? 0
    channel.onLoop { $0.attach(kind, above: acknowledged, bound, number: number) }
  }

  /// Closes a channel. The client does not read the response.
  private func terminate(_ method: ChannelMethod, _ parameters: ChannelParameters, _ responder: Responder) {
    if let channel = try? channels.find(parameters.sessionID ?? "", method) { channel.onLoop { $0.terminate() } }
    responder.sendText(200, "")
  }
}
