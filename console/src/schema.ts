// The JSON schema of the document, as shapes that a form can be made of.

export interface Schema {
  description?: string; type?: string | string[]; properties?: Record<string, Schema>; items?: Schema;
  anyOf?: Schema[]; oneOf?: Schema[]; $ref?: string; $defs?: Record<string, Schema>; const?: unknown; pattern?: string;
  minimum?: number; maximum?: number; additionalProperties?: boolean | Schema; required?: string[];
}
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Table = Record<string, Json>;

/** The kind of a value, and so the control for it. */
export type Shape =
  | { kind: 'switch' }
  | { kind: 'choice'; options: { value: string; description: string }[] }
  | { kind: 'text' }
  | { kind: 'number'; min?: number; max?: number }
  | { kind: 'size' }
  | { kind: 'list'; of: Shape }
  | { kind: 'map'; of: Shape }
  | { kind: 'table'; members: Member[] }
  /** A plain value, or a table with more. */
  | { kind: 'either'; plain: Shape; table: Shape; member: string };
export interface Member { key: string; description: string; required: boolean; shape: () => Shape }

/** The shape of a schema within its whole. Members are looked at when they are asked for: schemas may be deep. */
export function shapeOf(root: Schema, given: Schema): Shape {
  const schema = resolved(root, given);
  const choices = schema.oneOf ?? [];
  if (choices.length > 0 && choices.every((each) => typeof each.const === 'string')) {
    return { kind: 'choice', options: choices.map((each) => ({ value: each.const as string, description: each.description ?? '' })) };
  }
  if (choices.length === 2) {
    const [plain, table] = choices.map((each) => shapeOf(root, each)) as [Shape, Shape];
    // The member of the table that the plain value stands for.
    if (table.kind === 'table') return { kind: 'either', plain, table, member: table.members.find((each) => each.required)?.key ?? '' };
    return { kind: 'size' };
  }
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type;
  if (type === 'boolean') return { kind: 'switch' };
  if (type === 'integer' || type === 'number') return { kind: 'number', min: schema.minimum, max: schema.maximum };
  if (type === 'array') return { kind: 'list', of: shapeOf(root, schema.items ?? {}) };
  if (type === 'object' && typeof schema.additionalProperties === 'object') return { kind: 'map', of: shapeOf(root, schema.additionalProperties) };
  if (type === 'object') {
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties ?? {}).map(([key, each]) => ({
      key, description: (each.description ?? resolved(root, each).description ?? '').replaceAll('\n', ' '), required: required.has(key),
      shape: () => shapeOf(root, each),
    }));
    return { kind: 'table', members };
  }
  return { kind: 'text' };
}

/** Without references, and without the way in which the schema says that a value may be missing. */
function resolved(root: Schema, schema: Schema): Schema {
  if (schema.$ref) return resolved(root, root.$defs?.[schema.$ref.split('/').pop() ?? ''] ?? {});
  const some = schema.anyOf?.filter((each) => each.type !== 'null') ?? [];
  return some.length === 1 && some[0] ? resolved(root, some[0]) : schema;
}

/** The parts of a JSON Pointer. */
export function parts(pointer: string): string[] {
  return pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function pointer(above: string, part: string | number): string {
  return `${above}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The shape at a place of the document; none if the document has no such place. */
export function shapeAt(root: Schema, place: string): Shape | null {
  let shape: Shape | null = shapeOf(root, root);
  for (const part of parts(place)) {
    const now: Shape | null = shape?.kind === 'either' ? shape.table : shape;
    if (now?.kind === 'list' || now?.kind === 'map') shape = now.of;
    else if (now?.kind === 'table') shape = now.members.find((each) => each.key === part)?.shape() ?? null;
    else return null;
  }
  return shape;
}

/** The value at a place; undefined if there is none. */
export function valueAt(document: Json | undefined, place: string): Json | undefined {
  let value: Json | undefined = document;
  for (const part of parts(place)) {
    if (value === null || typeof value !== 'object') return undefined;
    value = Array.isArray(value) ? value[Number(part)] : Object.hasOwn(value, part) ? value[part] : undefined;
  }
  return value;
}

const NAMES: Record<string, string> = {
  acme: 'ACME', api: 'API', asns: 'Autonomous systems', ca: 'CA', crl: 'CRL', crs: 'CRS', dns: 'DNS', grpc: 'gRPC', hsts: 'HSTS',
  http: 'HTTP', http2: 'HTTP/2', http3: 'HTTP/3', https: 'HTTPS', ipv4: 'IPv4', ipv6: 'IPv6', ocsp: 'OCSP', oidc: 'OIDC',
  otlp: 'OTLP', tcp: 'TCP', tls: 'TLS', url: 'URL', v4: 'IPv4', v6: 'IPv6',
};

/** A key as words: `rate_limits` is Rate limits. */
export function labelOf(key: string): string {
  const words = key.split('_').map((word) => NAMES[word] ?? word).join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A text into a number, if it is one; a size may have a unit. */
export function numberOrText(text: string): Json {
  const trimmed = text.trim();
  return /^-?\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** The lines of a map of plain values: `name = value`. */
export function mapOf(text: string, of: Shape): Table {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf('=');
    const [key, value] = at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
    return [key.trim(), of.kind === 'number' || of.kind === 'size' ? numberOrText(value) : value.trim()];
  }));
}

export function linesOf(map: Table): string {
  return Object.entries(map).map(([key, value]) => `${key} = ${String(value)}`).join('\n');
}

/** A table without the members that say nothing. */
export function trimmed(value: Json): Json {
  if (Array.isArray(value)) return value.map(trimmed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null).map(([key, each]) => [key, trimmed(each)]));
}
