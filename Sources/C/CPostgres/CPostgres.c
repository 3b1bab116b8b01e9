#include "CPostgres.h"

#include <dlfcn.h>
#include <stdio.h>

#define FUNCTIONS(F) \
  F(PQisthreadsafe) F(PQconninfoParse) F(PQconninfoFree) \
  F(PQconnectStartParams) F(PQconnectPoll) F(PQstatus) F(PQsocket) F(PQerrorMessage) F(PQsetnonblocking) \
  F(PQsetNoticeReceiver) F(PQfinish) \
  F(PQsendQuery) F(PQsendPrepare) F(PQsendQueryPrepared) F(PQflush) F(PQconsumeInput) F(PQisBusy) F(PQgetResult) \
  F(PQresultStatus) F(PQresultErrorField) F(PQntuples) F(PQnfields) F(PQcmdTuples) F(PQgetisnull) F(PQgetvalue) \
  F(PQgetlength) F(PQclear)

// The loaded functions, with the types of libpq-fe.h: `loaded.PQfinish` and so on.
#define DECLARE(name) __typeof__(name) *name;
static struct { FUNCTIONS(DECLARE) } loaded;

const char *hearth_PQload(void) {
  static char reason[256];
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, sizeof reason, "%s", dlerror());
    return reason;
  }
#define LOAD(name) \
  loaded.name = (__typeof__(name) *)dlsym(library, #name); \
  if (!loaded.name) { \
    snprintf(reason, sizeof reason, "libpq.so.5 has no function " #name); \
    return reason; \
  }
  FUNCTIONS(LOAD)
  if (loaded.PQisthreadsafe()) return NULL;
  snprintf(reason, sizeof reason, "libpq.so.5 was built without support for threads");
  return reason;
}

bool hearth_PQunderstands(const char *text) {
  PQconninfoOption *options = loaded.PQconninfoParse(text, NULL);
  if (!options) return false;
  loaded.PQconninfoFree(options);
  return true;
}

PGconn *hearth_PQconnectStartParams(const char *const *keywords, const char *const *values, int expand) {
  return loaded.PQconnectStartParams(keywords, values, expand);
}

PostgresPollingStatusType hearth_PQconnectPoll(PGconn *connection) { return loaded.PQconnectPoll(connection); }

ConnStatusType hearth_PQstatus(const PGconn *connection) { return loaded.PQstatus(connection); }

int hearth_PQsocket(const PGconn *connection) { return loaded.PQsocket(connection); }

const char *hearth_PQerrorMessage(const PGconn *connection) { return loaded.PQerrorMessage(connection); }

int hearth_PQsetnonblocking(PGconn *connection, int isNonblocking) {
  return loaded.PQsetnonblocking(connection, isNonblocking);
}

PQnoticeReceiver hearth_PQsetNoticeReceiver(PGconn *connection, PQnoticeReceiver receiver, void *object) {
  return loaded.PQsetNoticeReceiver(connection, receiver, object);
}

void hearth_PQfinish(PGconn *connection) { loaded.PQfinish(connection); }

int hearth_PQsendQuery(PGconn *connection, const char *text) { return loaded.PQsendQuery(connection, text); }

int hearth_PQsendPrepare(PGconn *connection, const char *name, const char *text, int count, const Oid *types) {
  return loaded.PQsendPrepare(connection, name, text, count, types);
}

int hearth_PQsendQueryPrepared(
    PGconn *connection, const char *name, int count, const char *const *values, const int *lengths, const int *formats,
    int resultFormat) {
  return loaded.PQsendQueryPrepared(connection, name, count, values, lengths, formats, resultFormat);
}

int hearth_PQflush(PGconn *connection) { return loaded.PQflush(connection); }

int hearth_PQconsumeInput(PGconn *connection) { return loaded.PQconsumeInput(connection); }

int hearth_PQisBusy(PGconn *connection) { return loaded.PQisBusy(connection); }

PGresult *hearth_PQgetResult(PGconn *connection) { return loaded.PQgetResult(connection); }

ExecStatusType hearth_PQresultStatus(const PGresult *result) { return loaded.PQresultStatus(result); }

const char *hearth_PQresultErrorField(const PGresult *result, int field) {
  return loaded.PQresultErrorField(result, field);
}

int hearth_PQntuples(const PGresult *result) { return loaded.PQntuples(result); }

int hearth_PQnfields(const PGresult *result) { return loaded.PQnfields(result); }

const char *hearth_PQcmdTuples(PGresult *result) { return loaded.PQcmdTuples(result); }

int hearth_PQgetisnull(const PGresult *result, int row, int column) {
  return loaded.PQgetisnull(result, row, column);
}

const char *hearth_PQgetvalue(const PGresult *result, int row, int column) {
  return loaded.PQgetvalue(result, row, column);
}

int hearth_PQgetlength(const PGresult *result, int row, int column) {
  return loaded.PQgetlength(result, row, column);
}

void hearth_PQclear(PGresult *result) { loaded.PQclear(result); }
