<?php
// What front controllers of PHP do.
$path = rawurldecode((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
http_response_code(str_starts_with($path, '/static/') ? 410 : (str_starts_with($path, '/admin') ? 451 : 409));
