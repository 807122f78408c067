/* What libmodsecurity 3 takes for the messages of engine-bench, through its C API.
 *
 *   modsecurity3 RULES FOLDER CASE SECONDS   ->   CPU microseconds per exchange, and how many of the messages were refused
 *
 * FOLDER has CASE.0.request, CASE.1.request ...: head and body as they come over the wire; where there is a CASE.0.response,
 * phases 3 and 4 run, too. Each exchange begins with a new transaction and ends with phase 5, as ours.
 */
#define _GNU_SOURCE
#include <modsecurity/modsecurity.h>
#include <modsecurity/rules_set.h>
#include <modsecurity/transaction.h>
#include <modsecurity/intervention.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES_MAX 256
#define HEADERS_MAX 64

typedef struct {
    char *first[3]; /* request: method, target, version; response: version, status */
    char *names[HEADERS_MAX], *values[HEADERS_MAX];
    int headers;
    unsigned char *body;
    size_t length;
} Message;

static void quit(const char *what, const char *why) {
    fprintf(stderr, "modsecurity3: %s: %s\n", what, why);
    exit(1);
}

/* 0 if there is no such file. */
static int read_message(const char *path, Message *out) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) quit(path, "cannot be read");
    text[size] = 0;
    fclose(file);
    memset(out, 0, sizeof *out);
    char *end = strstr(text, "\r\n\r\n");
    if (end == NULL) quit(path, "has no head");
    end[2] = 0;
    out->body = (unsigned char *)end + 4;
    out->length = (size_t)size - (size_t)(end + 4 - text);
    char *line = text, *next = strstr(text, "\r\n");
    *next = 0;
    for (int i = 0; i < 3; i++) out->first[i] = strsep(&line, " ");
    for (line = next + 2; *line != 0; line = next + 2) {
        next = strstr(line, "\r\n");
        *next = 0;
        char *colon = strstr(line, ": ");
        if (colon == NULL || out->headers == HEADERS_MAX) quit(path, "has a header that is none");
        *colon = 0;
        out->names[out->headers] = line;
        out->values[out->headers++] = colon + 2;
    }
    return 1;
}

static int refused(Transaction *transaction) {
    ModSecurityIntervention found;
    memset(&found, 0, sizeof found);
    found.status = 200;
    int is = msc_intervention(transaction, &found);
    free(found.url);
    free(found.log);
    return is;
}

static int phases(Transaction *transaction, const Message *request, const Message *response) {
    const char *version = strchr(request->first[2], '/');
    msc_process_connection(transaction, "192.0.2.7", 4711, "192.0.2.7", 4711);
    msc_process_uri(transaction, request->first[1], request->first[0], version ? version + 1 : "1.1");
    for (int i = 0; i < request->headers; i++) {
        msc_add_request_header(transaction, (unsigned char *)request->names[i], (unsigned char *)request->values[i]);
    }
    msc_process_request_headers(transaction);
    if (refused(transaction)) return 1;
    if (request->length > 0) msc_append_request_body(transaction, request->body, request->length);
    msc_process_request_body(transaction);
    if (refused(transaction)) return 1;
    if (response == NULL) return 0;
    for (int i = 0; i < response->headers; i++) {
        msc_add_response_header(transaction, (unsigned char *)response->names[i], (unsigned char *)response->values[i]);
    }
    msc_process_response_headers(transaction, atoi(response->first[1]), "HTTP 1.1");
    if (refused(transaction)) return 1;
    msc_append_response_body(transaction, response->body, response->length);
    msc_process_response_body(transaction);
    return refused(transaction);
}

static int exchange(ModSecurity *modsec, RulesSet *rules, const Message *request, const Message *response) {
    Transaction *transaction = msc_new_transaction(modsec, rules, NULL);
    int is_refused = phases(transaction, request, response);
    msc_process_logging(transaction);
    msc_transaction_cleanup(transaction);
    return is_refused;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void quiet(void *data, const void *line) {
    (void)data;
    (void)line;
}

int main(int count, char **arguments) {
    if (count != 5) quit("usage", "modsecurity3 RULES FOLDER CASE SECONDS");
    ModSecurity *modsec = msc_init();
    msc_set_log_cb(modsec, quiet);
    RulesSet *rules = msc_create_rules_set();
    const char *error = NULL;
    if (msc_rules_add_file(rules, arguments[1], &error) < 0) quit(arguments[1], error ? error : "refused");

    static Message requests[MESSAGES_MAX], responses[MESSAGES_MAX];
    int messages = 0, has_response = 0;
    for (; messages < MESSAGES_MAX; messages++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.%d.request", arguments[2], arguments[3], messages);
        if (!read_message(path, &requests[messages])) break;
        snprintf(path, sizeof path, "%s/%s.%d.response", arguments[2], arguments[3], messages);
        has_response = read_message(path, &responses[messages]);
    }
    if (messages == 0) quit(arguments[3], "no such case");
    long refusals = 0, exchanges = 0;
    /* The first exchange warms up. */
    exchange(modsec, rules, &requests[0], has_response ? &responses[0] : NULL);
    double end = seconds(CLOCK_MONOTONIC) + atof(arguments[4]), begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    do {
        int at = (int)(exchanges++ % messages);
        refusals += exchange(modsec, rules, &requests[at], has_response ? &responses[at] : NULL);
    } while (seconds(CLOCK_MONOTONIC) < end);
    double spent = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
    printf("%.1f %ld of %ld refused\n", spent * 1e6 / (double)exchanges, refusals, exchanges);
    return 0;
}
