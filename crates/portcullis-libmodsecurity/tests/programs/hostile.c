/* Calls of a connector in any order, with any bytes, in memory that ends where they end, so that valgrind sees what
   reads beyond them. Arguments: how many transactions, and a socket for events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msc.h"

static unsigned long long state = 88172645463325252ULL;

static unsigned below(unsigned bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % bound);
}

static const char *const WORDS[] = {
    "evil", "go", "/?q=", "%00", "\r\n", "text/html", "multipart/form-data; boundary=a", "--a\r\n", "--a--", "{\"a\":[",
    "application/json", "<a b='c'>", "text/xml", "Content-Type", "Content-Length", "Transfer-Encoding", "Cookie",
    "GET", "POST", "1.1", "2.0", "HTTP 1.1", "192.0.2.1", "::1", "\xff\xfe", "\xc3", "' or 1=1 --", "application/x-www-form-urlencoded",
};
enum { WORD_COUNT = sizeof WORDS / sizeof *WORDS };

/* Bytes on the heap; as many as *length says, with a NUL behind if it is NULL. NULL now and then. */
static byte *any(size_t *length) {
    byte piece[4096];
    size_t used = 0;
    byte *made;
    if (below(20) == 0) {
        if (length) *length = below(2);
        return NULL;
    }
    for (unsigned parts = below(6); parts > 0 && used < 3000; parts--) {
        if (below(3)) {
            const char *word = WORDS[below(WORD_COUNT)];
            memcpy(piece + used, word, strlen(word));
            used += strlen(word);
        } else {
            for (unsigned count = below(200); count > 0; count--) piece[used++] = (byte)below(256);
        }
    }
    if (!length) {
        for (size_t at = 0; at < used; at++) if (!piece[at]) piece[at] = 1;
        piece[used++] = 0;
    } else {
        *length = used;
    }
    made = malloc(used ? used : 1);
    memcpy(made, piece, used);
    return made;
}

/* A text now and then, mostly what a connector says. */
static char *usual(const char *text) {
    char *made;
    if (below(4) == 0) return (char *)any(NULL);
    made = malloc(strlen(text) + 1);
    strcpy(made, text);
    return made;
}

static unsigned long seen;

static void take_line(void *data, const void *line) {
    if (data) abort();
    seen += strlen(line);
}

static void step(Transaction *t) {
    size_t a = 0, b = 0;
    byte *one = NULL, *two = NULL;
    char *text = NULL, *more = NULL, *third = NULL;
    Intervention it = {200, 0, NULL, NULL, 0};
    switch (below(20)) {
    case 0:
        text = usual("192.0.2.7"), more = usual("127.0.0.1");
        msc_process_connection(t, text, (int)below(70000) - 100, more, 80);
        break;
    case 1: case 2:
        text = usual("/?q=1"), more = usual("POST"), third = usual("1.1");
        msc_process_uri(t, text, more, third);
        break;
    case 3: one = any(NULL), two = any(NULL), msc_add_request_header(t, one, two); break;
    case 4: case 5: one = any(&a), two = any(&b), msc_add_n_request_header(t, one, a, two, b); break;
    case 6: msc_process_request_headers(t); break;
    case 7: case 8: one = any(&a), msc_append_request_body(t, one, a); break;
    case 9: text = usual("/nonexistent"), msc_request_body_from_file(t, text); break;
    case 10: msc_process_request_body(t); break;
    case 11: one = any(NULL), two = any(NULL), msc_add_response_header(t, one, two); break;
    case 12: one = any(&a), two = any(&b), msc_add_n_response_header(t, one, a, two, b); break;
    case 13: text = usual("HTTP 1.1"), msc_process_response_headers(t, (int)below(1200) - 100, text); break;
    case 14: one = any(&a), msc_append_response_body(t, one, a); break;
    case 15: msc_process_response_body(t); break;
    case 16: {
        const char *body = msc_get_response_body(t);
        seen += msc_get_response_body_length(t) + msc_get_request_body_length(t);
        if (body) seen += strlen(body);
        break;
    }
    case 17:
        if (msc_intervention(t, &it)) {
            if (it.log) seen += strlen(it.log);
            if (it.url) seen += strlen(it.url);
        }
        msc_intervention_cleanup(&it);
        break;
    case 18: msc_update_status_code(t, (int)below(2000) - 500), one = any(NULL), msc_set_request_hostname(t, one); break;
    case 19: if (below(4) == 0) msc_process_logging(t); break;
    }
    free(one), free(two), free(text), free(more), free(third);
}

int main(int argc, char **argv) {
    static const char rules[] =
        "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\nSecResponseBodyMimeType text/html\n"
        "SecRequestBodyLimit 5000\nSecResponseBodyLimit 5000\nSecSemanticDetector Strict\n"
        "SecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:5,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n"
        "SecRule REQUEST_HEADERS:Content-Type \"@contains xml\" \"id:6,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n"
        "SecRule REQUEST_HEADERS|ARGS|REQUEST_URI \"@rx (?i)or|\\x00\" \"id:1,phase:1,pass,log,logdata:'%{MATCHED_VAR}'\"\n"
        "SecRule ARGS|REQUEST_BODY \"@contains evil\" \"id:2,phase:2,deny,log\"\n"
        "SecRule ARGS \"@contains go\" \"id:3,phase:2,redirect:http://b/%{MATCHED_VAR},log\"\n"
        "SecRule RESPONSE_HEADERS|RESPONSE_BODY \"@contains evil\" \"id:4,phase:4,deny,log\"\n";
    ModSecurity *modsec = msc_init();
    RulesSet *set = msc_create_rules_set();
    const char *error = NULL;
    char more[300];
    if (argc != 3) return 2;
    snprintf(more, sizeof more, "SecEventSocket %s\n", argv[2]);
    if (msc_rules_add(set, rules, &error) != 6 || msc_rules_add(set, more, &error) != 0) {
        fprintf(stderr, "%s\n", error ? error : "no error is told");
        return 1;
    }
    msc_set_log_cb(modsec, take_line);
    for (int left = atoi(argv[1]); left > 0; left--) {
        char *id = below(2) ? (char *)any(NULL) : NULL;
        Transaction *t = below(2) ? msc_new_transaction(modsec, set, NULL)
                                  : msc_new_transaction_with_id(modsec, set, id, NULL);
        free(id);
        for (unsigned steps = below(40); steps > 0; steps--) step(t);
        if (below(8)) msc_process_logging(t);
        msc_transaction_cleanup(t);
        if (below(16) == 0) {
            /* Rules of any bytes; most are a mistake, which is told. */
            RulesSet *other = msc_create_rules_set();
            char *text = (char *)any(NULL);
            if (msc_rules_add(other, text, &error) < 0) {
                seen += strlen(error);
                msc_rules_error_cleanup(error);
            }
            if (msc_rules_merge(other, set, &error) < 0) msc_rules_error_cleanup(error);
            msc_rules_cleanup(other);
            free(text);
        }
    }
    msc_rules_cleanup(set);
    msc_cleanup(modsec);
    printf("all well, %lu bytes seen\n", seen);
    return 0;
}
