// Two readings that applications of Node.js have of a path: as URL shows it, and that as the name of a file.
const http = require('http');
const path = require('path');
const areas = (read) => (request, response) => {
  let at = '';
  try { at = read(new URL(request.url, 'http://host').pathname); } catch { response.statusCode = 400; return response.end(); }
  response.statusCode = at.startsWith('/static/') ? 410 : at.startsWith('/admin') ? 451 : 409;
  response.end();
};
const file = (at) => path.posix.normalize(decodeURIComponent(at));
http.createServer(areas(process.argv[2] === 'file' ? file : (at) => at)).listen(PORT, '127.0.0.1');
