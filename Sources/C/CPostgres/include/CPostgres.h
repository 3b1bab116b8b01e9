/// libpq, which the first connection to PostgreSQL loads. A server without a cluster never loads it, because it would
/// add 20 libraries to every start.
///
/// Each function `hearth_NAME` calls libpq's function `NAME`. Swift must not call libpq's own functions, which are not
/// linked.
#pragma once

#include <postgresql/libpq-fe.h>
#include <stdbool.h>

/// Loads libpq. Returns NULL, or the reason why that failed. Call no other function before this one has succeeded. Calls
/// must not overlap.
const char *_Nullable hearth_PQload(void);

/// Returns whether the text is a connection string or a URL that libpq understands.
bool hearth_PQunderstands(const char *_Nonnull text);

PGconn *_Nullable hearth_PQconnectStartParams(
    const char *_Nullable const *_Nonnull keywords, const char *_Nullable const *_Nonnull values, int expand);
PostgresPollingStatusType hearth_PQconnectPoll(PGconn *_Nonnull connection);
ConnStatusType hearth_PQstatus(const PGconn *_Nonnull connection);
int hearth_PQsocket(const PGconn *_Nonnull connection);
const char *_Nullable hearth_PQerrorMessage(const PGconn *_Nonnull connection);
int hearth_PQsetnonblocking(PGconn *_Nonnull connection, int isNonblocking);
PQnoticeReceiver _Nullable hearth_PQsetNoticeReceiver(
    PGconn *_Nonnull connection, PQnoticeReceiver _Nonnull receiver, void *_Nullable object);
void hearth_PQfinish(PGconn *_Nonnull connection);

int hearth_PQsendQuery(PGconn *_Nonnull connection, const char *_Nonnull text);
int hearth_PQsendPrepare(
    PGconn *_Nonnull connection, const char *_Nonnull name, const char *_Nonnull text, int count,
    const Oid *_Nullable types);
int hearth_PQsendQueryPrepared(
    PGconn *_Nonnull connection, const char *_Nonnull name, int count, const char *_Nullable const *_Nullable values,
    const int *_Nullable lengths, const int *_Nullable formats, int resultFormat);
int hearth_PQflush(PGconn *_Nonnull connection);
int hearth_PQconsumeInput(PGconn *_Nonnull connection);
int hearth_PQisBusy(PGconn *_Nonnull connection);
PGresult *_Nullable hearth_PQgetResult(PGconn *_Nonnull connection);

ExecStatusType hearth_PQresultStatus(const PGresult *_Nonnull result);
const char *_Nullable hearth_PQresultErrorField(const PGresult *_Nonnull result, int field);
int hearth_PQntuples(const PGresult *_Nonnull result);
int hearth_PQnfields(const PGresult *_Nonnull result);
const char *_Nullable hearth_PQcmdTuples(PGresult *_Nonnull result);
int hearth_PQgetisnull(const PGresult *_Nonnull result, int row, int column);
const char *_Nullable hearth_PQgetvalue(const PGresult *_Nonnull result, int row, int column);
int hearth_PQgetlength(const PGresult *_Nonnull result, int row, int column);
void hearth_PQclear(PGresult *_Nonnull result);
