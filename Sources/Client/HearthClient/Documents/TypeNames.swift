// Names for where another module has a type of the same name, such as SwiftUI's `Transaction` or SwiftData's `Query`. The
// module's own name cannot tell them apart, for it is that of a type too.

/// Another name of ``User``.
public typealias HearthUser = User
/// Another name of ``Session``.
public typealias HearthSession = Session
/// Another name of ``Transaction``.
public typealias HearthTransaction = Transaction
/// Another name of ``Query``.
public typealias HearthQuery = Query
/// Another name of ``Value``.
public typealias HearthValue = Value
