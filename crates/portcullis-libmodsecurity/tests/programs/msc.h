/* The C interface, as far as the programs here call it. */
#include <stddef.h>

typedef struct ModSecurity ModSecurity;
typedef struct RulesSet RulesSet;
typedef struct Transaction Transaction;
typedef struct { int status, pause; char *url, *log; int disruptive; } Intervention;
typedef unsigned char byte;

ModSecurity *msc_init(void);
const char *msc_who_am_i(ModSecurity *);
void msc_set_connector_info(ModSecurity *, const char *);
void msc_set_log_cb(ModSecurity *, void (*)(void *, const void *));
void msc_cleanup(ModSecurity *);
RulesSet *msc_create_rules_set(void);
void msc_rules_dump(const RulesSet *);
int msc_rules_merge(RulesSet *, RulesSet *, const char **);
int msc_rules_add_remote(RulesSet *, const char *, const char *, const char **);
int msc_rules_add_file(RulesSet *, const char *, const char **);
int msc_rules_add(RulesSet *, const char *, const char **);
void msc_rules_error_cleanup(const char *);
int msc_rules_cleanup(RulesSet *);
Transaction *msc_new_transaction(ModSecurity *, RulesSet *, void *);
Transaction *msc_new_transaction_with_id(ModSecurity *, RulesSet *, char *, void *);
int msc_process_connection(Transaction *, const char *, int, const char *, int);
int msc_process_uri(Transaction *, const char *, const char *, const char *);
int msc_add_request_header(Transaction *, const byte *, const byte *);
int msc_add_n_request_header(Transaction *, const byte *, size_t, const byte *, size_t);
int msc_process_request_headers(Transaction *);
int msc_append_request_body(Transaction *, const byte *, size_t);
int msc_request_body_from_file(Transaction *, const char *);
int msc_process_request_body(Transaction *);
int msc_add_response_header(Transaction *, const byte *, const byte *);
int msc_add_n_response_header(Transaction *, const byte *, size_t, const byte *, size_t);
int msc_process_response_headers(Transaction *, int, const char *);
int msc_append_response_body(Transaction *, const byte *, size_t);
int msc_process_response_body(Transaction *);
const char *msc_get_response_body(Transaction *);
size_t msc_get_response_body_length(Transaction *);
size_t msc_get_request_body_length(Transaction *);
int msc_intervention(Transaction *, Intervention *);
void msc_intervention_cleanup(Intervention *);
int msc_process_logging(Transaction *);
int msc_update_status_code(Transaction *, int);
int msc_set_request_hostname(Transaction *, const byte *);
void msc_transaction_cleanup(Transaction *);
