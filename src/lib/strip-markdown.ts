/** Longer than any channel shows. Every pattern below reads a line once, so that the time is linear in the text. */
const MOST_CHARS = 100_000;

/** Lines without text: a fence, a rule, the line below a table's head. */
const DRAWN =
  /^(?:(?:`{3,}|~{3,})[^`]*|(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}|\|?[ \t]*:?-{2,}[-:| \t]*)$/;
const HEADING = /^#{1,6}[ \t]+/;
const CLOSED_HEADING = /[ \t]+#{1,6}$/;
const QUOTE = /^(?:>[ \t]?)+/;
const BULLET = /^[*+][ \t]+/;
const CODE = /`([^`]+)`/g;
/** Replaces code while the rest is parsed, because no character in code is a mark. */
const PLACE = "\ue000";
/** Both marks must touch a word: `942*`, `a * b` and `snake_case` are no emphasis. */
const STARS =
  /(?<![\p{L}\p{N}*\\])(\*{1,3})(?=[\p{L}\p{N}"'([_~\ue000])([^*]{1,2000})(?<=\S)\1(?![\p{L}\p{N}*])/gu;
const UNDERSCORES =
  /(?<![\p{L}\p{N}_\\])(_{1,3})(?=[\p{L}\p{N}"'([*~\ue000])([^_]{1,2000})(?<=\S)\1(?![\p{L}\p{N}_])/gu;
const STRUCK = /~~([^~]{1,2000})~~/g;
const LINK = /!?\[([^[\]]{0,500})\]\(([^()\s]{1,2000})(?:[ \t]+"[^"]{0,500}")?\)/g;
const ESCAPED = /\\([\\`*_{}[\]()#+.!~>|-])/g;

/** A line that is at least this long, and does not end a sentence, was probably broken because of its length. */
const WRAPPED_CHARS = 60;
const FENCE = /^\s*(?:`{3,}|~{3,})/;
const SENTENCE_END = /[.:!?]\W{0,5}$/;
/** Beginning of a line of its own: an item, a quote, a table's row, a heading, indented code, `User agent:`. */
const OWN_LINE = /^\s*(?:$|[-*+•]\s|\d+[.)]\s|[>|#]|[*_]{0,3}[A-Z][\w -]{0,30}:)|^(?:\t| {4})/;

/**
 * Returns the text without the marks of Markdown: no channel renders them, because the text is an attacker's to
 * influence. Words, numbers of lists and the addresses of links stay. Lines of a wrapped paragraph are joined, because
 * each channel wraps at a width of its own. The result is still hostile.
 */
export function stripMarkdown(text: string): string {
  const lines: string[] = [];
  let isCode = false;
  let wasWrapped = false;
  for (const line of text.slice(0, MOST_CHARS).split("\n")) {
    if (FENCE.test(line)) isCode = !isCode;
    const isDrawn = DRAWN.test(line.trim());
    if (!isDrawn && wasWrapped && !OWN_LINE.test(line))
      lines[lines.length - 1] += ` ${stripLine(line).trim()}`;
    else if (!isDrawn) lines.push(stripLine(line));
    const isWhole = isDrawn || isCode || /^\s*[|#]/.test(line) || SENTENCE_END.test(line);
    wasWrapped = !isWhole && line.length >= WRAPPED_CHARS;
  }
  return lines.join("\n");
}

function stripLine(line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? "";
  const bare = line.slice(indent.length).trimEnd().replace(QUOTE, "");
  const item = bare.replace(BULLET, "- ");
  const words = HEADING.test(item) ? item.replace(HEADING, "").replace(CLOSED_HEADING, "") : item;
  return `${indent}${stripInline(stripTable(words))}`;
}

/** `| a | b |` as `a | b`. */
function stripTable(line: string): string {
  return line.length > 2 && line.startsWith("|") && line.endsWith("|") ? line.slice(1, -1).trim() : line;
}

function stripInline(line: string): string {
  const codes: string[] = [];
  const escaped = line.replaceAll(PLACE, "\\u{e000}").replace(CODE, (_, code: string) => {
    codes.push(code);
    return PLACE;
  });
  const linked = escaped.replace(LINK, (_, title: string, url: string) =>
    title === "" ? url : `${title} (${url})`,
  );
  // Runs twice, because one kind of emphasis may be inside the other.
  const plain = stripEmphasis(stripEmphasis(linked)).replace(ESCAPED, "$1");
  return plain.replaceAll(PLACE, () => codes.shift() ?? "");
}

function stripEmphasis(text: string): string {
  return text.replace(STARS, "$2").replace(UNDERSCORES, "$2").replace(STRUCK, "$1");
}
