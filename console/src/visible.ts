// Texts of clients, so that what is shown is what was sent.

/** Signs that are not seen or change how others are seen: controls, bidirectional marks, halves of pairs. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A text of a client as it can be read: what is not seen is written as its code. `lines`: ends of lines stay. */
export function visible(text: string, lines = false): string {
  return text.replace(UNSEEN, (sign, at: number) => {
    const stays = lines && (sign === '\n' || sign === '\t' || (sign === '\r' && [undefined, '\n'].includes(text[at + 1])));
    return stays ? sign : `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
