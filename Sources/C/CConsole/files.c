// Embeds the files of the console. Tests/TidyTests/ConsoleFileTests.swift compares this list with the folder.
//
// A script comes after the scripts that it imports, because the server joins them in this order.

#include "CConsole.h"

// Clang warns that `#embed` is new in C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "files/index.html"
};
static const unsigned char console_css[] = {
#embed "files/console.css"
};
static const unsigned char early_js[] = {
#embed "files/early.js"
};
static const unsigned char core_signals_js[] = {
#embed "files/core/signals.js"
};
static const unsigned char core_dom_js[] = {
#embed "files/core/dom.js"
};
static const unsigned char core_address_js[] = {
#embed "files/core/address.js"
};
static const unsigned char core_keys_js[] = {
#embed "files/core/keys.js"
};
static const unsigned char api_session_js[] = {
#embed "files/api/session.js"
};
static const unsigned char api_client_js[] = {
#embed "files/api/client.js"
};
static const unsigned char api_values_js[] = {
#embed "files/api/values.js"
};
static const unsigned char api_feed_js[] = {
#embed "files/api/feed.js"
};
static const unsigned char model_nodes_js[] = {
#embed "files/model/nodes.js"
};
static const unsigned char model_undo_js[] = {
#embed "files/model/undo.js"
};
static const unsigned char model_tree_js[] = {
#embed "files/model/tree.js"
};
static const unsigned char model_rows_js[] = {
#embed "files/model/rows.js"
};
static const unsigned char model_shell_js[] = {
#embed "files/model/shell.js"
};
static const unsigned char model_query_js[] = {
#embed "files/model/query.js"
};
static const unsigned char model_csv_js[] = {
#embed "files/model/csv.js"
};
static const unsigned char model_pipeline_js[] = {
#embed "files/model/pipeline.js"
};
static const unsigned char model_pipeline_code_js[] = {
#embed "files/model/pipeline-code.js"
};
static const unsigned char parts_dialog_js[] = {
#embed "files/parts/dialog.js"
};
static const unsigned char parts_chart_js[] = {
#embed "files/parts/chart.js"
};
static const unsigned char parts_rules_text_js[] = {
#embed "files/parts/rules-text.js"
};
static const unsigned char parts_virtual_list_js[] = {
#embed "files/parts/virtual-list.js"
};
static const unsigned char parts_palette_js[] = {
#embed "files/parts/palette.js"
};
static const unsigned char screens_document_actions_js[] = {
#embed "files/screens/document-actions.js"
};
static const unsigned char screens_past_js[] = {
#embed "files/screens/past.js"
};
static const unsigned char screens_document_js[] = {
#embed "files/screens/document.js"
};
static const unsigned char screens_csv_import_js[] = {
#embed "files/screens/csv-import.js"
};
static const unsigned char screens_transfer_js[] = {
#embed "files/screens/transfer.js"
};
static const unsigned char screens_bulk_js[] = {
#embed "files/screens/bulk.js"
};
static const unsigned char screens_table_js[] = {
#embed "files/screens/table.js"
};
static const unsigned char screens_empty_js[] = {
#embed "files/screens/empty.js"
};
static const unsigned char screens_data_js[] = {
#embed "files/screens/data.js"
};
static const unsigned char screens_pipeline_js[] = {
#embed "files/screens/pipeline.js"
};
static const unsigned char screens_query_js[] = {
#embed "files/screens/query.js"
};
static const unsigned char screens_why_js[] = {
#embed "files/screens/why.js"
};
static const unsigned char screens_rule_tests_js[] = {
#embed "files/screens/rule-tests.js"
};
static const unsigned char screens_rule_trial_js[] = {
#embed "files/screens/rule-trial.js"
};
static const unsigned char screens_rules_file_js[] = {
#embed "files/screens/rules-file.js"
};
static const unsigned char screens_rules_js[] = {
#embed "files/screens/rules.js"
};
static const unsigned char screens_users_js[] = {
#embed "files/screens/users.js"
};
static const unsigned char screens_files_js[] = {
#embed "files/screens/files.js"
};
static const unsigned char screens_health_js[] = {
#embed "files/screens/health.js"
};
static const unsigned char screens_server_js[] = {
#embed "files/screens/server.js"
};
static const unsigned char screens_rules_in_force_js[] = {
#embed "files/screens/rules-in-force.js"
};
static const unsigned char screens_sign_in_js[] = {
#embed "files/screens/sign-in.js"
};
static const unsigned char main_js[] = {
#embed "files/main.js"
};

static const console_file files[] = {
  {"index.html", index_html, sizeof index_html},
  {"console.css", console_css, sizeof console_css},
  {"early.js", early_js, sizeof early_js},
  {"core/signals.js", core_signals_js, sizeof core_signals_js},
  {"core/dom.js", core_dom_js, sizeof core_dom_js},
  {"core/address.js", core_address_js, sizeof core_address_js},
  {"core/keys.js", core_keys_js, sizeof core_keys_js},
  {"api/session.js", api_session_js, sizeof api_session_js},
  {"api/client.js", api_client_js, sizeof api_client_js},
  {"api/values.js", api_values_js, sizeof api_values_js},
  {"api/feed.js", api_feed_js, sizeof api_feed_js},
  {"model/nodes.js", model_nodes_js, sizeof model_nodes_js},
  {"model/undo.js", model_undo_js, sizeof model_undo_js},
  {"model/tree.js", model_tree_js, sizeof model_tree_js},
  {"model/rows.js", model_rows_js, sizeof model_rows_js},
  {"model/shell.js", model_shell_js, sizeof model_shell_js},
  {"model/query.js", model_query_js, sizeof model_query_js},
  {"model/csv.js", model_csv_js, sizeof model_csv_js},
  {"model/pipeline.js", model_pipeline_js, sizeof model_pipeline_js},
  {"model/pipeline-code.js", model_pipeline_code_js, sizeof model_pipeline_code_js},
  {"parts/dialog.js", parts_dialog_js, sizeof parts_dialog_js},
  {"parts/chart.js", parts_chart_js, sizeof parts_chart_js},
  {"parts/rules-text.js", parts_rules_text_js, sizeof parts_rules_text_js},
  {"parts/virtual-list.js", parts_virtual_list_js, sizeof parts_virtual_list_js},
  {"parts/palette.js", parts_palette_js, sizeof parts_palette_js},
  {"screens/document-actions.js", screens_document_actions_js, sizeof screens_document_actions_js},
  {"screens/past.js", screens_past_js, sizeof screens_past_js},
  {"screens/document.js", screens_document_js, sizeof screens_document_js},
  {"screens/csv-import.js", screens_csv_import_js, sizeof screens_csv_import_js},
  {"screens/transfer.js", screens_transfer_js, sizeof screens_transfer_js},
  {"screens/bulk.js", screens_bulk_js, sizeof screens_bulk_js},
  {"screens/table.js", screens_table_js, sizeof screens_table_js},
  {"screens/empty.js", screens_empty_js, sizeof screens_empty_js},
  {"screens/data.js", screens_data_js, sizeof screens_data_js},
  {"screens/pipeline.js", screens_pipeline_js, sizeof screens_pipeline_js},
  {"screens/query.js", screens_query_js, sizeof screens_query_js},
  {"screens/why.js", screens_why_js, sizeof screens_why_js},
  {"screens/rule-tests.js", screens_rule_tests_js, sizeof screens_rule_tests_js},
  {"screens/rule-trial.js", screens_rule_trial_js, sizeof screens_rule_trial_js},
  {"screens/rules-file.js", screens_rules_file_js, sizeof screens_rules_file_js},
  {"screens/rules.js", screens_rules_js, sizeof screens_rules_js},
  {"screens/users.js", screens_users_js, sizeof screens_users_js},
  {"screens/files.js", screens_files_js, sizeof screens_files_js},
  {"screens/health.js", screens_health_js, sizeof screens_health_js},
  {"screens/server.js", screens_server_js, sizeof screens_server_js},
  {"screens/rules-in-force.js", screens_rules_in_force_js, sizeof screens_rules_in_force_js},
  {"screens/sign-in.js", screens_sign_in_js, sizeof screens_sign_in_js},
  {"main.js", main_js, sizeof main_js},
};

size_t console_file_count(void) { return sizeof files / sizeof files[0]; }

console_file console_file_at(size_t index) { return files[index]; }
