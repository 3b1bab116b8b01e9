import DatabaseService
import Transport

/// Serves WebChannels: the streams `Listen` and `Write` over plain HTTP requests of browsers
/// (listen-and-webchannel.md, section 3).
///
/// - A POST without a session ID opens a channel and contains its first messages.
/// - A POST with a session ID contains messages. Its response only acknowledges receipt and is sent at once.
/// - A GET is the back channel: a long-lived response with the server's messages.
/// - `TYPE=terminate` closes the channel.
final class WebChannelHandler: Sendable {
  /// Creates the stream that a channel carries.
  typealias MakeStream = @Sendable (ChannelMethod, Caller, _ wake: @escaping @Sendable () -> Void) -> any ChannelStream

  private let authenticator: Authenticator
  private let channels: ChannelTable
  private let makeCall: MakeStream

  /// Creates a handler whose channels carry the streams of a service.
  convenience init(_ service: FirestoreService, _ authenticator: Authenticator) {
    let decoder = StreamRequestDecoder(service)
    self.init(authenticator, channels: ChannelTable()) { method, caller, wake in
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
  var openChannels: Int { channels.count }

  /// Returns the method of a path below `/google.firestore.v1.Firestore/`, or `nil` if the path is not a channel's.
  static func method(_ path: UnsafeRawBufferPointer) -> ChannelMethod? {
    if path.elementsEqual("Listen/channel".utf8) { return .listen }
    return path.elementsEqual("Write/channel".utf8) ? .write : nil
  }

  /// Handles a request for a channel.
  func handle(
    _ method: ChannelMethod, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder
  ) {
    guard request.method == .post || request.method == .get else {
      return responder.sendText(405, "A channel supports only POST and GET.\n")
    }
    do throws(ChannelFault) {
      let parameters = try ChannelParameters(query)
      if parameters.isTerminate {
        terminate(method, parameters, responder)
      } else if request.method == .get {
        try openBackChannel(method, parameters, responder)
      } else if parameters.sessionID == nil {
        try openChannel(method, parameters, request, responder)
      } else {
        try receive(method, parameters, request, responder)
      }
    } catch {
      responder.sendFault(error)
    }
  }

  private func openChannel(
    _ method: ChannelMethod, _ parameters: ChannelParameters, _ request: borrowing HTTPRequest, _ responder: Responder
  ) throws(ChannelFault) {
    let form = try ChannelForm(request.body)
    let caller = caller(form, parameters, request)
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

  /// The caller who opens a channel. Browsers send their header fields in the form, older clients in the query.
  private func caller(
    _ form: ChannelForm, _ parameters: ChannelParameters, _ request: borrowing HTTPRequest
  ) -> Result<Caller, Status> {
    for block in [form.headers, parameters.headers] {
      let caller = block?.withUnsafeBytes { block -> Result<Caller, Status>? in
        ChannelForm.header("authorization", in: block).map { header in
          Result { () throws(Status) in try authenticator.caller(authorization: header) }
        }
      }
      if let caller = caller ?? nil { return caller }
    }
    do throws(Status) { return .success(try authenticator.caller(of: request)) } catch { return .failure(error) }
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
