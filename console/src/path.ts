// Path templates of exclusions.

/** True where servers may take the path for another one: no exclusion may be for it. */
export function isDoubtful(path: string): boolean {
  return !path.startsWith('/') || /\.\.|\/\/|[;\\*%{}]/.test(path);
}

/** The path with what looks like an id in braces: numbers, UUIDs, long codes. */
export function template(path: string): string {
  const isId = (part: string) => /^\d+$/.test(part) || /^[0-9a-f-]{16,}$/i.test(part) || (/\d/.test(part) && /^[\w-]{20,}$/.test(part));
  return path.split('/').map((part) => (isId(part) ? '{id}' : part)).join('/');
}
