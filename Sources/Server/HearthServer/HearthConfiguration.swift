package import DocumentStore

/// What a server is to be. Every flag of `hearth serve` is a property here.
public struct HearthConfiguration: Sendable {
  /// Where documents are kept.
  public enum Storage: Sendable, Equatable {
    /// In memory; gone with the process.
    case inMemory
    /// In a data directory, durable. The directory is made where it is missing.
    case directory(String)
  }

  /// How a server treats who calls.
  public enum Mode: Sendable, Equatable {
    /// For development and tests: every project and database is served, unsigned tokens count, loopback only.
    case emulator
    /// For people's data: only what was declared is served, and nobody is admitted without rules.
    case production
  }

  /// A certificate and its key, to answer with TLS.
  public struct TLSFiles: Sendable, Equatable {
    /// The certificate in PEM form, followed by those that lead to a known authority.
    public var certificate: String
    /// Its private key in PEM form, without a passphrase.
    public var key: String

    /// Names the two files.
    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// An address to listen on.
  public struct Address: Sendable, Equatable {
    /// A name or a numeric address of this machine.
    public var host: String
    /// The port; 0 picks a free one.
    public var port: Int

    /// Joins a host and a port.
    public init(host: String, port: Int) {
      self.host = host
      self.port = port
    }
  }

  /// A file that says something about one database.
  public struct DatabaseFile: Sendable, Equatable {
    /// Where the file is.
    public var path: String
    /// The id of the database it is for, in every project that is served.
    public var database: String

    /// Joins a file and a database.
    public init(_ path: String, database: String = "(default)") {
      self.path = path
      self.database = database
    }
  }

  /// A file of security rules.
  public struct RulesFile: Sendable, Equatable {
    /// Where the file is.
    public var path: String
    /// The id of the database it guards, in every project; `nil` for all that have no file of their own.
    public var database: String?

    /// Joins a file and a database, or all others.
    public init(_ path: String, database: String? = nil) {
      self.path = path
      self.database = database
    }
  }

  /// An identity provider elsewhere whose tokens count here too: the `sub` of its tokens is the uid here.
  public struct IssuerFile: Sendable, Equatable {
    /// What its tokens say in `iss`, such as `https://securetoken.google.com/my-project`.
    public var issuer: String
    /// What its tokens say in `aud`.
    public var audience: String
    /// A file with its keys: a JSON Web Key Set, or certificates by key id. Read again when it changes.
    public var path: String

    /// Joins a provider and the file of its keys.
    public init(issuer: String, audience: String, path: String) {
      self.issuer = issuer
      self.audience = audience
      self.path = path
    }
  }

  /// The address to listen on.
  public var host = "127.0.0.1"
  /// The port to listen on; 0 picks a free one.
  public var port = 8080
  /// The files to speak TLS with; without them connections are plain.
  public var tls: TLSFiles?
  /// Where documents are kept.
  public var storage: Storage
  /// How callers are treated. Production unless said otherwise.
  public var mode = Mode.production
  /// The project whose `(default)` database and accounts are served in production, and the default of tools and of
  /// accounts in emulator mode.
  public var project: String?
  /// What people may do with their accounts by themselves.
  public var accounts = AccountsConfiguration()
  /// Identity providers elsewhere whose tokens count in production.
  public var trustedIssuers: [IssuerFile] = []
  /// Lets an emulator listen beyond loopback, where everybody who reaches it is admin.
  public var allowsRemoteEmulator = false
  /// Names of the databases of the enterprise edition: larger documents, BSON types, other orders of queries. A `*` at
  /// the end stands for any rest. By default none in production, and in emulator mode those that begin with `enterprise`.
  public var enterpriseDatabases: [String]?
  /// The size each database's file may grow to, in bytes. Address space, not disk: files start small.
  public var mapBytes = 64 << 30
  /// Index files (`firestore.indexes.json`), at most one for a database. A database without one keeps its indexes.
  public var indexes: [DatabaseFile] = []
  /// Refuses queries that production would refuse because an index is not declared.
  public var requiresIndexes = false
  /// Files of security rules (`firestore.rules`): one for all databases, others for databases of their own. Without
  /// any, emulator mode admits everybody and production mode nobody.
  public var rules: [RulesFile] = []
  /// Authorises queries as the official emulator does, which also lets queries through that can return documents which
  /// the rules deny. For old test suites; refused in production mode.
  public var isEmulatorCompatible = false
  /// The file of security rules for files (`storage.rules`). Without one only administrators reach files.
  public var storageRules: String?
  /// Where events are written; `nil` for nowhere. Beside it, ``warn`` and ``report`` are told the same in text.
  public var log: LogWriter?
  /// Writes one request of so many to ``log``; 1 is all, `nil` none.
  public var requestLogInterval: Int?
  /// Where operators' tools are answered without credentials (`/metrics`, `/healthz`, `/readyz`), beside the address of
  /// clients; `nil` for nowhere. Plain HTTP: it is for networks that strangers do not reach.
  public var metricsAddress: Address?
  /// A socket that listens already, to be used in place of ``host`` and ``port``; it becomes the server's.
  public var listeningSocket: Int32?
  /// Is told what goes wrong in the background, in text for people, on any thread.
  public var warn: (@Sendable (String) -> Void)?
  /// Is told what happens in the background, a line each, on any thread.
  public var report: (@Sendable (String) -> Void)?
  /// Seconds a stop waits for requests that are under way.
  public var stopGraceSeconds = 10
  /// How long databases remember what was.
  package var retention = Retention()
  /// The time of day.
  package var clock = Clock.system

  /// Creates a configuration with the defaults above.
  public init(storage: Storage) {
    self.storage = storage
  }

  /// Whether only this machine reaches what listens on a host: `localhost`, or a numeric address.
  package static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1"
      || (host.hasPrefix("127.") && host.allSatisfy { $0 == "." || ("0"..."9").contains($0) })
  }
}

/// Why a server could not start.
public enum HearthError: Error, Sendable, CustomStringConvertible {
  /// The configuration asks for something that is refused. The text says what to change.
  case configuration(String)
  /// A file the configuration names is not what it should be. The text says where and what to do.
  case data(String)
  /// The data directory cannot be used. The text says why and what to do.
  case storage(String)
  /// The address cannot be listened on.
  case listening(String)

  /// What is wrong and what to do, for people.
  public var description: String {
    switch self {
    case .configuration(let text), .data(let text), .storage(let text), .listening(let text): text
    }
  }
}
