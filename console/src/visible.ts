// Texts of clients, so that what is shown is what was sent.

/** Signs that are not seen or change how others are seen: controls, bidirectional marks, halves of pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A text of a client as it can be read: what is not seen is written as its code. `lines`: ends of lines stay. */
export function visible(text: string, lines = false): string {
  return text.replace(UNSEEN, (sign, at: number) => {
    if (lines && (sign === '\n' || sign === '\t')) return sign;
    // Part of the end of a line, which may be in the next piece of a text.
    if (lines && sign === '\r' && [undefined, '\n'].includes(text[at + 1])) return '';
    return `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
