const http = require('http');
let seen = 0;
// Lenient on purpose: what only a lenient server would read is what smuggling lives on.
http.createServer({ insecureHTTPParser: true, keepAliveTimeout: 60000 }, (request, response) => {
  seen += 1;
  request.resume();
  request.on('end', () => response.end('ok'));
}).on('clientError', (error, socket) => {
  // What it refuses to parse it has seen, too: a method that it does not know, for one.
  // A body that breaks off belongs to a request that was counted.
  if (String(error.code).startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE') seen += 1;
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
}).listen(PORT, '127.0.0.1');
http.createServer((request, response) => response.end(String(seen))).listen(PAGE, '127.0.0.1');
