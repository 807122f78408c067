"""The library through ctypes, as a script uses it: one request that passes, one that is blocked."""
import ctypes
import sys


class Intervention(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("pause", ctypes.c_int), ("url", ctypes.c_void_p),
                ("log", ctypes.c_char_p), ("disruptive", ctypes.c_int)]


library = ctypes.CDLL(sys.argv[1])
for name in ("msc_init", "msc_create_rules_set", "msc_new_transaction"):
    getattr(library, name).restype = ctypes.c_void_p
pointer = ctypes.c_void_p

modsec, rules = pointer(library.msc_init()), pointer(library.msc_create_rules_set())
error = ctypes.c_char_p()
text = b'SecRuleEngine On\nSecRule ARGS "@contains evil" "id:1,phase:1,deny,status:406"\n'
assert library.msc_rules_add(rules, text, ctypes.byref(error)) == 1, error.value
assert library.msc_rules_add(rules, b"SecRulez", ctypes.byref(error)) == -1
print(error.value.decode())

for uri, expected in ((b"/?q=fine", 200), (b"/?q=evil", 406)):
    transaction = pointer(library.msc_new_transaction(modsec, rules, None))
    library.msc_process_connection(transaction, b"127.0.0.1", 4711, b"127.0.0.1", 80)
    library.msc_process_uri(transaction, uri, b"GET", b"1.1")
    library.msc_add_request_header(transaction, b"Host", b"localhost")
    library.msc_process_request_headers(transaction)
    found = Intervention(200, 0, None, None, 0)
    library.msc_intervention(transaction, ctypes.byref(found))
    assert found.status == expected, (uri, found.status)
    library.msc_process_logging(transaction)
    library.msc_transaction_cleanup(transaction)
library.msc_rules_cleanup(rules)
library.msc_cleanup(modsec)
print("all well")
