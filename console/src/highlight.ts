// Evidence marked in the request as it was sent: its encodings are undone, and each sign knows where it came from.

export interface Piece { text: string; marked: boolean }

/** A text and, of each of its signs and of its end, the place in the message. */
interface Layer { text: string; from: number[] }

/** Encodings of encodings that are undone. */
const LAYERS = 2;
const SEQUENCES: [number, number][] = [[0xf0, 4], [0xe0, 3], [0xc0, 2], [0, 1]];

/** Percent-encoding undone, a sign at a time; what is no UTF-8 becomes a sign of its own. */
function decoded({ text, from }: Layer): Layer {
  const out: Layer = { text: '', from: [] };
  const add = (sign: string, at: number) => {
    out.text += sign;
    for (let unit = 0; unit < sign.length; unit += 1) out.from.push(from[at] ?? 0);
  };
  for (let at = 0; at < text.length;) {
    const code = text[at] === '%' ? /^[0-9a-f]{2}/i.exec(text.slice(at + 1, at + 3))?.[0] : undefined;
    if (code === undefined) {
      add(text[at] ?? '', at);
      at += 1;
      continue;
    }
    const length = 3 * (SEQUENCES.find(([least]) => Number.parseInt(code, 16) >= least)?.[1] ?? 1);
    const sequence = text.slice(at, at + length);
    try {
      add(decodeURIComponent(sequence), at);
      at += length;
    } catch {
      add('\ufffd', at);
      at += 3;
    }
  }
  out.from.push(from[text.length] ?? 0);
  return out;
}

/** Letter case does not count, nor how a space is written. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  return (lower.length === text.length ? lower : text).replaceAll('+', ' ');
}

/** The part of a text that a span of bytes names; signs that it cuts are left out. */
export function spanOf(text = '', span?: [number, number]): string {
  return span ? new TextDecoder().decode(new TextEncoder().encode(text).slice(...span)).replaceAll('\ufffd', '') : '';
}

/** The text in pieces, with each evidence marked wherever it stands, as it is or encoded. */
export function highlight(text: string, evidence: string[]): Piece[] {
  const marks = new Uint8Array(text.length);
  const wanted = [...new Set(evidence.flatMap((each) => [folded(each), folded(JSON.stringify(each).slice(1, -1))]))].filter((each) => each.length >= 2);
  let layer: Layer = { text, from: Array.from({ length: text.length + 1 }, (_, at) => at) };
  for (let turn = 0; turn <= LAYERS; turn += 1) {
    const within = folded(layer.text);
    for (const each of wanted) {
      for (let at = within.indexOf(each); at >= 0; at = within.indexOf(each, at + each.length)) marks.fill(1, layer.from[at], layer.from[at + each.length]);
    }
    if (!layer.text.includes('%')) break;
    layer = decoded(layer);
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
