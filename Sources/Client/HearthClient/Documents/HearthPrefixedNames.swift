// Alternative names for files that import another module with a type of the same name, such as SwiftUI's
// `Transaction` or SwiftData's `Query`. Writing `HearthClient.Query` also works.

/// Another name for ``User``.
public typealias HearthUser = User
/// Another name for ``Session``.
public typealias HearthSession = Session
/// Another name for ``Transaction``.
public typealias HearthTransaction = Transaction
/// Another name for ``Query``.
public typealias HearthQuery = Query
/// Another name for ``Value``.
public typealias HearthValue = Value
