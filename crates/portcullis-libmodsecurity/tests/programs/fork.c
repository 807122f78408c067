/* A server in small that forks: rules are read by the parent, transactions run in children at the same time and write to
   the same audit log. Arguments: the folder for logs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "msc.h"

enum { CHILDREN = 4, TRANSACTIONS = 250 };

static void ignore(void *data, const void *line) { (void)data; (void)line; }

static int child(ModSecurity *modsec, RulesSet *rules, int number) {
    for (int i = 0; i < TRANSACTIONS; i++) {
        Intervention it = {200, 0, NULL, NULL, 0};
        char uri[64];
        Transaction *t = msc_new_transaction(modsec, rules, NULL);
        snprintf(uri, sizeof uri, "/evil?child=%d&number=%d", number, i);
        msc_process_connection(t, "127.0.0.1", 4711, "127.0.0.1", 80);
        msc_process_uri(t, uri, "GET", "1.1");
        msc_process_request_headers(t);
        msc_process_request_body(t);
        if (msc_intervention(t, &it) != 1 || it.status != 403) return 1;
        free(it.log);
        msc_process_logging(t);
        msc_transaction_cleanup(t);
    }
    return 0;
}

int main(int argc, char **argv) {
    char text[1024];
    const char *error = "none";
    ModSecurity *modsec = msc_init();
    RulesSet *rules = msc_create_rules_set();
    int status, failed = 0;
    if (argc != 2) return 2;
    msc_set_log_cb(modsec, ignore);
    snprintf(text, sizeof text,
        "SecRuleEngine On\nSecRule REQUEST_URI evil \"id:1,phase:1,deny,log\"\nSecAuditEngine On\n"
        "SecAuditLogParts ABHZ\nSecAuditLogType Serial\nSecAuditLog %s/audit.log\n", argv[1]);
    if (msc_rules_add(rules, text, &error) != 1) {
        fprintf(stderr, "%s\n", error);
        return 3;
    }
    for (int number = 0; number < CHILDREN; number++)
        if (fork() == 0) _exit(child(modsec, rules, number));
    for (int number = 0; number < CHILDREN; number++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}
