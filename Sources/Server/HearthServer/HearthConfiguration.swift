package import Basics
package import ContentSharing
package import DatabaseService
package import DocumentModel
package import DocumentStore
package import IdentityService

/// The configuration of a server. Every flag of `hearth serve` is a property here.
public struct HearthConfiguration: Sendable {
  /// The place where documents are stored.
  public enum Storage: Sendable, Equatable {
    /// In memory. The documents are lost when the process ends.
    case inMemory
    /// In a data directory, durably. The directory is created if it does not exist.
    case directory(String)
  }

  /// The policy for unauthenticated callers and undeclared databases.
  public enum Mode: Sendable, Equatable {
    /// For development and tests: the server accepts every project and database, and unsigned tokens. It listens on
    /// loopback only.
    case emulator
    /// For real users: the server accepts only declared databases, and denies all requests of clients without
    /// rules.
    case production
  }

  /// The files of a TLS certificate and its key.
  public struct TLSFiles: Sendable, Equatable {
    /// The certificate in PEM form, followed by the intermediate certificates up to a known authority.
    public var certificate: String
    /// The private key in PEM form, without a passphrase.
    public var key: String

    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// An address to listen on.
  public struct Address: Sendable, Equatable {
    /// A host name or numeric address of this machine.
    public var host: String
    /// The port, or 0 to choose a free one.
    public var port: Int

    public init(host: String, port: Int) {
      self.host = host
      self.port = port
    }
  }

  /// A further port of emulator mode, on which apps and tools expect a service of Firebase's Emulator Suite. All ports
  /// listen on ``host``, and each serves all APIs.
  public struct EmulatorPort: Sendable, Equatable {
    /// A service that has a port of its own in the Emulator Suite.
    public enum Service: String, Sendable, CaseIterable {
      case auth, storage
      /// The list of the services.
      case hub

      /// The port that the Emulator Suite uses by default.
      public var defaultPort: Int {
        switch self {
        case .auth: 9099
        case .storage: 9199
        case .hub: 4400
        }
      }
    }

    public var service: Service
    /// The port, or 0 to choose a free one.
    public var port: Int
    /// Whether the server does not start if the port is in use. If not, the server logs a warning.
    public var isRequired: Bool
    /// Whether `firebase.json` names the port, for the advice if the port is in use.
    package var isOfFirebaseFile = false

    public init(_ service: Service, port: Int, isRequired: Bool = true) {
      self.service = service
      self.port = port
      self.isRequired = isRequired
    }
  }

  /// A configuration file of one database.
  public struct DatabaseFile: Sendable, Equatable {
    public var path: String
    /// The ID of the database, in every served project.
    public var database: String

    public init(_ path: String, database: String = "(default)") {
      self.path = path
      self.database = database
    }
  }

  /// A file of security rules.
  public struct RulesFile: Sendable, Equatable {
    public var path: String
    /// The ID of the database that the rules protect, in every project, or `nil` for all databases without a file
    /// of their own.
    public var database: String?

    public init(_ path: String, database: String? = nil) {
      self.path = path
      self.database = database
    }
  }

  /// Another identity provider whose tokens the server accepts. The `sub` of its tokens is used as the uid.
  public struct IssuerFile: Sendable, Equatable {
    /// The `iss` claim of its tokens, such as `https://securetoken.google.com/my-project`.
    public var issuer: String
    /// The `aud` claim of its tokens.
    public var audience: String
    /// The path of a file with its keys: a JSON Web Key Set, or certificates by key ID. The server reloads it when
    /// it changes.
    public var path: String

    public init(issuer: String, audience: String, path: String) {
      self.issuer = issuer
      self.audience = audience
      self.path = path
    }
  }

  /// An identity provider whose tokens the server accepts, and whose keys it fetches.
  public struct OnlineIssuer: Sendable, Equatable {
    /// The `iss` claim of its tokens, a URL. Its discovery document is below it.
    public var issuer: String
    /// The `aud` claim of its tokens.
    public var audience: String
    /// The URL of its keys, or `nil` to use the one that its discovery document names.
    public var keysURL: String?

    public init(issuer: String, audience: String, keysURL: String? = nil) {
      self.issuer = issuer
      self.audience = audience
      self.keysURL = keysURL
    }
  }

  /// A web app that the server hosts.
  public struct HostedSite: Sendable, Equatable {
    /// The host of its requests, or `nil` for all hosts without an app of their own.
    public var host: String?
    /// A folder with the files of the app, or a `firebase.json`, whose `hosting` names the folder and the rules.
    public var path: String
    /// The `target` or `site` of an entry in the `firebase.json`, or `nil` for the first entry.
    public var target: String?

    public init(_ path: String, host: String? = nil, target: String? = nil) {
      self.path = path
      self.host = host
      self.target = target
    }
  }

  /// The host name or address to listen on.
  public var host = "127.0.0.1"
  /// The port to listen on, or 0 to choose a free one.
  public var port = 8080
  /// Further ports to listen on, in emulator mode only. One port is enough for clients that know it.
  public var emulatorPorts: [EmulatorPort] = []
  /// The URL at which clients on other machines reach the server, such as `https://db.example.com`. New keys of
  /// programs contain it.
  public var publicURL: String?
  /// The certificate files for TLS. If `nil`, the server uses plain HTTP.
  public var tls: TLSFiles?
  /// The place where documents are stored.
  public var storage: Storage
  /// Whether the server runs for development or for real users.
  public var mode = Mode.production
  /// The mode in the form of the layers below, which users of the library do not see.
  package var serverMode: ServerMode { mode == .emulator ? .emulator : .production }
  /// The project whose `(default)` database and accounts the server serves in production. In emulator mode, the
  /// default project of tools and accounts.
  public var project: String?
  /// The IDs of the databases of ``project`` that the server serves in production.
  public var databases = [DatabaseID.defaultDatabase]
  /// Returns the projects that a production server serves besides ``project``, or `nil` if it serves only that one.
  /// Called at the start and with each ``Server/reload()``, on any thread. If one of them is ``project``, its own
  /// configuration replaces this one. If the function throws at the start, the server does not start. Later, the server
  /// continues to serve the projects that it serves.
  public var loadProjects: (@Sendable () throws(HearthError) -> [ProjectSource])?
  /// The folder with the configuration files of a project that has one. No client may read it.
  package var folder: String?
  /// Whether the configuration is that of one of several projects.
  package var isOneOfSeveral = false
  /// The owner of the files of the project; see ``DataDirectory/filesFolder(of:in:)``.
  package var filesOwner: String?
  /// The databases that the server serves in production.
  package var declaredDatabases: Set<DatabaseID> {
    guard let project else { return [] }
    return Set(databases.compactMap { DatabaseID(project: project, database: $0) })
  }
  /// The configuration of user accounts.
  public var accounts = AccountsConfiguration()
  /// Other identity providers whose tokens the server accepts in production.
  public var trustedIssuers: [IssuerFile] = []
  /// The other identity providers whose keys the server fetches. They need ``fetchDocument``.
  public var onlineIssuers: [OnlineIssuer] = []
  /// Fetches the document at a URL, for ``onlineIssuers``. It may block. The server itself has no HTTP client.
  public var fetchDocument: (@Sendable (_ url: String) throws -> FetchedDocument)?
  /// Sends requests to the providers of ``AccountsConfiguration/signInProviders``. It may block.
  package var providerFetch: ProviderFetch?
  /// Lets an emulator listen beyond loopback. Every client that can reach it then has admin access.
  public var allowsRemoteEmulator = false
  /// The names of databases of the enterprise edition, which has larger documents, BSON types and other query
  /// orders. A trailing `*` matches any suffix. If `nil`, production has no such database, and emulator mode uses
  /// `enterprise*`.
  public var enterpriseDatabases: [String]?
  /// The largest size of each database file, in bytes. This reserves address space, not disk space.
  public var mapBytes = 64 << 30
  /// Puts a commit log in front of each database that is stored on disk. Off by default; `hearth serve` switches it on.
  package var usesCommitLog = false
  /// Index files (`firestore.indexes.json`), at most one per database. A database without a file keeps its indexes.
  public var indexes: [DatabaseFile] = []
  /// Whether to reject queries that production rejects because an index is not declared.
  public var requiresIndexes = false
  /// Files of security rules (`firestore.rules`): one for all databases, and others for single databases. Without
  /// rules, emulator mode allows everything, and production mode allows only administrators.
  public var rules: [RulesFile] = []
  /// Whether to authorize queries like the official emulator, which also allows queries that can return documents
  /// denied by the rules. For old test suites; rejected in production mode.
  public var isEmulatorCompatible = false
  /// The file of security rules for files (`storage.rules`). Without rules, only administrators can access files.
  public var storageRules: String?
  /// The web apps that the server hosts.
  public var hosting: [HostedSite] = []
  /// Returns the web apps after a change of the configuration, or `nil` if ``hosting`` cannot change. Called with each
  /// ``Server/reload()``, on any thread. If it throws, the server continues to serve the apps that it serves.
  public var loadHosting: (@Sendable () throws(HearthError) -> [HostedSite])?
  /// A folder with the files of the Firebase web SDK, in a folder for each version. If `nil`, requests for them are
  /// redirected to Google.
  public var webSDK: String?
  /// The destination of log events, or `nil` for none. ``warn`` and ``report`` receive the same events as text.
  public var log: LogWriter?
  /// Logs one of this many requests to ``log``. 1 logs all, `nil` none.
  public var requestLogInterval: Int?
  /// An additional address that serves operators' tools (`/metrics`, `/healthz`, `/readyz`) without credentials, or
  /// `nil` for none. It uses plain HTTP, so choose a network that untrusted clients cannot reach.
  public var metricsAddress: Address?
  /// A listening socket to use instead of ``host`` and ``port``. The server takes ownership of it.
  public var listeningSocket: Int32?
  /// Called with a text for each problem in the background, on any thread.
  public var warn: (@Sendable (String) -> Void)?
  /// Called with a line for each event in the background, on any thread.
  public var report: (@Sendable (String) -> Void)?
  /// The time for which ``Server/stop()`` waits for active requests, in seconds.
  public var stopGraceSeconds = 10
  /// The time for which databases keep old versions.
  package var retention = Retention()
  package var clock = Clock.system
  /// Whether an emulator serves the console and logs requests for it.
  public var hasConsole = true
  /// The address at which a production server serves the console to operators, or `nil` for none. It is not that of the
  /// apps, so that browsers isolate the console from their pages.
  public var consoleAddress: Address?
  /// The name under which browsers open the console, besides addresses and names that no site of the Internet can have.
  public var consoleHost: String?
  /// The configuration as JSON for the console, without secrets.
  package var shownConfiguration: [UInt8]?
  /// Passes the backups that the server makes as JSON, for the console; see `BackupActions`.
  package var listBackups: (@Sendable (_ take: @escaping @Sendable ([UInt8]) -> Void) -> Bool)?
  /// Begins a backup in the background, for the console. Returns `false` if one is under way.
  package var createBackup: (@Sendable () -> Bool)?
  /// The limits of what callers may request in a minute.
  package var rates = RequestRates()
  /// The outcomes of the backups that a program makes while the server runs, for metrics.
  package var backups: BackupOutcomes?
  /// The quotas of the project. Several projects have each these quotas, unless they set their own.
  package var quotas = QuotaLimits()
  /// Returns the quotas after a change of the configuration, or `nil` if ``quotas`` cannot change. Called with each
  /// ``Server/reload()``, on any thread. If it throws, the current quotas stay in force.
  package var loadQuotas: (@Sendable () throws(HearthError) -> QuotaLimits)?
  /// The place in which the nodes of a cluster share the content of files, or `nil` if it is only in the data directory.
  package var sharedFiles: (any SharedContent)?
  /// The size of the cache of that content on this node, in bytes.
  package var sharedFilesCacheBytes = 16 << 30
  /// The addresses and networks of the proxies on other machines whose headers about the client are trusted, such as
  /// `10.0.0.7` or `10.0.0.0/8`.
  public var trustedProxies: [String] = []
  /// How the server takes part in a cluster, or `nil` if it is a server alone. The project, the rules and the indexes are
  /// then those of the cluster.
  package var cluster: ClusterSettings?
  /// Called with the reason, on any thread, if the server cannot continue: the program should stop it, and end with an error.
  package var fail: (@Sendable (String) -> Void)?
  /// The observer of all decisions of rules, in emulator mode only.
  package var accessObserver: (any AccessObserver)?
  /// The memory and the temporary files of queries.
  package var scratchBudget = ScratchBudget.process
  /// The memory of unfinished commits, or `nil` for that of the process.
  package var commitMemory: MemoryShare?

  /// Creates a configuration with the defaults above.
  public init(storage: Storage) {
    self.storage = storage
  }

  /// Returns whether only this machine can reach a listener on `host`: `localhost` or a loopback address.
  package static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1"
      || (host.hasPrefix("127.") && host.allSatisfy { $0 == "." || ("0"..."9").contains($0) })
  }
}

/// A reason why a server could not start.
public enum HearthError: Error, Sendable, CustomStringConvertible {
  /// The configuration contains a value that is not allowed. The text says what to change.
  case configuration(String)
  /// A configuration file is not valid: the text contains the location and the remedy. Or a test server rejects an
  /// account: the text contains the reason.
  case data(String)
  /// The data directory cannot be used. The text contains the reason and the remedy.
  case storage(String)
  /// The server cannot listen on the address.
  case listening(String)

  /// The reason and the remedy, as text for people.
  public var description: String {
    switch self {
    case .configuration(let text), .data(let text), .storage(let text), .listening(let text): text
    }
  }
}
