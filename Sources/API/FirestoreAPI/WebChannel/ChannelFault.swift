/// An error in a request to a channel. The response has HTTP status 400, and the client abandons the channel.
enum ChannelFault: Error, Equatable, CustomStringConvertible {
  /// No channel has the ID, or it was closed. The client opens a new one.
  case unknownSession
  /// The query or the form is malformed.
  case malformed(StaticString)

  // Clients search for these words, but not at the very beginning of the text.
  var description: String {
    switch self {
    case .unknownSession: "Error: Unknown SID.\n"
    case .malformed(let reason): "Error: \(reason).\n"
    }
  }

  static func == (a: ChannelFault, b: ChannelFault) -> Bool { a.description.utf8.elementsEqual(b.description.utf8) }
}
