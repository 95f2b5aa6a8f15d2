/**
 * Returns SQL that orders a text as JavaScript does, by UTF-16 code units. DuckDB compares bytes of UTF-8, which is the
 * same order but for characters beyond the first 65,536: UTF-16 writes them with units between U+D7FF and U+E000. With
 * U+D7FF in front they are at that place.
 */
export function inCodeUnits(text: string): string {
  return `case when strlen(${text}) = length(${text}) then ${text}
    else regexp_replace(${text}, '([\\x{10000}-\\x{10FFFF}])', '\u{D7FF}\\1', 'g') end`;
}
