/* libmodsecurity 3 behind a pipe: rule sets and exchanges in on stdin, what came of them out on stdout.
 *
 * All numbers are 32 bits, little-endian; a text is its length and its bytes.
 *
 *   'R' text                      a rule set, in place of the last   ->  'O', or 'E' text
 *   'X' exchange                  an exchange                        ->  'X' outcome
 *
 * exchange: client address, client port, server address, server port, target, method, version ("1.1"), number of
 *           headers, name and value of each, body, 0 or 1: has a response; if so status, protocol, number of headers,
 *           name and value of each, body
 * outcome:  phase of the interruption or 0, its status, its location, the environment variable that the last rule
 *           wrote (DUMP), number of log lines, each log line
 *
 * It ends with its input. Anything unexpected in it ends the process: the harness starts another.
 */
#include <modsecurity/modsecurity.h>
#include <modsecurity/rules_set.h>
#include <modsecurity/transaction.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <modsecurity/intervention.h>

#define DUMP "PORTCULLIS_DUMP"
#define LENGTH_MAX (16u << 20)
#define LINES_MAX 4096u

typedef struct {
    char *bytes; /* a zero byte follows */
    uint32_t length;
} Text;

/* Where answers go. The library itself prints to stdout now and then. */
static FILE *out;

static char *log_lines[LINES_MAX];
static uint32_t log_count;

static void quit(const char *why) {
    fprintf(stderr, "modsecurity3 driver: %s\n", why);
    exit(3);
}

static int try_number(uint32_t *out) {
    unsigned char b[4];
    if (fread(b, 1, 4, stdin) != 4) return 0;
    *out = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return 1;
}

static uint32_t number(void) {
    uint32_t n = 0;
    if (!try_number(&n)) quit("the input ends inside a frame");
    return n;
}

static Text text(void) {
    Text t;
    t.length = number();
    if (t.length > LENGTH_MAX) quit("a text is too long");
    t.bytes = malloc((size_t)t.length + 1);
    if (t.bytes == NULL) quit("no memory");
    if (fread(t.bytes, 1, t.length, stdin) != t.length) quit("the input ends inside a text");
    t.bytes[t.length] = 0;
    return t;
}

static void put_number(uint32_t n) {
    unsigned char b[4] = {n & 255, n >> 8 & 255, n >> 16 & 255, n >> 24 & 255};
    fwrite(b, 1, 4, out);
}

static void put_text(const char *t) {
    size_t length = t == NULL ? 0 : strlen(t);
    put_number((uint32_t)length);
    fwrite(t, 1, length, out);
}

static void on_log(void *data, const void *line) {
    (void)data;
    if (log_count < LINES_MAX) log_lines[log_count++] = strdup((const char *)line);
}

/* 1 if the transaction was interrupted; the first interruption counts. */
static int interrupted(Transaction *transaction, ModSecurityIntervention *first) {
    ModSecurityIntervention now;
    memset(&now, 0, sizeof now);
    now.status = 200;
    if (!msc_intervention(transaction, &now)) return 0;
    *first = now;
    free(now.log);
    first->log = NULL;
    return 1;
}

/* Without a transaction they are only read. */
static void headers(Transaction *transaction, int response) {
    uint32_t count = number();
    for (uint32_t i = 0; i < count; i++) {
        Text name = text(), value = text();
        const unsigned char *n = (unsigned char *)name.bytes, *v = (unsigned char *)value.bytes;
        if (transaction == NULL) (void)response;
        else if (response) msc_add_n_response_header(transaction, n, name.length, v, value.length);
        else msc_add_n_request_header(transaction, n, name.length, v, value.length);
        free(name.bytes);
        free(value.bytes);
    }
}

static void exchange(ModSecurity *modsec, RulesSet *rules) {
    ModSecurityIntervention found;
    uint32_t phase = 0;
    memset(&found, 0, sizeof found);
    unsetenv(DUMP);
    Transaction *transaction = msc_new_transaction(modsec, rules, NULL);

    Text client = text();
    uint32_t client_port = number();
    Text server = text();
    uint32_t server_port = number();
    Text target = text(), method = text(), version = text();
    msc_process_connection(transaction, client.bytes, (int)client_port, server.bytes, (int)server_port);
    msc_process_uri(transaction, target.bytes, method.bytes, version.bytes);
    headers(transaction, 0);
    msc_process_request_headers(transaction);
    if (interrupted(transaction, &found)) phase = 1;

    Text body = text();
    if (phase == 0) {
        if (body.length > 0) {
            msc_append_request_body(transaction, (unsigned char *)body.bytes, body.length);
        }
        msc_process_request_body(transaction);
        if (interrupted(transaction, &found)) phase = 2;
    }
    if (number() != 0) {
        uint32_t status = number();
        Text protocol = text();
        headers(phase == 0 ? transaction : NULL, 1);
        Text answer = text();
        if (phase == 0) {
            msc_process_response_headers(transaction, (int)status, protocol.bytes);
            if (interrupted(transaction, &found)) phase = 3;
        }
        if (phase == 0) {
            if (answer.length > 0) {
                msc_append_response_body(transaction, (unsigned char *)answer.bytes, answer.length);
            }
            msc_process_response_body(transaction);
            if (interrupted(transaction, &found)) phase = 4;
        }
        free(protocol.bytes);
        free(answer.bytes);
    }
    msc_process_logging(transaction);

    fputc('X', out);
    put_number(phase);
    put_number(phase == 0 ? 0 : (uint32_t)found.status);
    put_text(found.url);
    put_text(getenv(DUMP));
    put_number(log_count);
    for (uint32_t i = 0; i < log_count; i++) {
        put_text(log_lines[i]);
        free(log_lines[i]);
    }
    log_count = 0;
    free(found.url);
    free(client.bytes);
    free(server.bytes);
    free(target.bytes);
    free(method.bytes);
    free(version.bytes);
    free(body.bytes);
    msc_transaction_cleanup(transaction);
}

int main(void) {
    int answers = dup(STDOUT_FILENO);
    out = answers < 0 ? NULL : fdopen(answers, "wb");
    if (out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) quit("stdout cannot be moved");
    ModSecurity *modsec = msc_init();
    msc_set_connector_info(modsec, "portcullis-differential");
    msc_set_log_cb(modsec, on_log);
    RulesSet *rules = msc_create_rules_set();
    for (;;) {
        int kind = getchar();
        if (kind == EOF) break;
        if (kind == 'R') {
            const char *error = NULL;
            Text source = text();
            msc_rules_cleanup(rules);
            rules = msc_create_rules_set();
            if (msc_rules_add(rules, source.bytes, &error) < 0) {
                fputc('E', out);
                put_text(error == NULL ? "refused" : error);
            } else {
                fputc('O', out);
            }
            free((void *)error);
            free(source.bytes);
        } else if (kind == 'X') {
            exchange(modsec, rules);
        } else {
            quit("an unknown frame");
        }
        fflush(out);
    }
    msc_rules_cleanup(rules);
    msc_cleanup(modsec);
    return 0;
}
