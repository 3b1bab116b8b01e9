import GatewayCore

/// The query of a request to a channel (listen-and-webchannel.md, section 3.2).
struct ChannelParameters {
  /// The session ID, or `nil` in a handshake.
  private(set) var sessionID: String?
  /// The number of the last array that the client has received (`AID`).
  private(set) var acknowledged: Int?
  /// The kind of back channel that the client wants (`CI`, `TO`).
  private(set) var backChannel = ChannelSession.BackChannel.streaming
  /// Whether the client ends the channel.
  private(set) var isTerminate = false
  /// The database of the stream, as its resource name.
  private(set) var database: String?
  /// The header block of old clients (`$httpHeaders`).
  private(set) var headers: [UInt8]?

  /// Reads a query. Other parameters are for caches and proxies and are ignored.
  ///
  /// - Throws: ``ChannelFault/malformed(_:)`` if the query is malformed.
  init(_ query: UnsafeRawBufferPointer) throws(ChannelFault) {
    let parameters: QueryParameters
    do { parameters = try QueryParameters(query) } catch { throw .malformed("Malformed query") }
    guard parameters.value("VER") ?? "8" == "8" else { throw .malformed("VER is not 8") }
    sessionID = parameters.value("SID")
    isTerminate = parameters.value("TYPE") == "terminate"
    database = parameters.value("database")
    headers = parameters.value("$httpHeaders").map { Array($0.utf8) }
    if let text = parameters.value("AID") {
      guard let number = Int(text), number >= -1 else { throw .malformed("AID is not a number") }
      acknowledged = number
    }
    switch parameters.value("CI") ?? "0" {
    case "0": break
    case "1":
      let wish = parameters.value("TO").flatMap { Int($0) } ?? ChannelSession.pollMilliseconds
      backChannel = .polling(milliseconds: min(max(wish, 1000), ChannelSession.pollMilliseconds))
    default: throw .malformed("CI is neither 0 nor 1")
    }
  }
}
