// Evidence marked in the request as it was sent: decoding is undone by looking for each way to write a text.

export interface Piece { text: string; marked: boolean }

/** Ways in which a text may stand in a message. */
export function spellings(evidence: string): string[] {
  const encoded = encodeURIComponent(evidence.replace(/\p{Cs}/gu, '\ufffd'));
  const strict = encoded.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const json = JSON.stringify(evidence).slice(1, -1);
  const all = [evidence, encoded, strict, encoded.replaceAll('%20', '+'), strict.replaceAll('%20', '+'), json,
    evidence.replaceAll(' ', '+'), evidence.replaceAll(' ', '%20')];
  return [...new Set([...all, ...all.map((text) => text.toLowerCase())])].filter((text) => text.length >= 2);
}

/** The part of a text that a span of bytes names; signs that it cuts are left out. */
export function spanOf(text = '', span?: [number, number]): string {
  return span ? new TextDecoder().decode(new TextEncoder().encode(text).slice(...span)).replaceAll('\ufffd', '') : '';
}

/** The text in pieces, with each evidence marked wherever it stands. Letter case of codes does not count. */
export function highlight(text: string, evidence: string[]): Piece[] {
  const lower = text.toLowerCase();
  const marks = new Uint8Array(text.length);
  if (lower.length === text.length) {
    for (const each of evidence) {
      for (const spelling of spellings(each)) {
        const wanted = spelling.toLowerCase();
        for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) marks.fill(1, at, at + wanted.length);
      }
    }
  }
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length;) {
    const marked = marks[at] === 1;
    let end = at;
    while (end < text.length && (marks[end] === 1) === marked) end += 1;
    pieces.push({ text: text.slice(at, end), marked });
    at = end;
  }
  return pieces;
}

/** A request as a command line of curl. Bytes that are no text cannot be written there. */
export function curl(request: string, scheme: string): string {
  const at = request.indexOf('\r\n\r\n');
  const [line = '', ...fields] = (at < 0 ? request : request.slice(0, at)).split('\r\n');
  const body = at < 0 ? '' : request.slice(at + 4);
  const [method = 'GET', target = '/'] = line.split(' ');
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const host = fields.find((field) => /^host:/i.test(field))?.slice(5).trim() ?? 'localhost';
  const kept = fields.filter((field) => !/^(host|content-length|connection|transfer-encoding):/i.test(field));
  return [
    `curl --path-as-is -X ${method} ${quote(`${scheme}://${host}${target}`)}`,
    ...kept.map((field) => `-H ${quote(field)}`),
    ...(body ? [`--data-raw ${quote(body)}`] : []),
  ].join(' \\\n  ');
}
