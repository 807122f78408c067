/* A connector in small, by the C interface alone: every function, its return values, and who frees what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msc.h"

static int lines;

static void take_line(void *data, const void *line) {
    lines++;
    if (strcmp(data, "data") != 0 || strncmp(line, "ModSecurity: Warning. ", 22) != 0) abort();
}

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define B(text) ((const byte *)(text))

static const char RULES[] =
    "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n"
    "SecRule ARGS \"@contains warn\" \"id:1,phase:1,pass,log\"\n"
    "SecRule ARGS \"@contains go\" \"id:2,phase:1,redirect:https://b.example/,log\"\n"
    "SecRule ARGS_POST \"@contains evil\" \"id:3,phase:2,deny,log\"\n"
    "SecRule RESPONSE_BODY \"@contains leak\" \"id:4,phase:4,deny,log\"\n";

static Transaction *request(ModSecurity *modsec, RulesSet *rules, const char *uri) {
    Transaction *t = msc_new_transaction(modsec, rules, "data");
    CHECK(t != NULL);
    CHECK(msc_process_connection(t, "192.0.2.7", 4711, "127.0.0.1", 80) == 1);
    CHECK(msc_set_request_hostname(t, B("a.example")) == 1);
    CHECK(msc_process_uri(t, uri, "POST", "1.1") == 1);
    CHECK(msc_add_request_header(t, B("Host"), B("a.example")) == 1);
    CHECK(msc_add_n_request_header(t, B("Content-Typexxx"), 12, B("application/x-www-form-urlencoded..."), 33) == 1);
    CHECK(msc_process_request_headers(t) == 1);
    return t;
}

static void null_pointers_are_nothing(void) {
    const char *error = NULL;
    Intervention it;
    msc_set_log_cb(NULL, NULL);
    msc_set_connector_info(NULL, NULL);
    msc_cleanup(NULL);
    msc_rules_dump(NULL);
    CHECK(msc_rules_add(NULL, NULL, &error) == -1);
    msc_rules_error_cleanup(error);
    CHECK(msc_rules_add_file(NULL, NULL, NULL) == -1);
    CHECK(msc_rules_merge(NULL, NULL, NULL) == -1);
    msc_rules_cleanup(NULL);
    CHECK(msc_new_transaction(NULL, NULL, NULL) == NULL);
    CHECK(msc_process_uri(NULL, NULL, NULL, NULL) == 0);
    CHECK(msc_intervention(NULL, &it) == 0);
    CHECK(msc_get_response_body(NULL)[0] == 0);
    CHECK(msc_get_request_body_length(NULL) == 0);
    msc_intervention_cleanup(NULL);
    msc_transaction_cleanup(NULL);
}

int main(int argc, char **argv) {
    const char *error = NULL;
    Intervention it = {200, 0, NULL, NULL, 0};
    ModSecurity *modsec = msc_init();
    RulesSet *rules = msc_create_rules_set(), *empty = msc_create_rules_set();
    Transaction *t;
    CHECK(argc == 2);
    null_pointers_are_nothing();
    CHECK(strstr(msc_who_am_i(modsec), "Portcullis") != NULL);
    msc_set_connector_info(modsec, "program v1");
    msc_set_log_cb(modsec, take_line);
    CHECK(msc_rules_add(rules, RULES, &error) == 4);
    CHECK(msc_rules_add(rules, "SecRule ARGZ a id:9\n", &error) == -1);
    CHECK(strstr(error, "Line: 1. Column: 9.") != NULL);
    msc_rules_error_cleanup(error);
    CHECK(msc_rules_add_file(rules, "/nonexistent.conf", &error) == -1);
    msc_rules_error_cleanup(error);
    CHECK(msc_rules_add_remote(rules, "key", "https://127.0.0.1:1/", &error) == -1);
    msc_rules_error_cleanup(error);
    CHECK(msc_rules_merge(rules, rules, &error) == -1);
    msc_rules_error_cleanup(error);
    CHECK(msc_rules_merge(empty, rules, &error) == 4);
    msc_rules_dump(empty);

    t = request(modsec, empty, "/?q=warn");
    CHECK(msc_intervention(t, &it) == 0 && it.status == 200 && lines == 1);
    CHECK(msc_append_request_body(t, B("a=ev"), 4) == 1);
    CHECK(msc_append_request_body(t, B("il"), 2) == 1);
    CHECK(msc_get_request_body_length(t) == 6);
    CHECK(msc_process_request_body(t) == 1);
    CHECK(msc_intervention(t, &it) == 1 && it.status == 403 && it.disruptive == 1 && it.url == NULL);
    CHECK(strstr(it.log, "[id \"3\"]") != NULL);
    free(it.log);
    CHECK(msc_update_status_code(t, 403) == 1);
    CHECK(msc_process_logging(t) == 1);
    msc_transaction_cleanup(t);

    t = request(modsec, empty, "/?q=go");
    CHECK(msc_intervention(t, &it) == 1 && it.status == 302 && strcmp(it.url, "https://b.example/") == 0);
    msc_transaction_cleanup(t);
    CHECK(strcmp(it.url, "https://b.example/") == 0); /* it outlives the transaction */
    msc_intervention_cleanup(&it);
    CHECK(it.url == NULL && it.log == NULL);

    t = request(modsec, empty, "/");
    CHECK(msc_request_body_from_file(t, argv[1]) == 1);
    CHECK(msc_process_request_body(t) == 1);
    CHECK(msc_intervention(t, &it) == 1);
    msc_intervention_cleanup(&it);
    msc_transaction_cleanup(t);

    t = msc_new_transaction_with_id(modsec, empty, "an-id", "data");
    CHECK(msc_add_response_header(t, B("Content-Type"), B("text/html")) == 1);
    CHECK(msc_add_n_response_header(t, B("X"), 1, B("y"), 1) == 1);
    CHECK(msc_process_response_headers(t, 200, "HTTP 1.1") == 1);
    CHECK(msc_append_response_body(t, B("a leak"), 6) == 1);
    CHECK(msc_process_response_body(t) == 1);
    CHECK(msc_get_response_body_length(t) == 6 && strcmp(msc_get_response_body(t), "a leak") == 0);
    CHECK(msc_intervention(t, &it) == 1 && strstr(it.log, "[unique_id \"an-id\"]") != NULL);
    msc_intervention_cleanup(&it);

    /* Rules and instance may go before the transaction. */
    msc_rules_cleanup(empty);
    msc_rules_cleanup(rules);
    msc_cleanup(modsec);
    CHECK(msc_process_logging(t) == 1);
    msc_transaction_cleanup(t);
    puts("all well");
    return 0;
}
