import DatabaseService
import Transport

/// The channel of browsers: the streams `Listen` and `Write` over plain HTTP requests (listen-and-webchannel.md,
/// section 3).
///
/// - a POST without a session id opens a channel and brings its first messages along
/// - a POST with one brings messages; it is answered at once, whatever becomes of them
/// - a GET is the back channel: it hangs and carries what the server says
/// - `TYPE=terminate` ends the channel
final class WebChannelHandler: Sendable {
  /// Makes the call that a channel carries.
  typealias MakeStream = @Sendable (ChannelMethod, Caller, _ wake: @escaping @Sendable () -> Void) -> any ChannelStream

  private let authenticator: Authenticator
  private let channels: ChannelTable
  private let makeCall: MakeStream

  /// The dialect of a service.
  convenience init(_ service: FirestoreService, _ authenticator: Authenticator) {
    let decoder = StreamRequestDecoder(service)
    self.init(authenticator, channels: ChannelTable()) { method, caller, wake in
      switch method {
      case .listen: ListenChannelStream(service, decoder, as: caller, wake: wake)
      case .write: WriteChannelStream(service, decoder, as: caller, wake: wake)
      }
    }
  }

  /// A dialect whose channels carry other calls.
  init(_ authenticator: Authenticator, channels: ChannelTable, makeCall: @escaping MakeStream) {
    self.authenticator = authenticator
    self.channels = channels
    self.makeCall = makeCall
  }

  /// How many channels are open.
  var openChannels: Int { channels.count }

  /// What a path below `/google.firestore.v1.Firestore/` says, or `nil` where it is no channel's.
  static func method(_ path: UnsafeRawBufferPointer) -> ChannelMethod? {
    if path.elementsEqual("Listen/channel".utf8) { return .listen }
    return path.elementsEqual("Write/channel".utf8) ? .write : nil
  }

  /// Answers a request for a channel.
  func handle(
    _ method: ChannelMethod, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder
  ) {
    guard request.method == .post || request.method == .get else {
      return responder.sendText(405, "A channel takes POST and GET.\n")
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
      case .failure(let status): FailedChannelStream(status)
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

  /// Who opens a channel. A browser puts its headers into the form, older clients into the query.
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

  /// Ends a channel; the client does not read the answer.
  private func terminate(_ method: ChannelMethod, _ parameters: ChannelParameters, _ responder: Responder) {
    if let channel = try? channels.find(parameters.sessionID ?? "", method) { channel.onLoop { $0.terminate() } }
    responder.sendText(200, "")
  }
}
