"""Areas by PATH_INFO, as frameworks on WSGI choose a view."""


def application(environ, start_response):
    path = environ["PATH_INFO"]
    status = "410 Gone" if path.startswith("/static/") else "451 X" if path.startswith("/admin") else "409 Conflict"
    start_response(status, [("Content-Length", "0")])
    return [b""]
