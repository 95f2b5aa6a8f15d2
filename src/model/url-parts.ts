/** The parts of an event's URL that a search can ask. */
export const URL_PARTS = ["host", "path"] as const;
export type UrlPart = (typeof URL_PARTS)[number];

const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/**
 * Returns a part of a URL. The host has no user, no port and lower-case ASCII letters; '' if the URL does not begin with a
 * scheme. The path has no query and no fragment, is not decoded, and is '/' if the URL has none. Neither contains a `?` or a
 * `#`. `toUrlPartSql` computes the same.
 */
export function toUrlPart(part: UrlPart, url: string): string {
  if (url === "") return "";
  const [head = ""] = url.split(/[?#]/, 1);
  const [, authority, path = head] = /^[^/]+:\/\/([^/]*)(.*)$/s.exec(head) ?? [];
  if (part === "path") return path === "" ? "/" : path;
  const host = authority?.split("@").at(-1) ?? "";
  const bare = host.startsWith("[") ? (/^\[[^\]]*\]/.exec(host)?.[0] ?? "") : host.split(":", 1)[0];
  return (bare ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Returns SQL for a part of the URL in `column`; '' if the URL is null or empty. Postgres and DuckDB read it alike. It has no
 * regular expression: Postgres would take four times as long.
 */
export function toUrlPartSql(part: UrlPart, column: string): string {
  const head = `split_part(split_part(${column}, '?', 1), '#', 1)`;
  const authority = `split_part(${head}, '/', 3)`;
  const hasScheme = `strpos(${head}, '/') > 2 and strpos(${head}, '://') = strpos(${head}, '/') - 1`;
  if (part === "path") {
    const behind = `substr(${head}, length(split_part(${head}, '/', 1)) + length(${authority}) + 3)`;
    return `case when ${column} <> '' then
      coalesce(nullif(case when ${hasScheme} then ${behind} else ${head} end, ''), '/') else '' end`;
  }
  const host = `split_part(${authority}, '@', -1)`;
  const bare = `case when substr(${host}, 1, 1) <> '[' then split_part(${host}, ':', 1)
    when strpos(${host}, ']') > 0 then split_part(${host}, ']', 1) || ']' else '' end`;
  return `case when ${hasScheme} then translate(${bare}, '${UPPER}', '${UPPER.toLowerCase()}') else '' end`;
}
